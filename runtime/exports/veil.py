"""A log without what was redacted: what every export is made from.

Pure. Laws:
- The content of a redacted entry stands nowhere in what `veiled` gives: not in the entry, not in the inbox entry that
  it was delivered from, not in edits, labels or pins of it, nor in quotes or waiting input that heads carry.
- A summary that was made from it before it was redacted may hold it in other words, so its text is left out too, and it
  says that it is stale (which ones are: `session/view/redaction.py`).
- Places stay: ids, parents, times, types, and which result answers which call. Without redactions the entries come
  back as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from governors.messages import Text, ToolCall, UserPart

from ..session.entries import (
    Baseline,
    BranchSummaryRecord,
    CompactionRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    Part,
    Record,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    SettingRecord,
    SystemRecord,
    UnknownRecord,
)
from ..session.view.redaction import REDACTED, stale_summaries

STALE = "[redacted: this summary is stale; something that it was made from was redacted later]"
_HIDDEN = (Text(REDACTED),)


def hidden_entries(entries: Sequence[Entry]) -> frozenset[int]:
    """The redacted entries, with the input that each was delivered from and what that was delivered as."""
    told = {entry.record.target for entry in entries if isinstance(entry.record, RedactRecord)}
    if not told:
        return frozenset()
    items = {item for entry in entries if entry.id in told and (item := _item(entry)) is not None}
    return frozenset(told | {entry.id for entry in entries if _item(entry) in items and items})


def veiled(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """`entries` (all of a session) without what was redacted."""
    hidden = hidden_entries(entries)
    if not hidden:
        return tuple(entries)
    stale = stale_summaries(entries, hidden)
    return tuple(_veiled(entry, hidden, entry.id in stale) for entry in entries)


def _item(entry: Entry) -> int | None:
    """The inbox entry that holds the same input, if one does."""
    match entry.record:
        case MessageRecord(inbox=item) | ExtensionRecord(inbox=item):
            return item
        case InboxRecord(item=item):
            return entry.id if item is None else item
        case _:
            return None


def _veiled(entry: Entry, hidden: frozenset[int], stale: bool) -> Entry:
    record = entry.record
    if entry.id in hidden and not isinstance(record, RedactRecord):
        return _at(entry, _without_content(record))
    match record:
        case EditRecord(target=target) if target in hidden and record.content:
            return _at(entry, replace(record, content=_HIDDEN))
        case LabelRecord(target=target) if target in hidden:
            return _at(entry, replace(record, text=REDACTED))
        case BranchSummaryRecord() if stale:
            return _at(entry, replace(record, text=STALE))
        case HeadRecord():
            return _at(entry, _head(record, hidden, stale))
        case CompactionRecord() if record.dropped and any(target < entry.id for target in hidden):
            return _at(entry, replace(record, dropped=(REDACTED,)))
        case RequestRecord() if (record.changes or record.asked) and any(target < entry.id for target in hidden):
            return _at(entry, _request(record))
        case _:
            return entry


def _request(record: RequestRecord) -> RequestRecord:
    """A request without what hooks put into it and what it asked: either may quote what was redacted."""
    changes = tuple(
        replace(each, value=REDACTED) if isinstance(each.value, str | list | dict) else each for each in record.changes
    )
    return replace(record, changes=changes, asked=None if record.asked is None else REDACTED)


def _head(record: HeadRecord, hidden: frozenset[int], stale: bool) -> HeadRecord:
    return replace(
        record,
        summary=STALE if stale and record.summary is not None else record.summary,
        item=None if stale else record.item,
        quote=REDACTED if record.quote is not None and _quotes(record, hidden) else record.quote,
        pins=tuple(replace(pin, content=_HIDDEN) if pin.entry in hidden else pin for pin in record.pins),
        inbox=tuple(
            replace(item, content=_HIDDEN, context=None) if item.entry in hidden else item for item in record.inbox
        ),
    )


def _quotes(record: HeadRecord, hidden: frozenset[int]) -> bool:
    """Whether the quote is of a redacted reply; one that names none may be of any before the first kept message."""
    if record.quoted is not None:
        return record.quoted in hidden
    return any(identity < record.start for identity in hidden)


def _at(entry: Entry, record: Record) -> Entry:
    return entry if record is entry.record else Entry(entry.id, entry.parent, entry.at, record)


def _without_content(record: Record) -> Record:
    """`record` with nothing in it that somebody said or that came from outside."""
    match record:
        case MessageRecord():
            return replace(record, content=_without_words(record.content), context=None)
        case ResultRecord():
            return replace(record, content=_HIDDEN, whole=None)
        case InboxRecord():
            return replace(record, content=_shown(record.content), context=None)
        case EditRecord():
            return replace(record, content=_shown(record.content), forecast=None)
        case SystemRecord():
            return SystemRecord(sections=_sections(record.sections))
        case HeadRecord():
            return _bare_head(record)
        case SettingRecord():
            return replace(record, value=None if record.value is None else REDACTED)
        case OutcomeRecord():
            return replace(record, problem=None if record.problem is None else {"text": REDACTED})
        case _:
            return _without_text(record)


def _without_text(record: Record) -> Record:
    match record:
        case NoteRecord() | LabelRecord():
            return NoteRecord(text=REDACTED) if isinstance(record, NoteRecord) else replace(record, text=REDACTED)
        case BranchSummaryRecord():
            return replace(record, text=REDACTED)
        case ExtensionRecord():
            return ExtensionRecord(
                name=record.name, content=_shown(record.content), before=record.before, inbox=record.inbox
            )
        case UnknownRecord():
            return UnknownRecord(raw={"type": record.raw.get("type", ""), "redacted": True})
        case _:
            return record


def _without_words(content: Sequence[Part]) -> tuple[Part, ...]:
    """One line for all of it, and the calls without names or arguments: results name their call by its place."""
    calls = (ToolCall("", "redacted", "{}", part.complete) for part in content if isinstance(part, ToolCall))
    return (*_HIDDEN, *calls)


def _shown(content: Sequence[UserPart]) -> tuple[UserPart, ...]:
    return _HIDDEN if content else ()


def _sections(sections: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: None if text is None else REDACTED for name, text in sections.items()}


def _bare_head(record: HeadRecord) -> HeadRecord:
    return replace(
        record,
        baseline=Baseline(sections=dict.fromkeys(record.baseline.sections, REDACTED)),
        summary=None if record.summary is None else REDACTED,
        item=None,
        quote=None if record.quote is None else REDACTED,
        pins=tuple(replace(pin, content=_HIDDEN) for pin in record.pins),
        settings={},
        inbox=tuple(replace(item, content=_HIDDEN, context=None) for item in record.inbox),
    )


__all__ = ["REDACTED", "STALE", "hidden_entries", "veiled"]
