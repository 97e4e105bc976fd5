"""What the last turn did cost, call by call, and how session, day and caps stand: the command /cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..inspecting import Miss, ModelCall, added
from ..ledger import Left
from ..session.entries import Entry
from ..session.moving.turns import turns_of
from .sanitize import clean
from .wording import dollars, plural, seconds, tokens

_WIDE = 66  # columns of the table
_HEAD = ("call", "read", "written", "plain", "out", "cost", "first", "whole")


@dataclass(frozen=True, slots=True)
class Bill:
    """The calls of the last turn with their `misses` by entry, all `calls` of the session, what was spent today
    (US dollars; None: nobody knows), and the caps that hold."""

    turn: tuple[ModelCall, ...]
    misses: dict[int, Miss]
    calls: tuple[ModelCall, ...]
    today: float | None = None
    caps: tuple[Left, ...] = ()


def last_turn(branch: Sequence[Entry], calls: Sequence[ModelCall]) -> tuple[int | None, tuple[ModelCall, ...]]:
    """The entry that opened the last turn of `branch`, and the calls that were made in it since."""
    turns = turns_of(branch)
    if not turns:
        return None, ()
    own = {entry.id for entry in turns[-1].entries}
    return turns[-1].opening[-1].id, tuple(call for call in calls if call.id in own)


def cost_lines(bill: Bill, columns: int) -> str:
    """All of it as text for at most `columns` columns, as far as words allow."""
    return clean("\n".join([*_turn(bill, columns), *_standing(bill)]))


def _turn(bill: Bill, columns: int) -> Iterator[str]:
    if not bill.turn:
        yield "No model was asked in the last turn."
        return
    models = ", ".join(dict.fromkeys(call.model for call in bill.turn))
    took = sum(call.outcome.seconds or 0.0 for call in bill.turn if call.outcome is not None)
    yield f"The last turn: {plural(len(bill.turn), 'call')} to {models}, {_sum(bill.turn)}, {seconds(took)}."
    if columns >= _WIDE:
        yield _line(_HEAD)
    for call in bill.turn:
        yield _line(_cells(call)) if columns >= _WIDE else _narrow(call)
        yield from (f"     {note}" for note in _notes(call, bill.misses.get(call.id)))


def _line(cells: Sequence[str]) -> str:
    widths = (-7, 7, 8, 7, 7, 10, 8, 9)
    padded = (cell.ljust(-width) if width < 0 else cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "".join(padded).rstrip()


def _cells(call: ModelCall) -> tuple[str, ...]:
    usage, outcome = call.usage, call.outcome
    counted = (
        ("?",) * 4
        if usage is None
        else (
            tokens(usage.cache_read),
            tokens(usage.cache_write_5m + usage.cache_write_1h),
            tokens(usage.plain),
            tokens(usage.output),
        )
    )
    first = "" if outcome is None or outcome.first is None else seconds(outcome.first)
    whole = "" if outcome is None or outcome.seconds is None else seconds(outcome.seconds)
    return (f"#{call.id}", *counted, _price(call.cost), first, whole)


def _narrow(call: ModelCall) -> str:
    name, read, written, plain, out, cost, first, whole = _cells(call)
    times = f", {whole}" + (f" (first piece {first})" if first else "") if whole else ""
    return f"{name}  {cost}{times}\n     {read} read, {written} written, {plain} plain, {out} out"


def _notes(call: ModelCall, miss: Miss | None) -> Iterator[str]:
    """What is out of the ordinary about a call."""
    request, outcome, usage = call.request, call.outcome, call.usage
    if request.purpose != "turn":
        yield request.purpose.replace("_", " ")
    if usage is not None and usage.reasoning:
        yield f"{tokens(usage.reasoning)} of what came out was reasoning"
    if miss is not None:
        cost = "" if miss.cost is None else f" for {dollars(miss.cost)}"
        why = f"{miss.cause} ({miss.detail})" if miss.detail else miss.cause
        yield f"cache: {tokens(miss.lost)} that could have been read were paid anew{cost}: {why}"
    if outcome is None:
        most = "" if request.reserved is None else f"; it counts at its worst case, {dollars(request.reserved)}"
        yield f"it has no outcome yet{most}"
    elif outcome.problem:
        yield f"failed: {outcome.problem.get('kind') or 'unknown'}"
    elif outcome.stop == "aborted":
        yield "stopped"


def _standing(bill: Bill) -> Iterator[str]:
    counted = [call.usage for call in bill.calls if call.usage is not None]
    prompt = sum(usage.prompt for usage in counted)
    read = sum(usage.cache_read for usage in counted)
    share = f", {100 * read / prompt:.0f} % of prompts read from the cache" if prompt else ""
    yield f"The session: {_sum(bill.calls)} in {plural(len(bill.calls), 'call')}{share}."
    if bill.today is not None:
        yield f"Today, on this machine: {dollars(bill.today)}."
    for cap in bill.caps:
        held = f", {dollars(cap.held)} reserved" if cap.held else ""
        yield f"Cap of {dollars(cap.cap)} {cap.what}: {dollars(cap.left)} left ({dollars(cap.spent)} spent{held})."


def _sum(calls: Sequence[ModelCall]) -> str:
    """What is known of the cost of calls; those without usage were not billed, or nobody knows."""
    total = added(call.cost for call in calls if call.usage is not None)
    known = sum(call.cost for call in calls if call.cost is not None)
    if total is not None:
        waiting = any(call.outcome is None for call in calls)
        return f"{dollars(total)} and what has no outcome yet" if waiting else dollars(total)
    return f"{dollars(known)} and what has no known price" if known else "no known price"


def _price(cost: float | None) -> str:
    return "?" if cost is None else dollars(cost)
