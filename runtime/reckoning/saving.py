"""What the provider's cache saved, against the same prompts paid in full. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..providers.base import Price
from .bills import Bill

WARMING = "warming"


@dataclass(frozen=True, slots=True)
class Saving:
    """US dollars: `saved` by the cache, `warming` already taken off, in `calls` whose prices are known."""

    saved: float = 0.0
    warming: float = 0.0
    warmings: int = 0
    calls: int = 0


def saving_of(bills: Iterable[Bill], price: Callable[[Bill], Price | None]) -> Saving:
    """What reading from the cache saved, less what writing to it cost beyond plain tokens, less all of the warmings,
    which would not have been sent without one. What a single warming brought cannot be told from a log."""
    saved = warming = 0.0
    warmings = calls = 0
    for bill in bills:
        known = price(bill)
        if known is None or bill.state not in ("billed", "unpriced"):
            continue
        usage, at = bill.usage, known.at(bill.usage.prompt)
        calls += 1
        if bill.purpose == WARMING:
            warmings += 1
            warming += known.cost(usage)
            continue
        saved += usage.cache_read * (at.plain - at.cache_read)
        saved -= usage.cache_write_5m * (at.cache_write_5m - at.plain)
        saved -= usage.cache_write_1h * (at.cache_write_1h - at.plain)
    return Saving(saved / 1_000_000 - warming, warming, warmings, calls)
