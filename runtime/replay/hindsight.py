"""The cheapest schedule that knows the future, by dynamic programming.

What may be chosen: at each call, whether to edit (everything editable, as the policies do it); for each write, its
lifetime; for each gap, how many warmings, or to let the cache go cold. The state after a call is how many results
are stubs and the lifetime of the last write; nothing else of the past matters to what follows, so the result is
exact for these choices. It bounds from below every policy that edits whole batches and no more. It does not bound
one that would edit a part of a batch, or results younger than the newest ten. Warmings stand at the very end of a
lifetime, and none is paid after the last call. Budgets (cuts) are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from governors.economy import Prices

from .trace import NEWEST_KEPT, Trace


@dataclass(frozen=True, slots=True)
class _Sizes:
    """For each call its time, its whole prompt and how many results are editable; for each result where it stands
    in the whole prompt; for each number of stubs what they save."""

    at: tuple[float, ...]
    prompt: tuple[int, ...]
    editable: tuple[int, ...]
    place: tuple[int, ...]
    saved: tuple[int, ...]


def hindsight(
    trace: Trace, prices: Prices, *, edits: bool = True, warming: bool | None = None, lifetimes: tuple[int, ...] = ()
) -> float:
    """The least cost of `trace`, in the unit of the prices. `edits=False` and `warming=False` take that freedom away;
    `lifetimes` are those to choose from (all that the prices offer)."""
    if not trace.calls:
        return 0.0
    sizes, offered = _sizes(trace), lifetimes or prices.lifetimes
    warms = prices.warming if warming is None else warming
    best = {(0, lifetime): prices.call(sizes.prompt[0], 0, lifetime) for lifetime in offered}
    for number in range(1, len(sizes.at)):
        following: dict[tuple[int, int], float] = {}
        for (stubs, lifetime), spent in best.items():
            before = sizes.prompt[number - 1] - sizes.saved[stubs]
            gap = sizes.at[number] - sizes.at[number - 1]
            for paid, warm in _gap(before, gap, lifetime, prices, warms):
                for now in {stubs, max(stubs, sizes.editable[number])} if edits else {stubs}:
                    prompt = sizes.prompt[number] - sizes.saved[now]
                    shared = before if now == stubs else min(before, sizes.place[stubs] - sizes.saved[stubs])
                    for chosen in offered:
                        cost = spent + paid + prices.call(prompt, shared if warm else 0, chosen)
                        if cost < following.get((now, chosen), float("inf")):
                            following[now, chosen] = cost
        best = following
    return min(best.values())


def _gap(before: int, gap: float, lifetime: int, prices: Prices, warms: bool) -> Iterator[tuple[float, bool]]:
    """The ways through a gap: what each costs, and whether the cache is warm at its end."""
    needed = max(0, ceil(gap / lifetime) - 1)
    if needed == 0 or warms:
        yield needed * prices.at(before).read * before, True
    if needed > 0:
        yield 0.0, False


def _sizes(trace: Trace) -> _Sizes:
    tokens = trace.base
    prompts: list[int] = []
    editable: list[int] = []
    place: list[int] = []
    saved = [0]
    for call in trace.calls:
        for item in call.items:
            if item.stub is not None and item.stub < item.tokens:
                place.append(tokens)
                saved.append(saved[-1] + item.tokens - item.stub)
            tokens += item.tokens
        prompts.append(tokens)
        editable.append(max(0, len(place) - NEWEST_KEPT))
    return _Sizes(
        tuple(call.at for call in trace.calls), tuple(prompts), tuple(editable), (*place, tokens), tuple(saved)
    )
