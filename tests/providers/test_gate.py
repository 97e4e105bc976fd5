"""The gate before a provider, with those who wait at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.lowlevel

from governors.messages import AssistantMessage, Text, Usage
from governors.wire.base import Abilities
from runtime.providers.base import Finished, ModelInfo, Problem, Request, Retry, StreamEvent, TextPiece
from runtime.providers.gate import Gate, Gated, Limits, shared_gate
from runtime.providers.retry import RetryingProvider
from tests.caching import Clock

REQUEST = Request(ModelInfo("m", "acme", "openai_chat", 1000, 100, Abilities()), b"{}", session="a")
GOOD = Finished(AssistantMessage((Text("ok"),), usage=Usage(plain=10, output=5)))


def limited(seconds: float | None) -> Finished:
    problem = Problem("rate_limited", "acme limits how much may be asked of it now", 429, retry_after=seconds)
    return Finished(AssistantMessage((), stop="error"), problem)


class Host:
    """Answers when it is told to; `ends` are what it says to the calls in order, then `GOOD`."""

    name = "acme"

    def __init__(self, *ends: Finished, held: bool = False) -> None:
        self.ends = list(ends)
        self.sessions: list[str] = []
        self.open = 0
        self.most = 0
        self.go = anyio.Event()
        if not held:
            self.go.set()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        self.sessions.append(request.session)
        self.open += 1
        self.most = max(self.most, self.open)
        events = self._events()
        try:
            yield events
        finally:
            self.open -= 1
            with anyio.CancelScope(shield=True):
                await events.aclose()

    async def _events(self):  # type: ignore[no-untyped-def]  # an asynchronous generator, to be closed
        await self.go.wait()
        end = self.ends.pop(0) if self.ends else GOOD
        if end.problem is None:
            yield TextPiece("ok")
        yield end

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return


def gate_of(clock: Clock, limits: Limits | None = None) -> Gate:
    return Gate(limits, now=clock, sleep=clock.sleep, random=lambda: 0.0)


async def settled() -> None:
    """Let a cancellation come to its end: on asyncio it takes some rounds."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


async def ask(provider: Gated | RetryingProvider, session: str = "a", tokens: int = 0) -> list[StreamEvent]:
    async with provider.stream(replace(REQUEST, session=session, tokens=tokens)) as events:
        return [event async for event in events]


async def test_no_more_calls_at_once_than_the_limit() -> None:
    """And the place of one that is over is taken by the next."""
    host, clock = Host(held=True), Clock()
    provider = Gated(host, gate_of(clock, Limits(concurrency=3)))
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, provider, str(number % 4))
        await anyio.wait_all_tasks_blocked()
        assert (host.open, provider.gate.admission.waiting) == (3, 17)
        host.go.set()
    assert (host.most, len(host.sessions), host.open) == (3, 20, 0)


async def test_one_session_does_not_starve_another() -> None:
    """A hundred calls wait; the one of another session is the second to go."""
    host, clock = Host(held=True), Clock()
    provider = Gated(host, gate_of(clock, Limits(concurrency=1)))
    async with anyio.create_task_group() as group:
        for _ in range(101):
            group.start_soon(ask, provider, "busy")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(ask, provider, "quiet")
        await anyio.wait_all_tasks_blocked()
        host.go.set()
    assert host.sessions.index("quiet") == 2
    assert len(host.sessions) == 102


async def test_two_choices_of_one_key_share_a_gate() -> None:
    """Another key, another place or another provider has its own; the newest limits hold."""
    gate = shared_gate("acme", "http://a.test", "key")
    assert shared_gate("acme", "http://a.test", "key", Limits(concurrency=2)) is gate
    assert gate.admission.limits.concurrency == 2
    others = [("acme", "http://a.test", "other"), ("acme", "http://b.test", "key"), ("beta", "http://a.test", "key")]
    assert all(shared_gate(*each) is not gate for each in others)


async def test_a_refusal_holds_the_others_back_too() -> None:
    """They go when the time that was named is over, one of them first."""
    host, clock = Host(limited(10.0)), Clock()
    provider = Gated(host, gate_of(clock))
    assert [type(event) for event in await ask(provider, "a")] == [Finished]
    got: list[list[StreamEvent]] = []

    async def other(session: str) -> None:
        got.append(await ask(provider, session))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(other, str(number))
        await clock.advance(0.9)
        assert len(host.sessions) == 1
        await clock.advance(0.1)
        await clock.advance(8.9)
        assert len(host.sessions) == 1
        await clock.advance(0.2)
    assert len(host.sessions) == 6
    for events in got:
        waiting = events[0]
        assert isinstance(waiting, Retry)
        assert waiting.attempt == 1
        assert "acme wants to be asked nothing for 9 s" in waiting.why
        assert events[1:] == [TextPiece("ok"), GOOD]


async def test_a_short_wait_is_not_told() -> None:
    """Under a second nobody needs to know."""
    host, clock = Host(limited(0.5)), Clock()
    provider = Gated(host, gate_of(clock))
    await ask(provider)
    async with anyio.create_task_group() as group:

        async def again() -> None:
            assert await ask(provider) == [TextPiece("ok"), GOOD]

        group.start_soon(again)
        await clock.advance(0.6)
    assert len(host.sessions) == 2


async def test_a_cancelled_wait_frees_its_place_at_once() -> None:
    """Those behind move up, and nothing stays behind."""
    host, clock = Host(held=True), Clock()
    provider = Gated(host, gate_of(clock, Limits(concurrency=1)))
    async with anyio.create_task_group() as group:
        group.start_soon(ask, provider, "first")
        await anyio.wait_all_tasks_blocked()
        scope = anyio.CancelScope()

        async def given_up() -> None:
            with scope:
                await ask(provider, "second")

        group.start_soon(given_up)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(ask, provider, "third")
        await anyio.wait_all_tasks_blocked()
        assert provider.gate.admission.waiting == 2
        scope.cancel()
        await settled()
        assert provider.gate.admission.waiting == 1
        host.go.set()
    assert host.sessions == ["first", "third"]
    assert (provider.gate.admission.running, provider.gate.admission.waiting) == (0, 0)


async def test_a_cancelled_call_frees_its_place() -> None:
    """Also one that was under way."""
    host, clock = Host(held=True), Clock()
    provider = Gated(host, gate_of(clock, Limits(concurrency=1)))
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def given_up() -> None:
            with scope:
                await ask(provider, "first")

        group.start_soon(given_up)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(ask, provider, "second")
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await settled()
        assert host.sessions == ["first", "second"]
        host.go.set()
    assert provider.gate.admission.running == 0


async def test_who_watches_the_clock_may_give_up() -> None:
    """The next one in line takes over."""
    host, clock = Host(), Clock()
    provider = Gated(host, gate_of(clock, Limits(requests_per_minute=1)))
    await ask(provider)
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def given_up() -> None:
            with scope:
                await ask(provider, "watching")

        group.start_soon(given_up)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(ask, provider, "next")
        await clock.advance(30.0)
        scope.cancel()
        await settled()
        await clock.advance(30.0)
    assert host.sessions == ["a", "next"]


async def test_a_minutes_tokens_are_those_that_calls_took() -> None:
    """A call is counted as it was expected to be, then as it was."""
    host, clock = Host(), Clock()
    provider = Gated(host, gate_of(clock, Limits(tokens_per_minute=100)))
    await ask(provider, tokens=90)  # it took 15
    await ask(provider, tokens=80)
    async with anyio.create_task_group() as group:
        group.start_soon(ask, provider, "a", 80)
        await clock.advance(59.0)
        assert len(host.sessions) == 2
        await clock.advance(1.0)
    assert len(host.sessions) == 3


async def test_a_wait_too_long_is_told_to_all_who_would_wait() -> None:
    """Nobody sits before a provider that wants a quarter of an hour, and nothing is sent for it."""
    host, clock = Host(limited(900.0), held=True), Clock()
    provider = RetryingProvider(Gated(host, gate_of(clock, Limits(concurrency=1))), sleep=clock.sleep)
    got: list[list[StreamEvent]] = []

    async def one(session: str) -> None:
        got.append(await ask(provider, session))

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(one, str(number))
        await anyio.wait_all_tasks_blocked()
        host.go.set()
    assert len(host.sessions) == 1
    for (end,) in got:
        assert isinstance(end, Finished) and end.problem is not None
        assert end.problem.text.endswith("It asks to wait 900 seconds: try again then, or choose another model")
    assert sum(end.problem.unsent for (end,) in got if isinstance(end, Finished) and end.problem) == 2
