"""What the governors decided, as records for the log: `edit` entries and a `head`.

A decision names places in the projection's messages; a record names entries. Laws: what was decided together is one
batch; a head carries everything that resuming needs; a call that a request carried without a result is not among these
records, as the request's own record names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from governors.decisions import Cut, DropImages, DropThinking, Stub
from governors.errors import ContextOverflow
from governors.messages import AssistantMessage, Image, Message, Messages, Text, Thinking, ToolResult, UserMessage
from governors.microcompact import image_stub, stub
from governors.report import Action, Governed, Report

from ..session.entries import EditRecord, Entry, HeadRecord, MessageRecord, Pinned, ResultRecord
from ..session.view.pins import fit_pins, pins_message, pins_to_carry
from ..session.view.projection import Projection
from ..session.view.ranges import newest_head, range_of
from ..session.view.redaction import carried_summary, stale_at
from ..session.view.standing import Standing, carried_settings

#: The tokens that a model may find in a message.
Measure: TypeAlias = Callable[[UserMessage], int]

_PINNED_SHARE = 4  # pins take no more than one part in so many of a budget


def records_of(
    governed: Governed, projection: Projection, branch: Sequence[Entry], standing: Standing, measure: Measure
) -> tuple[EditRecord | HeadRecord, ...]:
    """The records that make `governed.decisions` durable; none when nothing has changed. `measure` gives the tokens of
    pins."""
    messages = projection.messages
    actions = {action.governor: action for action in governed.report.actions}
    records: list[EditRecord | HeadRecord] = []
    for decision in governed.decisions:
        match decision:
            case Stub(place=place, why=why):
                by = actions.get("shrink" if why == "must" and "microcompact" not in actions else "microcompact")
                records.append(_stub(messages[place], branch, by))
            case DropImages(place=place, count=count):
                records.extend(_without_images(messages[place], count, branch))
            case DropThinking(place=place, until=until):
                records.extend(edit for message in messages[place:until] for edit in without_thinking(message, branch))
            case Cut():
                records.append(_head(decision, governed, projection, branch, standing, measure))
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
        EditRecord(action="omit", target=entry.id, block=block, cause="reasoning that was bound to what has changed")
        for block, part in enumerate(entry.record.content)
        if part in shown
    ]


def _entry(message: Message, branch: Sequence[Entry]) -> Entry:
    return next(entry for entry in reversed(branch) if entry.id == message.origin)


def _without_images(message: Message, count: int, branch: Sequence[Entry]) -> list[EditRecord]:
    """An edit for each of the first `count` pictures that the message still shows."""
    entry = _entry(message, branch)
    assert isinstance(entry.record, (MessageRecord, ResultRecord))
    shown = {id(part) for part in getattr(message, "content", ()) if isinstance(part, Image)}
    pictures = [
        (block, part)
        for block, part in enumerate(entry.record.content)
        if isinstance(part, Image) and id(part) in shown
    ]
    return [
        EditRecord(action="replace", target=entry.id, block=block, cause="images", content=(image_stub(part),))
        for block, part in pictures[:count]
    ]


def _head(
    cut: Cut,
    governed: Governed,
    projection: Projection,
    branch: Sequence[Entry],
    standing: Standing,
    measure: Measure,
) -> HeadRecord:
    messages = projection.messages
    start = messages[cut.start].origin
    assert isinstance(start, int)
    before = newest_head(branch)
    earlier = before.record if before is not None and isinstance(before.record, HeadRecord) else None
    stale = stale_at({entry.id: entry for entry in branch}, standing.redactions)
    quote, quoted = cut.quote, None if cut.quote is None else _quoted(messages, cut.start)
    if cut.quote is None and earlier is not None and earlier.start == start:  # the turn goes on: so does its question
        quote, quoted = earlier.quote, earlier.quoted
    head = HeadRecord(
        start=start,
        resume=_resume(messages, cut, earlier, start),
        baseline=projection.state.baseline,
        cause="snip",
        generation=projection.generation + 1,
        summary=carried_summary(before, stale),
        quote=quote,
        quoted=quoted,
        placement=earlier.placement if earlier is not None else "first",
        settings=carried_settings(projection.settings, standing.settings),
        open_calls=projection.open_calls(start),
        inbox=standing.waiting,
        spent=standing.spent,
        breaker=standing.breaker,
        before=governed.report.before,
        after=governed.report.after,
    )
    return replace(head, pins=_pins(head, earlier, governed, projection, branch, standing, measure))


def _pins(
    head: HeadRecord,
    earlier: HeadRecord | None,
    governed: Governed,
    projection: Projection,
    branch: Sequence[Entry],
    standing: Standing,
    measure: Measure,
) -> tuple[Pinned, ...]:
    """The pinned entries that `head` carries, within their share of the budget and of what the request leaves free."""
    shown = range_of(replace(head, resume=branch[-1].id + 1) if head.resume == 0 else head)
    pins = pins_to_carry(branch, shown, projection.open, earlier, standing.pins, standing.redacted)
    if not pins:
        return ()
    report = governed.report
    held = earlier.pins if earlier is not None else ()  # what is free was measured with them in view
    free = report.budget - report.after + _size(held, standing, measure)
    return fit_pins(pins, min(report.budget // _PINNED_SHARE, free), measure)


def without_pins(
    overflow: ContextOverflow, projection: Projection, branch: Sequence[Entry], standing: Standing, measure: Measure
) -> tuple[HeadRecord, Report] | None:
    """The newest head once more, with pins that leave room for what must stay, when nothing else can go; and what that
    brings. None when it has no pins to shorten.

    It moves neither where the context begins nor what of the turn is kept, so it is made only for this.
    """
    before = newest_head(branch)
    if before is None or not isinstance(before.record, HeadRecord) or not before.record.pins:
        return None
    record = before.record
    needed, held = overflow.system + overflow.tools + overflow.turn, _size(record.pins, standing, measure)
    pins = fit_pins(record.pins, overflow.budget - (needed - held), measure)
    left = _size(pins, standing, measure)
    if left >= held:
        pins, left = (), 0
    head = replace(
        record,
        baseline=projection.state.baseline,
        cause="pins",
        generation=projection.generation + 1,
        pins=pins,
        settings=carried_settings(projection.settings, standing.settings),
        open_calls=projection.open_calls(record.start),
        inbox=standing.waiting,
        spent=standing.spent,
        breaker=standing.breaker,
        before=needed,
        after=needed - held + left,
    )
    action = Action("pins", "pinned entries shortened", "what must stay was over budget with them", held - left)
    return head, Report(overflow.budget, overflow.system, overflow.tools, needed, head.after, (action,))


def _size(pins: Sequence[Pinned], standing: Standing, measure: Measure) -> int:
    return measure(pins_message(0, pins, lambda entry: entry in standing.redacted)) if pins else 0


def _quoted(messages: Messages, start: int) -> int | None:
    """The entry of the reply that the message at the index `start` answers: the question that a cut quotes."""
    replies = (each for each in reversed(messages[:start]) if isinstance(each, AssistantMessage))
    origin = next((reply.origin for reply in replies if reply.text.strip()), None)
    return origin if isinstance(origin, int) else None


def _resume(messages: Messages, cut: Cut, earlier: HeadRecord | None, start: int) -> int | None:
    """Where the kept steps begin; steps that an earlier head left out stay so."""
    if cut.resume is None:
        inside = earlier is not None and earlier.resume is not None and start < earlier.resume
        return earlier.resume if earlier is not None and inside else None
    if cut.resume >= len(messages):
        return 0  # the head itself: no step is kept
    origin = messages[cut.resume].origin
    assert isinstance(origin, int)
    return origin
