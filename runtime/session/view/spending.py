"""What a session cost, by the outcomes in its log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..entries import Entry, HeadRecord, OutcomeRecord, RequestRecord


@dataclass(frozen=True, slots=True)
class Share:
    """What requests of one purpose came to: how many, tokens read from the cache, US dollars (None: unknown)."""

    requests: int = 0
    read: int = 0
    cost: float | None = 0.0


def spent(entries: Iterable[Entry], copied: int = 0) -> float | None:
    """US dollars of all requests so far; None when some of it is unknown.

    `entries` may begin anywhere before the newest head that was written: each head carries the sum before it. Those up
    to `copied` (`Header.copied`) were paid for by the session that was forked.
    """
    total: float | None = 0.0
    for entry in entries:
        if entry.id <= copied:
            continue
        match entry.record:
            case HeadRecord(spent=before):
                total = before
            case OutcomeRecord(usage=usage, cost=cost) if usage is not None:
                total = None if total is None or cost is None else total + cost
            case _:
                pass
    return total


def share_of(entries: Iterable[Entry], purpose: str) -> Share:
    """What the requests of `purpose` among `entries` came to."""
    wanted: set[int] = set()
    requests, read, cost = 0, 0, 0.0
    known = True
    for entry in entries:
        match entry.record:
            case RequestRecord(purpose=its) if its == purpose:
                wanted.add(entry.id)
                requests += 1
            case OutcomeRecord(request=request, usage=usage) as outcome if request in wanted and usage is not None:
                read += usage.cache_read
                known = known and outcome.cost is not None
                cost += outcome.cost or 0.0
            case _:
                pass
    return Share(requests, read, cost if known else None)
