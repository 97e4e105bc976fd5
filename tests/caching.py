"""A provider that keeps prompts as a real one does, on a clock of the test's, and knows why it kept none.

What it says of a call's usage is counted by its own rules, from the blocks of the body alone: a prefix is read when it
was sent before, to the same model, no longer ago than it was asked to be kept, and is not too small; all else is
written. `truth` has for each request why it read less of the prompt before it than it could have, as far as only the
provider can know that: `expired`, `evicted`, `too short`, or `moved` (the bytes did not go on).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from governors.messages import Usage
from governors.wire import WIRES
from governors.wire.encoded import roll
from runtime.app import Runtime
from runtime.providers.base import Finished, Request, StreamEvent
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import Entry, RequestRecord
from runtime.tools.base import Tool
from tests.agents import Talk, assert_prefix_law


class Clock:
    """A clock that stands still until it is told otherwise. `waiting` counts those who sleep by it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self._moved = anyio.Event()
        self.waiting = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        self.waiting += 1
        try:
            while self.now < until:
                await self._moved.wait()
        finally:
            self.waiting -= 1

    async def advance(self, seconds: float) -> None:
        """Let time pass, and those who waited for it do what they do."""
        await anyio.wait_all_tasks_blocked()
        self.now += seconds
        moved, self._moved = self._moved, anyio.Event()
        moved.set()
        await anyio.wait_all_tasks_blocked()


class Caching(Scripted):
    """`least` is the smallest prefix that is kept, in tokens. `sent_at` is when each request came, by the clock."""

    def __init__(
        self, clock: Clock, script: Iterable[Script] = (), *, otherwise: Script | None = "yes", least: int = 0
    ) -> None:
        super().__init__(script, otherwise=otherwise)
        self.clock, self.least = clock, least
        self.truth: list[str | None] = []
        self.usages: list[Usage] = []
        self.sent_at: list[float] = []
        self.silent = False  # whether it counts nothing, nor keeps what it was sent
        self._kept: dict[tuple[str, bytes], tuple[float, int]] = {}  # when each prefix was last used, its lifetime
        self._last: dict[str, list[bytes]] = {}

    def evict(self) -> None:
        """Lose all that is kept, as providers do when they are short of room."""
        self._kept.clear()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        if self.silent:
            self.truth.append(None)
            self.sent_at.append(self.clock())
        usage = None if self.silent else self._count(request)
        async with super().stream(request) as events, aclosing(_counted(events, usage)) as counted:
            yield counted

    def _count(self, request: Request) -> Usage:
        blocks = WIRES[request.model.wire].prefix_blocks(dict(request.body))
        model, now = request.model.id, self.clock()
        digests = list(roll(b"", blocks))
        known = [n for n in range(len(blocks), 0, -1) if (model, digests[n - 1]) in self._kept]
        warm = next((n for n in known if self._is_warm(model, digests[n - 1], now)), 0)
        prompt, read = size(blocks), size(blocks[:warm])
        self.truth.append(self._why(self._last.get(model, []), blocks, bool(known), read))
        self.sent_at.append(now)
        self._last[model] = blocks
        lifetime = 3_600 if "'ttl': '1h'" in str(request.body) else 300
        if prompt < self.least:
            usage = Usage(plain=prompt, output=1)
        else:
            for digest in digests:
                self._kept[model, digest] = (now, lifetime)
            written = prompt - read
            usage = Usage(0, read, written if lifetime == 300 else 0, written if lifetime > 300 else 0, 1)
        self.usages.append(usage)
        return usage

    def _is_warm(self, model: str, digest: bytes, now: float) -> bool:
        used_at, lifetime = self._kept[model, digest]
        return now - used_at <= lifetime

    def _why(self, before: list[bytes], blocks: list[bytes], known: bool, read: int) -> str | None:
        """Why less was read than the prompt before held, or than this one holds."""
        if read >= min(size(before), size(blocks)):
            return None
        if size(before) < self.least:
            return "too short"
        shared = next((n for n, (a, b) in enumerate(zip(before, blocks, strict=False)) if a != b), len(before))
        if read >= size(before[:shared]):
            return "moved"
        return "expired" if known else "evicted"


async def _counted(events: AsyncIterator[StreamEvent], usage: Usage | None) -> AsyncGenerator[StreamEvent, None]:
    async for event in events:
        if isinstance(event, Finished):
            event = replace(event, message=replace(event.message, usage=usage))
        yield event


def size(blocks: Iterable[bytes]) -> int:
    """Tokens, at four bytes each."""
    return sum(map(len, blocks)) // 4


@asynccontextmanager
async def caching_talk(
    workspace: Path,
    provider: Caching,
    *,
    tools: Sequence[Tool] = (),
    session: str | None = None,
    settings: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    **model: Any,
) -> AsyncIterator[Talk]:
    """`talk` with a provider that caches, an agent that tells the time by its clock, and a prompt worth keeping."""
    settings = {"tools.exec": "off", "compaction.strategy": "off", **(settings or {})}
    chosen = provider.chosen(**model)
    async with Runtime.open(workspace, model=chosen, tools=tools, settings=settings, environ=environ or {}) as runtime:
        agent = await runtime.supervisor.agent("assistant", session)
        agent.equipment = replace(agent.equipment, now=provider.clock, sleep=provider.clock.sleep)
        it = Talk(runtime, agent, provider)
        yield it
    assert_prefix_law(it)


def by_clock(it: Talk) -> list[Entry]:
    """The log of `it`, its requests at the times of the provider's clock. (A log tells the time by the machine's.)"""
    assert isinstance(it.model, Caching)
    times = iter(it.model.sent_at)
    return [
        replace(entry, at=datetime.fromtimestamp(next(times), UTC).isoformat())
        if isinstance(entry.record, RequestRecord)
        else entry
        for entry in it.on_disk()
    ]
