"""What the governors decided, as records for the log: `edit` entries and a `head`.

A decision names places in the projection's messages; a record names entries. Laws: what was decided together is one
batch; a head carries everything that resuming needs; a call that a request carried without a result is not among these
records, as the request's own record names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from governors.decisions import Cut, DropDocuments, DropImages, DropThinking, Stub
from governors.documents import document_stub
from governors.messages import AssistantMessage, Document, Image, Message, Text, Thinking, ToolResult
from governors.microcompact import image_stub, stub
from governors.report import Action, Governed

from ..session.entries import EditRecord, Entry, ExtensionRecord, HeadRecord, MessageRecord, ResultRecord
from .heading import Beginning, Shown, head_record

_Medium = TypeVar("_Medium", Image, Document)

#: The cause of edits that leave out reasoning as what it was bound to has changed.
BOUND = "reasoning that was bound to what has changed"


def records_of(governed: Governed, shown: Shown) -> tuple[EditRecord | HeadRecord, ...]:
    """The records that make `governed.decisions` durable; none when nothing has changed."""
    messages, branch = shown.projection.messages, shown.branch
    actions = {action.governor: action for action in governed.report.actions}
    records: list[EditRecord | HeadRecord] = []
    for decision in governed.decisions:
        match decision:
            case Stub(place=place, why=why):
                by = actions.get("shrink" if why == "must" and "microcompact" not in actions else "microcompact")
                records.append(_stub(messages[place], branch, by))
            case DropImages(place=place, count=count):
                records.extend(_without_images(messages[place], count, branch))
            case DropDocuments(place=place, count=count):
                records.extend(_without_documents(messages[place], count, branch))
            case DropThinking(place=place, until=until):
                records.extend(edit for message in messages[place:until] for edit in without_thinking(message, branch))
            case Cut():
                records.append(_head(decision, governed, shown))
            case _:
                pass
    return tuple(records)


def _stub(message: Message, branch: Sequence[Entry], by: Action | None) -> EditRecord:
    """The line that stands for a result, made of the result as it was recorded, so that its handle finds it."""
    entry = _entry(message, branch)
    record = entry.record
    assert isinstance(record, ResultRecord)
    line = stub(ToolResult("", record.tool, record.content, record.is_error)).content[0]
    assert isinstance(line, Text)
    cause = "microcompact" if by is None else f"{by.governor}: {by.why}"
    return EditRecord(action="replace", target=entry.id, cause=cause, content=(line,), forecast=_forecast(by))


def _forecast(by: Action | None) -> dict[str, float] | None:
    """What all edits of a decision together were expected to bring: tokens of this request, and money over the
    session where that was weighed."""
    if by is None:
        return None
    return {"tokens": by.tokens, **({} if by.money is None else {"money": round(by.money, 6)})}


def without_thinking(message: Message, branch: Sequence[Entry]) -> list[EditRecord]:
    """An edit for each block of reasoning that the reply still shows."""
    if not isinstance(message, AssistantMessage):
        return []
    entry = _entry(message, branch)
    assert isinstance(entry.record, MessageRecord)
    shown = {part for part in message.content if isinstance(part, Thinking)}
    return [
        EditRecord(action="omit", target=entry.id, block=block, cause=BOUND)
        for block, part in enumerate(entry.record.content)
        if part in shown
    ]


def _entry(message: Message, branch: Sequence[Entry]) -> Entry:
    return next(entry for entry in reversed(branch) if entry.id == message.origin)


def _without_images(message: Message, count: int, branch: Sequence[Entry]) -> list[EditRecord]:
    """An edit for each of the first `count` pictures that the message still shows."""
    return [
        EditRecord(action="replace", target=entry, block=block, cause="images", content=(image_stub(part),))
        for entry, block, part in _shown_parts(message, Image, branch)[:count]
    ]


def _without_documents(message: Message, count: int, branch: Sequence[Entry]) -> list[EditRecord]:
    """An edit for each of the first `count` documents that the message still shows."""
    return [
        EditRecord(action="replace", target=entry, block=block, cause="documents", content=(document_stub(part),))
        for entry, block, part in _shown_parts(message, Document, branch)[:count]
    ]


def _shown_parts(message: Message, kind: type[_Medium], branch: Sequence[Entry]) -> list[tuple[int, int, _Medium]]:
    """The parts of a kind that the message still shows: their entry, their block in it, and themselves."""
    entry = _entry(message, branch)
    assert isinstance(entry.record, (MessageRecord, ResultRecord, ExtensionRecord))
    shown = {id(part) for part in getattr(message, "content", ()) if isinstance(part, kind)}
    return [
        (entry.id, block, part)
        for block, part in enumerate(entry.record.content)
        if isinstance(part, kind) and id(part) in shown
    ]


def _head(cut: Cut, governed: Governed, shown: Shown) -> HeadRecord:
    report = governed.report
    begin = Beginning(
        start=cut.start,
        resume=cut.resume,
        quote=cut.quote,
        cause="snip",
        before=report.before,
        after=report.after,
        budget=report.budget,
    )
    return head_record(begin, shown)
