"""What a session cost, by the outcomes in its log."""

from __future__ import annotations

from collections.abc import Iterable

from .entries import Entry, HeadRecord, OutcomeRecord


def spent(entries: Iterable[Entry]) -> float | None:
    """US dollars of all requests so far; None when some of it is unknown.

    `entries` may begin anywhere before the newest head that was written: each head carries the sum before it.
    """
    total: float | None = 0.0
    for entry in entries:
        match entry.record:
            case HeadRecord(spent=before):
                total = before
            case OutcomeRecord(usage=usage, cost=cost) if usage is not None:
                total = None if total is None or cost is None else total + cost
            case _:
                pass
    return total
