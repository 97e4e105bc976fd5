"""Trying again: what, when, how often, and how long between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Text, Usage
from governors.wire.base import Abilities
from runtime.providers.base import (
    CallPiece,
    Finished,
    ModelInfo,
    Problem,
    ProblemKind,
    Provider,
    Request,
    Retry,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
    UsagePiece,
)
from runtime.providers.retry import RetryingProvider, RetryPolicy

REQUEST = Request(ModelInfo("m", "p", "openai_chat", 1000, 100, Abilities()), b"{}")
GOOD = Finished(AssistantMessage((Text("ok"),)))


def failed(kind: ProblemKind, retry_after: float | None = None) -> Finished:
    return Finished(AssistantMessage((), stop="error"), Problem(kind, f"it is {kind}", retry_after=retry_after))


class Scripted:
    """Gives each call its list of events, and counts contexts that were not left."""

    name = "fake"

    def __init__(self, *calls: Sequence[StreamEvent]) -> None:
        self.calls = list(calls)
        self.made = 0
        self.open = 0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        events = iter(self.calls[min(self.made, len(self.calls) - 1)])
        self.made += 1
        self.open += 1

        class Events:
            def __aiter__(self) -> AsyncIterator[StreamEvent]:
                return self

            async def __anext__(self) -> StreamEvent:
                await anyio.lowlevel.checkpoint()
                for event in events:
                    return event
                raise StopAsyncIteration

        try:
            yield Events()
        finally:
            self.open -= 1

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


async def run(
    inner: Scripted, policy: RetryPolicy | None = None, random: float = 1.0
) -> tuple[list[StreamEvent], list[float]]:
    sleeper = Sleeper()
    provider: Provider = RetryingProvider(inner, policy, sleep=sleeper, random=lambda: random)
    async with provider.stream(REQUEST) as events:
        got = [event async for event in events]
    assert inner.open == 0
    return got, sleeper.slept


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded", "network"])
async def test_what_may_pass_is_tried_again(kind: ProblemKind) -> None:
    """The wait is announced before it begins; the failed attempt's end is not shown."""
    got, slept = await run(Scripted([failed(kind)], [TextPiece("ok"), GOOD]))
    assert got == [Retry(f"it is {kind}", 1.0, 2, failed(kind).problem), TextPiece("ok"), GOOD]
    assert slept == [1.0]


@pytest.mark.parametrize("kind", ["bad_request", "auth", "overflow", "refused", "unknown"])
async def test_fault_38_what_stays_wrong_is_not_tried_again(kind: ProblemKind) -> None:
    """Permanent errors end the call at once, unchanged."""
    inner = Scripted([failed(kind)])
    got, slept = await run(inner)
    assert (got, slept, inner.made) == ([failed(kind)], [], 1)


async def test_a_count_of_tokens_shows_nothing() -> None:
    """What the provider counted before it failed is no reason to give up; the event comes through."""
    usage = UsagePiece(Usage(plain=3))
    got, _ = await run(Scripted([usage, failed("overloaded")], [TextPiece("ok"), GOOD]))
    assert got == [usage, Retry("it is overloaded", 1.0, 2, failed("overloaded").problem), TextPiece("ok"), GOOD]


async def test_a_wait_at_the_gate_is_no_attempt() -> None:
    """It is told as it comes, and the delays begin with the first failure."""
    waits = Retry("it waits for its turn", 0.0, 1)
    got, slept = await run(Scripted([waits, failed("network")], [waits, GOOD]))
    assert got == [waits, Retry("it is network", 1.0, 2, failed("network").problem), waits, GOOD]
    assert slept == [1.0]


async def test_waits_are_bounded_whatever_the_provider_asks() -> None:
    """The longest of all: as many attempts as there may be, each with the longest wait that is kept."""
    policy = RetryPolicy()
    _, slept = await run(Scripted([failed("rate_limited", policy.longest_wait)]), policy)
    assert len(slept) == policy.attempts - 1
    assert max(slept) <= policy.longest_wait + 1.0


@pytest.mark.parametrize("piece", [TextPiece("a"), ThinkingPiece("a"), CallPiece(0, "f", "")])
async def test_nothing_is_tried_again_after_a_piece_was_shown(piece: StreamEvent) -> None:
    """Text, thinking and calls all count as shown."""
    inner = Scripted([piece, failed("network")])
    got, _ = await run(inner)
    assert (got, inner.made) == ([piece, failed("network")], 1)


async def test_attempts_run_out_and_the_last_problem_says_so() -> None:
    """Delays double."""
    inner = Scripted([failed("network")])
    got, slept = await run(inner)
    last = got[-1]
    assert isinstance(last, Finished)
    assert last.problem is not None
    assert last.problem.text == "it is network. Tried 4 times"
    assert slept == [1.0, 2.0, 4.0]
    assert inner.made == 4
    assert [event.attempt for event in got if isinstance(event, Retry)] == [2, 3, 4]


async def test_one_attempt_means_no_retry() -> None:
    """The policy can switch it off."""
    got, _ = await run(Scripted([failed("network")]), RetryPolicy(attempts=1))
    assert got == [failed("network")]


@pytest.mark.parametrize("wait", [0.0, 3.0, 30.0, 60.0])
async def test_the_providers_wait_is_kept(wait: float) -> None:
    """Never shorter than asked, and not much longer."""
    _, slept = await run(Scripted([failed("rate_limited", wait)], [GOOD]))
    assert wait <= slept[0] <= wait + 1.0


async def test_a_wait_that_is_too_long_is_told_instead() -> None:
    """Nobody should sit before a silent terminal for a quarter of an hour."""
    got, slept = await run(Scripted([failed("rate_limited", 1000.0)]))
    assert slept == []
    last = got[-1]
    assert isinstance(last, Finished)
    assert last.problem is not None
    assert "wait 1000 seconds" in last.problem.text


@given(st.integers(1, 12), st.floats(0, 1, exclude_max=True))
def test_delays_stay_within_their_bounds(attempts: int, random: float) -> None:
    """Half of the exponential to all of it, and never above the cap."""
    policy = RetryPolicy(attempts=attempts, first_delay=0.5, longest_delay=8.0)

    async def check() -> list[float]:
        return (await run(Scripted([failed("network")]), policy, random))[1]

    slept = anyio.run(check)
    assert len(slept) == attempts - 1
    for number, delay in enumerate(slept):
        most = min(8.0, 0.5 * 2**number)
        assert most / 2 <= delay <= most


async def test_leaving_early_leaves_the_attempt() -> None:
    """The inner stream is closed with the outer one."""
    inner = Scripted([TextPiece("a"), TextPiece("b"), GOOD])
    async with RetryingProvider(inner).stream(REQUEST) as events:
        assert await anext(events) == TextPiece("a")
        assert inner.open == 1
    assert inner.open == 0


async def test_a_cancelled_wait_makes_no_further_attempt() -> None:
    """/stop during a pause stops."""
    inner = Scripted([failed("network")], [GOOD])
    got: list[StreamEvent] = []
    with anyio.CancelScope() as scope:

        async def cancelled(_: float) -> None:
            scope.cancel()
            await anyio.sleep_forever()

        async with RetryingProvider(inner, sleep=cancelled).stream(REQUEST) as events:
            async for event in events:
                got.append(event)
    assert scope.cancelled_caught
    assert [type(event) for event in got] == [Retry]
    assert (inner.made, inner.open) == (1, 0)
