"""`SpendLedger`: what model calls on this machine may cost, and did, over all its processes and their crashes.

Laws:
- With a cap that holds for a call, nothing leaves before its worst case is on disk; where the ledger cannot be used,
  nothing leaves. What a process held when it died stays counted until `reconcile` is told what became of the call.
- Without one, a call waits for nothing: what it did cost is written down a little later, or when the ledger is closed.
- Calls that come together are written down together, in one transaction.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from governors.messages import Usage

from . import book
from .base import LedgerUnusable, Reservation, Spender, SpendingLimit, charge_of, written
from .book import Act, Book, DayTotal, Spent, Where
from .caps import UNIT, Caps, Left, accounts, left_of, units
from .process import Process, is_gone, this_process
from .tables import Unusable

L = TypeVar("L")

_SOON = 1.0  # seconds that what no cap asks for may wait
_MOST_NOTES = 10_000  # kept for a ledger that cannot be written; the sessions' logs have them all


def local_day(at: float) -> str:
    """The user's local day at a time (seconds since 1970), as `2026-12-01`."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class Before:
    """A call that a log tells of: `at` in seconds since 1970, `cost` in US dollars (None: unknown)."""

    spender: Spender
    model: str
    at: float
    cost: float | None
    usage: Usage | None


@dataclass(slots=True)
class _Ticket:
    """Something to be done to the book, and what came of it."""

    act: Act[Any]
    result: Any = None
    done: bool = False


@dataclass(slots=True)
class _Waiting:
    """What is still to be written down, and what a person has not been told yet."""

    notes: deque[Act[Any]] = field(default_factory=lambda: deque(maxlen=_MOST_NOTES))
    told: str = ""


class SpendLedger:
    """The ledger in the file `path`. `where` names the file that a person changes a cap's setting in; `now` is the
    clock (seconds since 1970), `day` gives the local day of a time, `process` who holds what is reserved."""

    def __init__(
        self,
        path: Path,
        caps: Caps = Caps(),  # noqa: B008 - frozen
        *,
        where: Where = lambda setting: "your own moonwake.toml",
        now: Callable[[], float] = time.time,
        day: Callable[[float], str] = local_day,
        process: Callable[[], Process] = this_process,
    ) -> None:
        self.path = path
        self.caps = caps
        self._where = where
        self._now, self._day, self._process = now, day, process
        self._book = Book(path)
        self._turn = anyio.Lock()
        self._tickets: list[_Ticket] = []
        self._waiting = _Waiting()
        self._news = anyio.Event()
        self._limiter = anyio.CapacityLimiter(1)
        self._today = ""

    async def reserve(self, spender: Spender, model: str, most: float | None) -> Reservation:
        """See `Ledger.reserve`."""
        at = self._now()
        taken = Reservation(id=None, spender=spender, model=written(model), most=most, at=at, day=self._day(at))
        if not self._capped(taken):
            return taken
        taken = replace(taken, id=secrets.randbits(62))
        with anyio.CancelScope(shield=True):  # it must be known whether it is held
            try:
                await self._do(partial(self._reserve, taken))
            except Unusable as why:
                raise LedgerUnusable(self._fail_closed(why)) from why
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            await self.settle(taken, 0.0, None)
            raise
        return taken

    async def settle(self, reservation: Reservation, cost: float | None, usage: Usage | None) -> tuple[str, ...]:
        """See `Ledger.settle`."""
        told, act = self._settled(reservation, cost, usage)
        if reservation.id is None:
            self._note(act)
            return told + self._news_of_waiting()
        with anyio.CancelScope(shield=True):
            try:
                due: tuple[str, ...] = await self._do(act)
            except Unusable as why:
                self._note(act)
                due = (
                    f"The spend ledger {self.path} could not be told what the last call did cost, because {why}. Until "
                    "it is, the call counts at its worst case.",
                )
        return told + due

    async def left(self, spender: Spender) -> tuple[Left, ...]:
        """How the caps that hold for `spender` stand. Raises `LedgerUnusable`."""
        concerned = [each for each in accounts(self.caps, spender, self._day(self._now())) if each.cap is not None]
        if not concerned:
            return ()
        totals = await self._ask(lambda on: [book.total_of(on, each) for each in concerned])
        return tuple(left_of(each, total) for each, total in zip(concerned, totals, strict=True))

    async def today(self) -> float:
        """What was spent on this local day, by all processes (US dollars). Raises `LedgerUnusable`."""
        who = Spender(agent="", session="", turn=None, purpose="", workspace="")
        (day,) = (each for each in accounts(self.caps, who, self._day(self._now())) if each.scope == "day")
        return float((await self._ask(lambda on: book.total_of(on, day))).spent / UNIT)

    def standing(self) -> tuple[Left, ...]:
        """How the caps of days and months stand, of all agents that have some. Blocks. Raises `LedgerUnusable`."""
        day = self._day(self._now())
        concerned = dict.fromkeys(
            each
            for agent in ("", *self.caps.agents)
            for each in accounts(self.caps, Spender(agent=agent, session="", turn=None, purpose="", workspace=""), day)
            if each.cap is not None and each.scope != "session"
        )
        return self._look(lambda on: tuple(left_of(each, book.total_of(on, each)) for each in concerned))

    def days(self, since: str | None = None, until: str | None = None) -> tuple[DayTotal, ...]:
        """What was spent from the local day `since` to `until`, both whole. Blocks. Raises `LedgerUnusable`."""
        return self._look(lambda on: book.days(on, since or "", until or "9999"))

    def _look(self, act: Act[tuple[L, ...]]) -> tuple[L, ...]:
        if not self.path.exists():
            return ()
        with closing(Book(self.path)) as looked:
            try:
                (found,) = looked.run([act])
            except Unusable as why:
                raise LedgerUnusable(f"The spend ledger {self.path} cannot be read, because {why}.") from why
        return tuple(found)

    async def lost(self) -> tuple[Reservation, ...]:
        """What processes that have ended for sure still hold. Raises `LedgerUnusable`."""
        held = await self._ask(lambda on: book.held_by_others(on, self._process()))
        return tuple(each.reservation for each in held if is_gone(each.process))

    async def reconcile(self, reservation: Reservation, cost: float | None, usage: Usage | None) -> None:
        """Settle a lost reservation by what the session's log says of its call. Whoever comes first settles it.

        Raises `LedgerUnusable`.
        """
        _, act = self._settled(reservation, cost, usage, once=True)
        await self._ask(act)

    async def misses(self, workspace: str) -> bool:
        """Whether there may be calls in the logs of `workspace` that are not counted. Raises `LedgerUnusable`."""
        return await self._ask(lambda on: book.first_counted(on, workspace)) is not None

    async def count_before(self, workspace: str, found: Iterable[Before]) -> None:
        """Count what was spent before this ledger knew of `workspace`, by its logs, once. Raises `LedgerUnusable`."""
        now, calls = self._now(), [self._before(each) for each in found]
        await self._ask(lambda on: book.count_before(on, written(workspace), now, calls))

    async def keep(self) -> None:
        """Write down, for ever, what no cap waited for. For the background."""
        while True:
            await self._news.wait()
            await anyio.sleep(_SOON)
            await self.flush()

    async def flush(self) -> None:
        """Write down what is waiting. What fails is kept, and said at the next settlement."""
        self._news = anyio.Event()
        if self._waiting.notes:
            with anyio.CancelScope(shield=True):
                try:
                    await self._do(lambda on: None)
                except Unusable as why:
                    self._waiting.told = f"What calls cost is not written into the spend ledger {self.path}: {why}."

    async def close(self) -> None:
        """Write down what is waiting, and give up the file."""
        with anyio.CancelScope(shield=True):
            await self.flush()
            async with self._turn:
                await anyio.to_thread.run_sync(self._book.close, limiter=self._limiter)

    def _capped(self, taken: Reservation) -> bool:
        return self.caps.any and any(each.cap is not None for each in accounts(self.caps, taken.spender, taken.day))

    def _reserve(self, taken: Reservation, on: Any) -> None:
        if taken.day != self._today:
            book.forget_turns(on, taken.day)
            self._today = taken.day
        book.reserve(on, self.caps, taken, self._process(), self._where)

    def _settled(
        self, taken: Reservation, cost: float | None, usage: Usage | None, *, once: bool = False
    ) -> tuple[tuple[str, ...], Act[tuple[str, ...]]]:
        charge = charge_of(taken.most, cost, usage)
        told: tuple[str, ...] = ()
        if charge.why and cost is not None:
            at = "at nothing, as its price is not known" if charge.amount is None else "at its worst case"
            told = (f"A call to {taken.model} is counted {at}: {charge.why}.",)
        counted = usage if usage is not None and not told else Usage()
        spent = Spent(None if charge.amount is None else units(charge.amount), counted)
        return told, lambda on: book.settle(on, self.caps, taken, spent, once=once)

    def _before(self, call: Before) -> tuple[Reservation, Spent]:
        charge = charge_of(None, call.cost, call.usage)
        day, model = self._day(call.at), written(call.model)
        taken = Reservation(id=None, spender=call.spender, model=model, most=None, at=call.at, day=day)
        usage = Usage() if charge.why or call.usage is None else call.usage
        return taken, Spent(None if charge.amount is None else units(charge.amount), usage)

    def _note(self, act: Act[Any]) -> None:
        self._waiting.notes.append(act)
        self._news.set()

    def _news_of_waiting(self) -> tuple[str, ...]:
        told, self._waiting.told = self._waiting.told, ""
        return (told,) if told else ()

    def _fail_closed(self, why: Unusable) -> str:
        mend = (
            "Try again" if why.passing else "Mend it, or move it away: what this workspace's logs say is counted anew"
        )
        return (
            f"Caps are set in {self._where('spend')}, and the spend ledger {self.path} cannot be used, because {why}. "
            f"Nothing was sent. {mend}; without the table [spend] no call needs the ledger."
        )

    async def _ask(self, act: Act[Any]) -> Any:
        with anyio.CancelScope(shield=True):
            try:
                return await self._do(act)
            except Unusable as why:
                raise LedgerUnusable(self._fail_closed(why)) from why

    async def _do(self, act: Act[Any]) -> Any:
        """What `act` gives, done in one transaction with all that wait by then. Raises `Unusable`, `SpendingLimit`."""
        ticket = _Ticket(act)
        self._tickets.append(ticket)
        async with self._turn:
            if not ticket.done:
                batch, self._tickets = self._tickets, []
                await self._commit(batch)
        if isinstance(ticket.result, (Unusable, SpendingLimit)):
            raise ticket.result
        return ticket.result

    async def _commit(self, batch: Iterable[_Ticket]) -> None:
        batch, notes, self._waiting.notes = list(batch), self._waiting.notes, deque(maxlen=_MOST_NOTES)
        acts = [*notes, *(ticket.act for ticket in batch)]
        try:
            results = await anyio.to_thread.run_sync(self._book.run, acts, limiter=self._limiter)
        except Unusable as why:
            results = [why] * len(acts)
            self._waiting.notes.extendleft(reversed(notes))
        for ticket, result in zip(batch, results[len(notes) :], strict=True):
            ticket.result, ticket.done = result, True
