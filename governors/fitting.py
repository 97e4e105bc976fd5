"""How to bring a request under its budget: a cut, and where that is not enough, smaller results of the current turn.

Pure arithmetic. In this order: whole turns go, then the oldest steps of a turn; the newest step is kept as long as its
results, reduced to their stubs from the largest on, let it fit; then it goes too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from .messages import AssistantMessage, Message, Messages, SystemPatch, ToolResult
from .snip import LOW_WATERMARK, WHOLE_TURN, Snip, apply_snip, snip


@dataclass(frozen=True, slots=True)
class Plan:
    """`cut` and the indices of the results that become stubs, both in the list that was given. `size` is what is
    left, in tokens."""

    cut: Snip | None
    stubs: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Marks:
    """How much room the messages have, in tokens: at most `room`; a cut comes under `low`, or under `whole` where that
    keeps a turn whole."""

    room: int
    low: float
    whole: float

    @classmethod
    def of(cls, room: int, growth: int) -> Marks:
        """Marks that leave room to grow: `growth` is the most that a call has added so far."""
        return cls(room, min(room * LOW_WATERMARK, room - 2 * growth), min(room * WHOLE_TURN, room - growth))


def plan_fit(
    messages: Messages,
    size: Callable[[Message], int],
    stub: Callable[[ToolResult], ToolResult],
    marks: Marks,
    *,
    turn: int,
    lead: int = 0,
    boundaries: Collection[int] | None = None,
    keep_patches: bool = True,
    made: Callable[[str], Message],
) -> Plan | None:
    """The plan that brings `messages` under `marks.room` tokens and keeps most; None when nothing does.

    `made` gives the user's message that a cut puts in for a text, so that it is sized once.
    """
    sizes, room = [size(message) for message in messages], marks.room
    cut = snip(
        messages,
        sizes,
        room,
        turn=turn,
        lead=lead,
        boundaries=boundaries,
        measure=lambda text: size(made(text)),
        low=marks.low,
        whole=marks.whole,
        keep_patches=keep_patches,
    )
    places = {id(message): index for index, message in enumerate(messages)}
    for candidate in _candidates(messages, cut, lead):
        kept = messages if candidate is None else apply_snip(messages, candidate, lead=lead, keep_patches=keep_patches)
        left = sum(
            size(each if id(each) in places or isinstance(each, SystemPatch) else made(each.text)) for each in kept
        )
        stubs = _shrink(kept, size, stub, left - room)
        if stubs is not None:
            left -= sum(saved for saved, _ in stubs)
            return Plan(candidate, tuple(sorted(places[id(message)] for _, message in stubs)), left)
    return None


def least_size(
    messages: Messages,
    size: Callable[[Message], int],
    stub: Callable[[ToolResult], ToolResult],
    *,
    turn: int,
    lead: int = 0,
    boundaries: Collection[int] | None = None,
    keep_patches: bool = True,
) -> int:
    """What must stay of `messages` in any case, in tokens: what is left when all has gone that may."""
    sizes = [size(message) for message in messages]
    cut = snip(
        messages, sizes, 0, turn=turn, lead=lead, boundaries=boundaries, low=-1, whole=-1, keep_patches=keep_patches
    )
    kept = messages if cut is None else apply_snip(messages, cut, lead=lead, keep_patches=keep_patches)
    return sum(min(size(each), size(stub(each))) if isinstance(each, ToolResult) else size(each) for each in kept)


def _candidates(messages: Messages, cut: Snip | None, lead: int) -> list[Snip | None]:
    """The cut, and before one that keeps no step at all the same one with the newest step."""
    if cut is None or cut.resume != len(messages):
        return [cut] if cut is None or cut.quote is None else [cut, replace(cut, quote=None)]
    steps = [i for i in range(cut.start, len(messages)) if isinstance(messages[i], AssistantMessage)]
    newest = replace(cut, resume=steps[-1] if len(steps) > 1 else None)
    return [newest if newest.start > lead or newest.resume is not None else None, cut]


def _shrink(
    messages: Sequence[Message],
    size: Callable[[Message], int],
    stub: Callable[[ToolResult], ToolResult],
    over: int,
) -> list[tuple[int, ToolResult]] | None:
    """The results to reduce, largest first, until `over` tokens are saved, each with what it saves; None when they do
    not save so much."""
    if over <= 0:
        return []
    results = [each for each in messages if isinstance(each, ToolResult) and not each.stand_in]
    savings = sorted(((size(each) - size(stub(each)), each) for each in results), key=_first, reverse=True)
    chosen: list[tuple[int, ToolResult]] = []
    for saved, result in savings:
        if over <= 0 or saved <= 0:
            break
        chosen.append((saved, result))
        over -= saved
    return chosen if over <= 0 else None


def _first(pair: tuple[int, ToolResult]) -> int:
    return pair[0]
