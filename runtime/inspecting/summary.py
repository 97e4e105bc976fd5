"""The misses of a session added up by cause. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from .causes import Miss, Misses

#: Causes that name none: a prefix that moved and nothing in the log says why.
UNNAMED = frozenset({"unexplained"})


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """All misses of one cause: how many, the tokens lost, and what they cost (US dollars; None: unknown)."""

    cause: str
    misses: int
    lost: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """`could` is what all requests that have a predecessor could have read, `lost` what they did not (tokens).
    `named` is the share of `lost` whose cause is known, 1.0 where nothing was lost. The largest loss comes first."""

    requests: int
    could: int
    lost: int
    cost: float | None
    named: float
    causes: tuple[CauseTotal, ...]


def summary_of(found: Misses) -> Summary:
    by_cause: dict[str, list[Miss]] = {}
    for miss in found.misses:
        by_cause.setdefault(miss.cause, []).append(miss)
    causes = [
        CauseTotal(cause, len(each), sum(miss.lost for miss in each), added(miss.cost for miss in each))
        for cause, each in by_cause.items()
    ]
    causes.sort(key=attrgetter("lost"), reverse=True)
    lost = sum(each.lost for each in causes)
    unnamed = sum(each.lost for each in causes if each.cause in UNNAMED)
    return Summary(
        requests=found.requests,
        could=found.could,
        lost=lost,
        cost=added(each.cost for each in causes),
        named=1 - unnamed / lost if lost else 1.0,
        causes=tuple(causes),
    )


def added(costs: Iterable[float | None]) -> float | None:
    """The sum of `costs`; None when one of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
