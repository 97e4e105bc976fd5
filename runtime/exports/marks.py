"""What happened beside the messages of a session, each in a line for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from governors.documents import document_title
from governors.messages import Document, Image, Text, Thinking, ToolCall

from ..session.entries import (
    BranchSummaryRecord,
    CompactionRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LeafRecord,
    NoteRecord,
    OutcomeRecord,
    Part,
    SettingRecord,
    SystemRecord,
    UnknownRecord,
)
from ..session.view.wrapping import SHELL
from .transcript import Mark, MarkKind

_DONE = {
    "omit": ("is left out of what the model sees", "are left out of what the model sees"),
    "replace": ("is replaced in what the model sees", "are replaced in what the model sees"),
    "restore": ("is shown to the model again", "are shown to the model again"),
}


def mark_of(entry: Entry) -> Mark | None:
    """The line for `entry`; None for what is a message, a result, or says nothing to a reader."""
    told = _told(entry)
    return None if told is None else Mark(entry.id, entry.at, *told)


def edits_mark(edits: Sequence[tuple[Entry, EditRecord]]) -> Mark:
    """One line for edits that were decided together (see `same_decision`)."""
    first, record = edits[0]
    if len(edits) == 1:
        return Mark(first.id, first.at, "edit", _edit(record), words(record.content))
    targets = ", ".join(str(each.target) for _, each in edits[:-1]) + f" and {edits[-1][1].target}"
    title = f"entries {targets} {_DONE[record.action][1]} from here on ({record.cause})"
    text = "\n".join(f"{each.target}: {words(each.content)}" for _, each in edits if each.content)
    return Mark(first.id, first.at, "edit", title, text)


def same_decision(one: EditRecord, other: EditRecord) -> bool:
    """Whether two edits that follow each other say the same of two entries."""
    whole = one.block is None and other.block is None
    return whole and (one.action, one.cause) == (other.action, other.cause)


def words(content: Sequence[Part]) -> str:
    """The text of a content; pictures and documents as a line each."""
    said = []
    for part in content:
        match part:
            case Text(text):
                said.append(text)
            case Image() | Document():
                said.append(medium(part))
            case Thinking() | ToolCall():
                pass
    return "\n\n".join(said)


def medium(part: Image | Document) -> str:
    """A picture or a document in words: `[report.pdf, application/pdf, 12 pages, 12,345 bytes]`."""
    if isinstance(part, Image):
        return picture(part)
    return f"[{document_title(part)}, {len(part.data) * 3 // 4:,} bytes]"


def picture(image: Image) -> str:
    """A picture in words: `[image/png, 640 x 480, 12,345 bytes]`."""
    size = f", {image.width} x {image.height}" if image.width and image.height else ""
    return f"[{image.media_type}{size}, {len(image.data) * 3 // 4:,} bytes]"


def _told(entry: Entry) -> tuple[MarkKind, str, str] | None:
    match entry.record:
        case HeadRecord() as record:
            return "head", _head(record), _head_text(record)
        case SystemRecord() as record:
            return "system", _system(record), _system_text(record)
        case BranchSummaryRecord(text=text, tip=tip):
            return "summary", f"summary of the branch that was left at entry {tip}", text
        case OutcomeRecord(problem=problem) if problem:
            return "problem", "the model's answer failed", str(problem.get("text") or problem.get("kind") or "")
        case SettingRecord(name=name, value=value) if not name.startswith("fit:"):
            return "setting", f"{name} is {_value(value)} from here on", ""
        case _:
            return _beside(entry)


def _beside(entry: Entry) -> tuple[MarkKind, str, str] | None:
    match entry.record:
        case CompactionRecord() as record:
            return "compaction", _compaction(record), _lacking(record)
        case NoteRecord(text=text):
            return "note", "note", text
        case LeafRecord(leaf=leaf):
            where = "the beginning" if leaf is None else f"entry {leaf}"
            return "branch", f"the conversation went on from {where}", ""
        case InboxRecord(item=None, state=state) as record if state != "delivered":
            return "waiting", f"input that arrived meanwhile ({state})", words(record.content)
        case InboxRecord(item=int(item), state="dropped"):
            return "waiting", f"the input of entry {item} was dropped", ""
        case ExtensionRecord(name=name, data=data) as record:
            command = data.get("command") if name == SHELL else None
            what = f"from the extension {name}" if command is None else f"the user ran: {command}"
            return "extension", what, words(record.content)
        case UnknownRecord(raw=raw):
            return "unknown", f"an entry of the type {raw.get('type')!r}, which this version does not know", ""
        case _:
            return None


def _head(record: HeadRecord) -> str:
    sizes = f", {record.before:,} to {record.after:,} tokens" if record.before and record.after else ""
    kept = "" if record.resume is None else f", its steps from entry {record.resume}"
    return f"the model's context begins anew at entry {record.start}{kept} ({record.cause}{sizes})"


def _head_text(record: HeadRecord) -> str:
    pins = (f"Pinned, entry {pin.entry} ({pin.said}): {words(pin.content)}" for pin in record.pins)
    return "\n\n".join(text for text in (record.summary, record.quote, *pins) if text)


def _compaction(record: CompactionRecord) -> str:
    label = f"({record.timing.replace('_', ' ')}, {record.reason}, {record.strategy})"
    cost = f" for ${record.cost:.4f}" if record.cost else ""
    if record.result == "done":
        many = "message" if record.folded == 1 else "messages"
        sizes = f"{record.before:,} to {record.after:,} tokens"
        return f"room was made{cost} {label}: {sizes}, {record.folded:,} {many} went out of the model's view"
    return f"no room was made{cost} {label}" + (f": {record.why}" if record.why else "")


def _lacking(record: CompactionRecord) -> str:
    return f"The summary lacks: {', '.join(record.dropped)}" if record.dropped else ""


def _edit(record: EditRecord) -> str:
    what = f"entry {record.target}" + ("" if record.block is None else f", part {record.block + 1},")
    return f"{what} {_DONE[record.action][0]} from here on ({record.cause})"


def _system(record: SystemRecord) -> str:
    changed = [name for name, text in record.sections.items() if text is not None]
    gone = [name for name, text in record.sections.items() if text is None]
    told = [f"sections {', '.join(changed)}"] if changed else []
    told += [f"without {', '.join(gone)}"] if gone else []
    told += [f"tools added: {', '.join(tool.name for tool in record.tools_added)}"] if record.tools_added else []
    told += [f"tools removed: {', '.join(record.tools_removed)}"] if record.tools_removed else []
    return f"system prompt: {'; '.join(told) or 'unchanged'}"


def _system_text(record: SystemRecord) -> str:
    return "\n\n".join(text for text in record.sections.values() if text)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
