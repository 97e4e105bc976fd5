"""How to bring a request under its budget: a cut, and where that is not enough, smaller results of the current turn.

Pure arithmetic. In this order: whole turns go, then the oldest steps of a turn; the newest step is kept as long as its
results, reduced to their stubs from the largest on, let it fit; then it goes too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from .messages import AssistantMessage, Message, Messages, ToolResult
from .snip import Snip, apply_snip, snip


@dataclass(frozen=True, slots=True)
class Plan:
    """`cut` and the indices of the results that become stubs, both in the list that was given."""

    cut: Snip | None
    stubs: tuple[int, ...]


def plan_fit(
    messages: Messages,
    size: Callable[[Message], int],
    stub: Callable[[ToolResult], ToolResult],
    room: int,
    *,
    turn: int,
    lead: int = 0,
    boundaries: Collection[int] | None = None,
    measure: Callable[[str], int],
) -> Plan | None:
    """The plan that brings `messages` under `room` tokens and keeps most; None when nothing does."""
    sizes = [size(message) for message in messages]
    cut = snip(messages, sizes, room, turn=turn, lead=lead, boundaries=boundaries, measure=measure)
    for candidate in _candidates(messages, cut):
        kept = messages if candidate is None else apply_snip(messages, candidate, lead=lead)
        over = sum(size(message) for message in kept) - room
        stubs = _shrink(kept, size, stub, over)
        if stubs is not None:
            places = {id(message): index for index, message in enumerate(messages)}
            return Plan(candidate, tuple(sorted(places[id(message)] for message in stubs)))
    return None


def _candidates(messages: Messages, cut: Snip | None) -> list[Snip | None]:
    """The cut, and before one that keeps no step at all the same one with the newest step."""
    if cut is None or cut.resume != len(messages):
        return [cut] if cut is None or cut.quote is None else [cut, replace(cut, quote=None)]
    steps = [i for i in range(cut.start, len(messages)) if isinstance(messages[i], AssistantMessage)]
    if not steps:
        return [cut]
    newest = replace(cut, resume=steps[-1] if len(steps) > 1 else None)
    return [newest, cut]


def _shrink(
    messages: Sequence[Message],
    size: Callable[[Message], int],
    stub: Callable[[ToolResult], ToolResult],
    over: int,
) -> list[ToolResult] | None:
    """The results to reduce, largest first, until `over` tokens are saved; None when they do not save so much."""
    results = [(index, each) for index, each in enumerate(messages) if isinstance(each, ToolResult)]
    savings = sorted(
        ((size(each) - size(stub(each)), index, each) for index, each in results if not each.stand_in),
        key=lambda entry: (-entry[0], entry[1]),
    )
    chosen: list[ToolResult] = []
    for saved, _, result in savings:
        if over <= 0:
            break
        if saved > 0:
            chosen.append(result)
            over -= saved
    return chosen if over <= 0 else None
