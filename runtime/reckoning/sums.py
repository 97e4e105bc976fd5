"""Bills added up, by whatever they have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields
from math import fsum
from typing import TypeVar

from .bills import Bill

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What some calls came to: tokens, and US dollars of those whose cost is known. `unpriced` and `unknown` are how
    many calls are not in `cost`; `most` is what the unknown ones may have cost at most, as far as it was reserved."""

    calls: int = 0
    plain: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float = 0.0
    unpriced: int = 0
    unknown: int = 0
    most: float = 0.0

    def __add__(self, other: Sum) -> Sum:
        return Sum(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Sum)})

    @property
    def prompt(self) -> int:
        return self.plain + self.read + self.written

    @property
    def cached(self) -> float:
        """The share of prompts that was read from the cache, 0 to 1."""
        return self.read / self.prompt if self.prompt else 0.0


def summed(bills: Iterable[Bill]) -> Sum:
    """All of `bills` in one; exact, in whatever order they come."""
    all_ = tuple(bills)
    usages = [bill.usage for bill in all_]
    lost = [bill for bill in all_ if bill.state == "unknown"]
    return Sum(
        calls=len(all_),
        plain=sum(usage.plain for usage in usages),
        read=sum(usage.cache_read for usage in usages),
        written=sum(usage.cache_write_5m + usage.cache_write_1h for usage in usages),
        output=sum(usage.output for usage in usages),
        reasoning=sum(usage.reasoning for usage in usages),
        cost=fsum(bill.cost for bill in all_ if bill.cost is not None),
        unpriced=sum(bill.state == "unpriced" for bill in all_),
        unknown=len(lost),
        most=fsum(bill.reserved or 0.0 for bill in lost),
    )


def grouped(bills: Iterable[Bill], key: Callable[[Bill], K]) -> dict[K, Sum]:
    """A sum for each `key`, in the order in which they first come."""
    groups: dict[K, list[Bill]] = {}
    for bill in bills:
        groups.setdefault(key(bill), []).append(bill)
    return {each: summed(own) for each, own in groups.items()}
