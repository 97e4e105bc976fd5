"""Keeps the cache warm while nobody talks: after a turn, minimal requests just before what was kept expires.

When, and how many, is the economy's decision (`governors.economy.plan_warming`): never more than a cold start would
cost, none where a model is free or reading renews nothing. Laws:
- A warming is in the log before it leaves and its outcome after it, with usage and cost, whatever became of it.
- None is sent while the disk refuses, after the cache expired, or after anything moved the prefix.
- None is sent that the spending limits refuse.
- One that fails, or that finds nothing kept, is the last of its gap.
- A turn that begins, a stop and a close end it at once; it belongs to the task group of the agent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from governors.wire.encoded import dump_bytes

from ..errors import SessionError
from ..events import CacheKeptWarm
from ..ledger.base import LedgerUnusable, SpendingLimit
from ..providers.base import ChosenModel
from ..session.session import Session
from .desk import Desk
from .renewing import renewal_of
from .reserving import UNSEEN, most_output
from .sending import Outgoing, Sent, send
from .workroom import Workroom

logger = logging.getLogger(__name__)

_LEAST_WAIT = 1.0  # seconds that an answer may take at least, however late it is


@dataclass(frozen=True, slots=True)
class _Pause:
    """One wait of an agent. `scope` ends it, `over` tells that it has ended."""

    scope: anyio.CancelScope
    over: anyio.Event


class Warming:
    """Of one agent; `emit` says what was done, when somebody listens again."""

    def __init__(
        self, session: Session, room: Workroom, group: TaskGroup, emit: Callable[[CacheKeptWarm], None]
    ) -> None:
        self._session, self._room, self._group, self._emit = session, room, group, emit
        self._pause: _Pause | None = None
        self._done = CacheKeptWarm()

    def begin(self) -> None:
        """The agent rests: keep its cache warm for as long as that pays."""
        times = self._room.warming_times()
        if times:
            self._pause = _Pause(anyio.CancelScope(), anyio.Event())
            self._group.start_soon(self._keep, self._pause, times)

    def cancel(self) -> None:
        """Send nothing more. What is under way is broken off."""
        if self._pause is not None:
            self._pause.scope.cancel()

    async def end(self) -> None:
        """Send nothing more, and wait until what was sent is recorded."""
        self.cancel()
        if self._pause is not None:
            await self._pause.over.wait()
            self._pause = None

    async def close_gap(self) -> None:
        """A turn begins: end, and tell those who listen now what was done since the last."""
        await self.end()
        done, self._done = self._done, CacheKeptWarm()
        if done.requests:
            self._emit(done)

    async def _keep(self, pause: _Pause, times: tuple[float, ...]) -> None:
        desk, sleep = self._room.desk(), self._room.sleep
        model = desk.model()
        try:
            with pause.scope:
                for at in times:
                    await sleep(max(0.0, at - desk.now()))
                    if not await self._warm(desk, model):
                        return
        except SessionError:
            logger.info("the cache of %s is not kept warm: its session is closed", self._session.id)
        except Exception:  # the task boundary of something that only saves money: no fault of it ends a conversation
            logger.exception("keeping the cache of %s warm failed", self._session.id)
        finally:
            pause.over.set()

    async def _warm(self, desk: Desk, model: ChosenModel) -> bool:
        """Send one warming, if it still makes sense; whether another one may follow."""
        now, cache = desk.now(), desk.thrift(model).economy.cache
        if desk.model() is not model or self._session.unsaved or cache is None or cache.cold(now):
            return False
        branch = tuple(self._session.branch())
        renewal = renewal_of(branch, desk.drafts.sent, model.info, desk.standing().redaction)
        if renewal is None:
            return False
        most = max(_LEAST_WAIT, cache.expires_at() - now)
        prompt, output = renewal.prompt + UNSEEN, most_output(renewal.body, model.info)
        outgoing = Outgoing(renewal.record, dump_bytes(renewal.body), prompt, output, within=most, once=True)
        try:
            sent = await send(desk, model, outgoing, turn=None, told=partial(self._told, desk, model, now))
        except (SpendingLimit, LedgerUnusable) as refusal:
            logger.info("the cache of %s is not kept warm: %s", self._session.id, refusal)
            return False
        usage = sent.reply.usage
        return sent.problem is None and usage is not None and 2 * usage.cache_read > usage.prompt

    def _told(self, desk: Desk, model: ChosenModel, now: float, sent: Sent) -> None:
        done, usage = self._done, sent.reply.usage
        costs = (done.cost, sent.cost if usage is not None else 0.0)
        self._done = replace(
            done,
            requests=done.requests + 1,
            tokens=done.tokens + (usage.cache_read if usage is not None else 0),
            cost=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
            error=sent.problem.text if sent.problem is not None else done.error,
        )
        if usage is not None:
            desk.thrift(model).warmed(now)
