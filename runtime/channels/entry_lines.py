"""An entry of a session for a person to read, whole. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from governors.documents import document_title
from governors.messages import Document, Image, Text, Thinking, ToolCall

from ..session.entries import (
    CompactionRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    Part,
    ResultRecord,
)
from ..session.format.codec import encode_entry
from ..session.view.redaction import REDACTED, STALE_SUMMARY
from ..session.view.wrapping import opening_of
from .receipts import receipt_text

_PLACE = ("id", "parent", "at", "until", "type")


def entry_title(entry: Entry) -> str:
    """What an entry is, in a line: `#12 · message of the user · 2026-11-30T18:00:01.250Z · after #11`."""
    match entry.record:
        case MessageRecord(role="user"):
            what = "message of the user"
        case MessageRecord(model=model):
            what = f"reply of {model}" if model else "reply"
        case ResultRecord(tool=tool, call=(reply, _)):
            what = f"result of {tool}, called in #{reply}"
        case record:
            what = record.type.replace("_", " ")
    after = "first" if entry.parent is None else f"after #{entry.parent}"
    return f"#{entry.id} · {what} · {entry.at} · {after}"


def veiled(entry: Entry, hidden: Collection[int], stale: Collection[int]) -> Entry:
    """A receipt or a head without what it tells of entries that are `hidden`; `stale` are heads whose summaries may."""
    record = entry.record
    if isinstance(record, CompactionRecord) and record.dropped and any(each < entry.id for each in hidden):
        record = replace(record, dropped=(REDACTED,))
    elif isinstance(record, HeadRecord) and hidden:
        summary = STALE_SUMMARY if entry.id in stale and record.summary is not None else record.summary
        pins = (replace(pin, content=(Text(REDACTED),)) if pin.entry in hidden else pin for pin in record.pins)
        record = replace(record, summary=summary, item=None if entry.id in stale else record.item, pins=tuple(pins))
    return replace(entry, record=record)


def entry_lines(entry: Entry, *, redacted: bool = False, output: str | None = None) -> str:
    """All that it says; `output` is the whole output of a result that was shortened for the model."""
    if redacted:
        return REDACTED
    match entry.record:
        case ResultRecord() if output is not None:
            return output
        case ExtensionRecord(name=name, data=data, content=content) if content:
            return "\n\n".join((opening_of(name, data), output or _parts(content)))
        case CompactionRecord() as receipt:
            return receipt_text(receipt)
        case HeadRecord(summary=str()) as head:
            return _head(head)
        case MessageRecord(content=content, stop=stop) if not content:
            return f"(nothing; it ended with: {stop})"
        case MessageRecord(content=content) | ResultRecord(content=content) | InboxRecord(content=content) if content:
            return _parts(content)
        case _:
            raw = json.loads(encode_entry(entry))
            return json.dumps({key: raw[key] for key in raw if key not in _PLACE}, ensure_ascii=False, indent=2)


def _head(head: HeadRecord) -> str:
    """The summary, and what is kept word for word beside it."""
    kept = "" if head.resume is None else ", without some of its steps"
    where = f"(What the model sees begins at #{head.start}{kept}. What was before is summed up:)"
    pins = (f"(pinned, #{pin.entry}, {pin.said}) {_parts(pin.content)}" for pin in head.pins)
    return "\n\n".join((where, head.summary or "", *pins))


def _parts(content: Sequence[Part]) -> str:
    return "\n\n".join(_part(part) for part in content)


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Thinking(text=text):
            return f"(thought) {text}"
        case ToolCall(name=name, arguments=arguments):
            return f"(call) {name} {arguments}"
        case Document():
            return f"(document, {document_title(part)})"
        case Image(media_type=kind, width=width, height=height):
            return f"(picture, {kind}, {width} x {height})" if width and height else f"(picture, {kind})"
