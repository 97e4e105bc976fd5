"""Ledgers for tests: a clock that is set by hand, processes that are not there, and a look into the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from runtime.ledger import Caps, Spender, SpendLedger
from runtime.ledger.process import Process, this_process

NOON = 1_796_126_400.0  # 2026-12-01 12:00 UTC
DAY = 86_400.0
WHO = Spender(agent="ada", session="s1", turn=3, purpose="turn", workspace="/home/ada/notes")


class Clock:
    """Seconds since 1970, and the day they fall on, in UTC."""

    def __init__(self, at: float = NOON) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def utc_day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def ended() -> Process:
    """A process of this machine that has ended."""
    return replace(this_process(), pid=2**22 + 1, started="1")


def ledger(
    path: Path,
    caps: Caps | None = None,
    clock: Clock | None = None,
    process: Callable[[], Process] = this_process,
) -> SpendLedger:
    return SpendLedger(path, caps or Caps(), now=clock or Clock(), day=utc_day, process=process)


def totals(path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Spent and held of every account, in billionths."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT scope, key, spent, held FROM totals").fetchall()
    return {(scope, key): (spent, held) for scope, key, spent, held in rows}


def day_total(path: Path, day: str = "2026-12-01") -> tuple[int, int]:
    return totals(path).get(("day", day), (0, 0))


def assert_sound(path: Path) -> None:
    """What accounts hold is what reservations say, and what is spent is the same by day and by agent."""
    with closing(sqlite3.connect(path)) as connection:
        held = dict(connection.execute("SELECT day, sum(most) FROM reserved GROUP BY day"))
        days = dict(connection.execute("SELECT day, sum(spent) FROM days GROUP BY day"))
        found = connection.execute("SELECT key, spent, held FROM totals WHERE scope = 'day'").fetchall()
    for day, spent, holds in found:
        assert (spent, holds) == (days.get(day, 0), held.get(day, 0))
    assert set(days) | set(held) <= {day for day, _, _ in found}
