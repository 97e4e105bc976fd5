"""Heads: where the context of a model begins anew, with all that resuming from there needs. Pure.

What the governors cut and what a compaction folds make heads of the same kind. Laws: a head carries what is pinned,
what a skill told and what waits; it holds the newest system prompt; what an earlier head left out stays out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from governors.errors import ContextOverflow
from governors.messages import AssistantMessage, CompactionItem, Messages, UserMessage
from governors.report import Action, Report

from ..session.entries import Entry, HeadRecord, Pinned, ResultRecord
from ..session.view.pins import fit_pins, pins_message, pins_to_carry
from ..session.view.projection import Projection
from ..session.view.ranges import newest_head, range_of
from ..session.view.redaction import carried_summary, stale_at
from ..session.view.standing import Standing, carried_settings

#: The tokens that a model may find in a message.
Measure: TypeAlias = Callable[[UserMessage], int]

_PINNED_SHARE = 4  # pins take no more than one part in so many of a budget
_SKILL = "skill"  # the tool whose results are instructions, and stay like pins


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model sees of a branch, before the head is there. `measure` gives the tokens of a message."""

    projection: Projection
    branch: Sequence[Entry]
    standing: Standing
    measure: Measure

    @property
    def earlier(self) -> HeadRecord | None:
        """The head that holds now."""
        entry = newest_head(self.branch)
        return entry.record if entry is not None and isinstance(entry.record, HeadRecord) else None


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the context is to begin: at message `start` of the projection, inside a turn with the step at `resume`
    (the number of messages: none is kept). `before` and `after` are tokens of the request, of `budget` at most.

    `summary` stands for what goes, at `placement`, with the `item` that says the same to whoever can read it; without
    a summary the earlier head's goes on.
    """

    start: int
    cause: str
    before: int
    after: int
    budget: int
    resume: int | None = None
    quote: str | None = None
    summary: str | None = None
    placement: Literal["first", "last"] | None = None
    item: CompactionItem | None = None


def head_record(begin: Beginning, shown: Shown) -> HeadRecord:
    """The head that lets the context begin there."""
    projection, standing, earlier = shown.projection, shown.standing, shown.earlier
    messages = projection.messages
    start = messages[begin.start].origin
    assert isinstance(start, int)
    quote, quoted = begin.quote, None if begin.quote is None else _quoted(messages, begin.start)
    if begin.quote is None and earlier is not None and earlier.start == start:  # the turn goes on: so does its question
        quote, quoted = earlier.quote, earlier.quoted
    item = begin.item if begin.summary is not None else _carried_item(shown)
    carries_on = earlier.placement if earlier is not None and item is None else "first"  # what follows an item is new
    placement = begin.placement or carries_on
    head = HeadRecord(
        start=start,
        resume=_resume(messages, begin, earlier, start),
        baseline=projection.state.baseline,
        cause=begin.cause,
        generation=projection.generation + 1,
        summary=begin.summary if begin.summary is not None else carried(shown),
        item=item,
        quote=quote,
        quoted=quoted,
        placement=placement,
        settings=carried_settings(projection.settings, standing.settings),
        open_calls=projection.open_calls(start),
        inbox=standing.waiting,
        spent=standing.spent,
        breaker=standing.breaker,
        before=begin.before,
        after=begin.after,
    )
    return replace(head, pins=_pins(head, begin, shown))


def carried(shown: Shown) -> str | None:
    """The summary that is in view now."""
    stale = stale_at({entry.id: entry for entry in shown.branch}, shown.standing.redactions)
    return carried_summary(newest_head(shown.branch), stale)


def _carried_item(shown: Shown) -> CompactionItem | None:
    """What goes with that summary; nothing where something that it was made from was redacted since."""
    earlier = shown.earlier
    return earlier.item if earlier is not None and earlier.summary == carried(shown) else None


def _pins(head: HeadRecord, begin: Beginning, shown: Shown) -> tuple[Pinned, ...]:
    """The pinned entries that `head` carries, within their share of the budget and of what the request leaves free."""
    branch, standing, earlier = shown.branch, shown.standing, shown.earlier
    seen = range_of(replace(head, resume=branch[-1].id + 1) if head.resume == 0 else head)
    skills = {entry.id: True for entry in branch if _is_skill(entry)}
    pinned = {**skills, **standing.pins}  # an unpinned one is not carried
    pins = pins_to_carry(branch, seen, shown.projection.open, earlier, pinned, standing.redacted)
    if not pins:
        return ()
    held = earlier.pins if earlier is not None else ()  # what is free was measured with them in view
    free = begin.budget - begin.after + size_of_pins(held, shown)
    return fit_pins(pins, min(begin.budget // _PINNED_SHARE, free), shown.measure)


def _is_skill(entry: Entry) -> bool:
    record = entry.record
    return isinstance(record, ResultRecord) and record.tool == _SKILL and not record.is_error


def without_pins(overflow: ContextOverflow, shown: Shown) -> tuple[HeadRecord, Report] | None:
    """The newest head once more, with pins that leave room for what must stay, when nothing else can go; and what that
    brings. None when it has no pins to shorten.

    It moves neither where the context begins nor what of the turn is kept, so it is made only for this.
    """
    record, projection, standing = shown.earlier, shown.projection, shown.standing
    if record is None or not record.pins:
        return None
    needed, held = overflow.system + overflow.tools + overflow.turn, size_of_pins(record.pins, shown)
    pins = fit_pins(record.pins, overflow.budget - (needed - held), shown.measure)
    left = size_of_pins(pins, shown)
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


def size_of_pins(pins: Sequence[Pinned], shown: Shown) -> int:
    """The tokens that pins take as they are shown."""
    if not pins:
        return 0
    return shown.measure(pins_message(0, pins, lambda entry: entry in shown.standing.redacted))


def _quoted(messages: Messages, start: int) -> int | None:
    """The entry of the reply that the message at the index `start` answers: the question that a cut quotes."""
    replies = (each for each in reversed(messages[:start]) if isinstance(each, AssistantMessage))
    origin = next((reply.origin for reply in replies if reply.text.strip()), None)
    return origin if isinstance(origin, int) else None


def _resume(messages: Messages, cut: Beginning, earlier: HeadRecord | None, start: int) -> int | None:
    """Where the kept steps begin; steps that an earlier head left out stay so."""
    if cut.resume is None:
        inside = earlier is not None and earlier.resume is not None and start < earlier.resume
        return earlier.resume if earlier is not None and inside else None
    if cut.resume >= len(messages):
        return 0  # the head itself: no step is kept
    origin = messages[cut.resume].origin
    assert isinstance(origin, int)
    return origin
