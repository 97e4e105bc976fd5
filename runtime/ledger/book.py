"""What is done to the ledger's tables, a function each, and `Book`, which does several in one transaction.

Synchronous, one thread at a time. Laws: what an account has spent and holds never passes its cap by a reservation; what
is held for a call is given back exactly once, when the call is settled; both hold over all processes that have the
file open, as each transaction takes the write lock before it reads.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from governors.messages import Usage

from .base import Reservation, Spender, SpendingLimit
from .caps import LARGEST, UNIT, Account, Caps, Total, accounts, most_units, near, over, refusal, unpriced, warning
from .process import Process
from .tables import moved_away, open_ledger, unusable

T = TypeVar("T")
Act = Callable[[sqlite3.Connection], T]
Where = Callable[[str], str]  # a setting -> the file that a person changes it in

_MOST_TOKENS = 10**15  # what SQLite adds up without a doubt
_RESERVED = "id, at, day, agent, session, turn, purpose, workspace, model, most"


@dataclass(frozen=True, slots=True)
class Lost:
    """A reservation (`most` in billionths) whose process has ended, perhaps: `process` says which it was."""

    reservation: Reservation
    process: Process


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call is counted at: billionths of a dollar (None: its price is not known), and its tokens."""

    amount: int | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class DayTotal:
    """What was spent on a day in a workspace by an agent on a model for a purpose. `counts` are `calls`, `plain`,
    `read`, `written`, `output`, `reasoning`, `cost` (US dollars) and `unpriced` (calls of unknown price)."""

    day: str
    workspace: str
    agent: str
    model: str
    purpose: str
    counts: Mapping[str, Any]


class Book:
    """The ledger's file at `path`, opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # which file: its device and inode

    def run(self, acts: Sequence[Act[Any]]) -> list[Any]:
        """What each of `acts` gives, all in one transaction; a `SpendingLimit` is given, not raised.

        Raises `Unusable`, and then none of them was done.
        """
        try:
            return self._tried(acts)
        except sqlite3.Error as error:
            self.close()
            if not moved_away(error):
                raise unusable(error) from error
        try:
            return self._tried(acts)  # in the file that stands there now
        except sqlite3.Error as error:
            self.close()
            raise unusable(error) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tried(self, acts: Sequence[Act[Any]]) -> list[Any]:
        if self._opened != _identity(self.path):  # somebody removed it, or put another there
            self.close()
        if self._connection is None:
            self._connection = open_ledger(self.path)
            self._opened = _identity(self.path)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            results = [_answer(act, connection) for act in acts]
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return results


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _answer(act: Act[T], connection: sqlite3.Connection) -> T | SpendingLimit:
    try:
        return act(connection)
    except SpendingLimit as refused:  # raised before anything was written
        return refused


def reserve(connection: sqlite3.Connection, caps: Caps, taken: Reservation, process: Process, where: Where) -> None:
    """Hold `taken.most` for a call. Raises `SpendingLimit`."""
    who, most = taken.spender, most_units(taken.most)
    concerned = accounts(caps, who, taken.day)
    for account in concerned:
        if account.cap is None:
            continue
        if most is None:
            raise SpendingLimit(unpriced(account, taken.model, where(account.setting)))
        total = total_of(connection, account)
        if over(account, total, most):
            raise SpendingLimit(refusal(account, total, most, taken.model, where(account.setting)))
    _add(connection, concerned, taken.day, spent=0, held=most or 0)
    values = (taken.id, taken.at, taken.day, who.agent, who.session, who.turn, who.purpose, who.workspace, taken.model)
    whose = (process.pid, process.started, process.boot, process.place)
    connection.execute(
        f"INSERT INTO reserved ({_RESERVED}, pid, started, boot, place) VALUES ({', '.join('?' * 14)})",
        (*values, most or 0, *whose),
    )


def settle(
    connection: sqlite3.Connection, caps: Caps, taken: Reservation, spent: Spent, *, once: bool = False
) -> tuple[str, ...]:
    """Count a call at `spent` in place of what was held for it, and give the warnings that are due.

    What is no longer held was in a file that somebody removed: it is counted all the same, unless it was to be settled
    `once`, by whoever came first.
    """
    held = connection.execute("SELECT most FROM reserved WHERE id = ?", (taken.id,)).fetchone()
    if held is None and once:
        return ()
    connection.execute("DELETE FROM reserved WHERE id = ?", (taken.id,))
    amount = min(spent.amount or 0, LARGEST if held is None else held[0])
    concerned = accounts(caps, taken.spender, taken.day)
    _add(connection, concerned, taken.day, spent=amount, held=0 if held is None else -held[0])
    _count(connection, taken, spent, amount)
    return tuple(_warnings(connection, concerned))


def total_of(connection: sqlite3.Connection, account: Account) -> Total:
    """What an account stands at."""
    asked = "SELECT spent, held FROM totals WHERE scope = ? AND key = ?"
    found = connection.execute(asked, (account.scope, account.key)).fetchone()
    return Total() if found is None else Total(*found)


def held_by_others(connection: sqlite3.Connection, process: Process) -> tuple[Lost, ...]:
    """All reservations of other processes than `process`."""
    asked = f"SELECT pid, started, boot, place, {_RESERVED} FROM reserved"
    found = []
    for pid, started, boot, place, *row in connection.execute(asked):
        whose = Process(pid, started, boot, place)
        if whose != process:
            found.append(Lost(_reservation(row), whose))
    return tuple(found)


def days(connection: sqlite3.Connection, since: str, until: str) -> tuple[DayTotal, ...]:
    """What was spent on the days from `since` to `until`."""
    rows = connection.execute("SELECT * FROM days WHERE day BETWEEN ? AND ?", (since, until))
    names = ("calls", "plain", "read", "written", "output", "reasoning")
    found = []
    for day, workspace, agent, model, purpose, *counted, spent, unknown in rows:
        counts = {**dict(zip(names, counted, strict=True)), "cost": spent / UNIT, "unpriced": unknown}
        found.append(DayTotal(day, workspace, agent, model, purpose, counts))
    return tuple(found)


def count_before(
    connection: sqlite3.Connection, workspace: str, now: float, found: Iterable[tuple[Reservation, Spent]]
) -> None:
    """Count those calls of a workspace's logs that were made before the ledger knew of it, unless that was done."""
    since = first_counted(connection, workspace)
    if since is None:
        return
    connection.execute("REPLACE INTO known VALUES (?, ?, 1)", (workspace, min(since, now)))
    for each, spent in found:
        if each.at < since:
            amount = min(spent.amount or 0, LARGEST)
            _add(connection, accounts(Caps(), each.spender, each.day), each.day, spent=amount, held=0)
            _count(connection, each, spent, amount)


def first_counted(connection: sqlite3.Connection, workspace: str) -> float | None:
    """From when on the calls of `workspace` are counted (seconds since 1970; infinite: none is); None: all are."""
    found = connection.execute("SELECT since, counted FROM known WHERE workspace = ?", (workspace,)).fetchone()
    if found is None:
        return inf
    since, counted = found
    return None if counted else float(since)


def forget_turns(connection: sqlite3.Connection, day: str) -> None:
    """Drop what no cap will ask for: turns of days before `day`, and totals of days a year gone."""
    connection.execute("DELETE FROM totals WHERE scope = 'turn' AND held = 0 AND touched < ?", (day,))
    old = f"{int(day[:4]) - 1}{day[4:]}"
    connection.execute("DELETE FROM totals WHERE scope != 'session' AND held = 0 AND touched < ?", (old,))
    connection.execute("DELETE FROM warned WHERE scope = 'turn'")


def _add(connection: sqlite3.Connection, concerned: Sequence[Account], day: str, *, spent: int, held: int) -> None:
    for account in concerned:
        connection.execute(
            "INSERT INTO totals VALUES (?, ?, ?, max(0, ?), ?) ON CONFLICT (scope, key) DO UPDATE SET "
            "spent = spent + ?, held = held + ?, touched = excluded.touched",
            (account.scope, account.key, spent, held, day, spent, held),
        )


def _count(connection: sqlite3.Connection, taken: Reservation, spent: Spent, amount: int) -> None:
    usage, who = spent.usage, taken.spender
    connection.execute("INSERT OR IGNORE INTO known VALUES (?, ?, 0)", (who.workspace, taken.at))
    written = usage.cache_write_5m + usage.cache_write_1h
    counts = (usage.plain, usage.cache_read, written, usage.output, usage.reasoning)
    values = (1, *(min(each, _MOST_TOKENS) for each in counts), amount, int(spent.amount is None))
    names = ("calls", "plain", "read", "written", "output", "reasoning", "spent", "unknown")
    key = "(day, workspace, agent, model, purpose)"
    connection.execute(
        f"INSERT INTO days VALUES ({', '.join('?' * 13)}) ON CONFLICT {key} DO UPDATE SET "
        + ", ".join(f"{name} = {name} + excluded.{name}" for name in names),
        (taken.day, who.workspace, who.agent, taken.model, who.purpose, *values),
    )


def _warnings(connection: sqlite3.Connection, concerned: Sequence[Account]) -> Iterable[str]:
    for account in concerned:
        if account.cap is None:
            continue
        total = total_of(connection, account)
        if not near(account, total):
            continue
        values = (account.scope, account.key, account.cap)
        if connection.execute("INSERT OR IGNORE INTO warned VALUES (?, ?, ?)", values).rowcount:
            yield warning(account, total)


def _reservation(row: Sequence[Any]) -> Reservation:
    identity, at, day, agent, session, turn, purpose, workspace, model, most = row
    spender = Spender(agent=agent, session=session, turn=turn, purpose=purpose, workspace=workspace)
    return Reservation(id=identity, spender=spender, model=model, at=at, day=day, most=most / UNIT)
