"""What a session cost, by the outcomes in its log."""

from __future__ import annotations

from collections.abc import Iterable

from .entries import Entry, HeadRecord, OutcomeRecord


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
