"""Compactions while no turn runs: by hand, and by themselves while nobody talks.

Laws: what is said meanwhile is recorded at once, waits, and opens a turn afterwards; a stop ends it, and leaves the
session as it was. By itself one begins just before the cache expires, when it is cheap to have the conversation read
once more, or when it has expired; never while somebody talks, never twice for the same cache.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from ..compaction.timing import Reason, Timing
from ..errors import SessionError
from .compacting import Ask, Receipt, compact, reason_for, surveyed
from .desk import Desk

logger = logging.getLogger(__name__)

_AHEAD = 20.0  # seconds before the cache expires: a summary takes about as long


class Ground(Protocol):
    """What compactions need of their agent."""

    def desk(self) -> Desk: ...

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Stop what runs; nothing begins as long as this is held."""
        ...

    def holding_input(self) -> AbstractAsyncContextManager[bool]:
        """Whether nothing runs; nothing begins as long as this is held."""
        ...

    def occupy(self, why: str) -> anyio.CancelScope:
        """Be busy with something that is no turn, until `vacate`; while nothing can begin. A stop cancels the scope."""
        ...

    async def vacate(self, why: str) -> None: ...


class Compactions:
    """Of one agent. `sleep` waits for so many seconds, by the clock of the desk."""

    def __init__(
        self, ground: Ground, group: TaskGroup, sleep: Callable[[], Callable[[float], Awaitable[None]]]
    ) -> None:
        self._ground, self._group, self._sleep = ground, group, sleep
        self._waiting = anyio.CancelScope()

    async def by_hand(self, focus: str | None = None, strategy: str | None = None) -> Receipt:
        """Make room now; a turn that runs is stopped. Raises `SessionError`."""
        self.cancel()
        async with self._ground.resting():
            scope = self._ground.occupy("a compaction by hand")
        return await self._held(scope, "manual", "asked", strategy, focus)

    def begin(self) -> None:
        """The agent rests: make room later, if nobody talks until the cache expires."""
        desk = self._ground.desk()
        if desk.compacts():
            self.cancel()
            self._waiting = anyio.CancelScope()
            self._group.start_soon(self._later, self._waiting)

    def cancel(self) -> None:
        """Somebody talks: nothing begins by itself. What is under way goes on."""
        self._waiting.cancel()

    async def _later(self, waiting: anyio.CancelScope) -> None:
        try:
            with waiting:
                await self._cold()
            if not waiting.cancelled_caught:
                await self._idle(waiting)
        except SessionError:
            logger.info("no room is made by itself: the session is closed")
        except Exception:  # the task boundary of something that only saves: no fault of it ends a conversation
            logger.exception("making room by itself failed")

    async def _cold(self) -> None:
        """Wait until the cache is about to expire; what keeps it warm puts that off."""
        desk = self._ground.desk()
        while True:
            cache = desk.thrift(desk.model()).economy.cache
            left = 0.0 if cache is None else cache.expires_at() - _AHEAD - desk.now()
            if left <= 0:
                return
            await self._sleep()(left)

    async def _idle(self, waiting: anyio.CancelScope) -> None:
        desk = self._ground.desk()
        here = await surveyed(desk, None)
        reason = reason_for(desk, here, "idle", cold=True)
        if reason is None:
            return
        async with self._ground.holding_input() as resting:
            if not resting or waiting.cancel_called:  # somebody talks
                return
            scope = self._ground.occupy("a compaction while nobody talks")
        await self._held(scope, "idle", reason, None, None)

    async def _held(
        self, scope: anyio.CancelScope, timing: Timing, reason: Reason, strategy: str | None, focus: str | None
    ) -> Receipt:
        receipt = Receipt("failed", "it was stopped")
        try:
            with scope:
                desk = self._ground.desk()
                chosen = strategy or (desk.strategy if desk.strategy != "off" else "summary")
                here = await surveyed(desk, None)
                receipt = await compact(desk, Ask(timing, reason, chosen, focus), here)
        finally:
            with anyio.CancelScope(shield=True):
                await self._ground.vacate("room was made" if receipt.result == "done" else receipt.why)
        return receipt
