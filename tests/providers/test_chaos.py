"""A provider that fails on purpose: each fault is what it says, comes as often as asked, and again the same way."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.lowlevel
import pytest

from governors.messages import Text, ToolCall, Usage
from runtime.providers.base import Finished, Request, StreamEvent, TextPiece
from runtime.providers.chaos import FAULTS, Chaos, Fault
from runtime.providers.problems import is_transient
from runtime.providers.scripted import Call, Reply, Scripted

ANSWER = Reply("Here is what I found there.", [Call("look", {"at": "the moon"}), Call("look", {"at": "the sea"})])
REFUSALS: tuple[Fault, ...] = ("limited", "limited_for", "overloaded", "unreachable", "overflow", "refused")


async def stream(chaos: Chaos, inner: Scripted) -> list[StreamEvent]:
    body = {"max_tokens": 10, "model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with chaos.stream(Request.of(inner.model(), body, timeout=30.0)) as events:
        return [event async for event in events]


async def one(
    fault: Fault | None, seed: int = 1, slept: list[float] | None = None
) -> tuple[list[StreamEvent], Finished]:
    async def sleep(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        if slept is not None:
            slept.append(seconds)

    inner = Scripted([ANSWER])
    chaos = Chaos(inner, seed=seed, rates={} if fault is None else {fault: 1.0}, sleep=sleep)
    *pieces, end = await stream(chaos, inner)
    assert isinstance(end, Finished)
    assert not any(isinstance(piece, Finished) for piece in pieces)
    assert chaos.made == ({} if fault is None else {fault: 1})
    return pieces, end


def text(pieces: list[StreamEvent]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_without_a_fault_nothing_is_changed() -> None:
    """Event by event."""
    pieces, end = await one(None)
    assert [*pieces, end] == await stream(Chaos(bare := Scripted([ANSWER]), rates=0.0), bare)
    assert (text(pieces), end.message.stop, len(end.message.calls)) == (ANSWER.text, "tool_use", 2)


@pytest.mark.parametrize("fault", REFUSALS)
async def test_a_refusal_shows_nothing(fault: Fault) -> None:
    """And says what kind it is."""
    pieces, end = await one(fault)
    assert pieces == [] and end.problem is not None and not end.message.content
    assert is_transient(end.problem) == (fault not in ("overflow", "refused"))
    assert (end.problem.retry_after is not None) == (fault == "limited_for")


@pytest.mark.parametrize("fault", ["stalled", "cut"])
@pytest.mark.parametrize("seed", range(5))
async def test_a_broken_answer_holds_what_was_shown(fault: Fault, seed: int) -> None:
    """No more and no less; a stall lasts as long as the time-out."""
    slept: list[float] = []
    pieces, end = await one(fault, seed, slept)
    assert end.message.stop == "aborted" and end.problem is not None and end.problem.kind == "network"
    assert end.message.text == text(pieces)
    assert ANSWER.text.startswith(text(pieces))
    assert not any(call.complete for call in end.message.calls if call.arguments[-1:] != "}")
    assert slept == ([30.0] if fault == "stalled" else [])


async def test_faults_of_calls() -> None:
    """What a host that sends them so comes to; text and order are untouched."""
    said = [call.arguments for call in (await one(None))[1].message.calls]
    for fault in ("same_ids", "same_index", "snapshots"):
        _, end = await one(fault)
        assert end.message.content[0] == Text(ANSWER.text)
        assert len(end.message.calls) >= 1 and all(isinstance(call, ToolCall) for call in end.message.calls)
        if fault != "same_ids":
            assert [call.arguments for call in end.message.calls] == said
        else:
            assert {call.id for call in end.message.calls} == {"call_0"}
    _, end = await one("malformed")
    assert all(call.arguments not in said for call in end.message.calls)


async def test_faults_of_usage_and_empty_answers() -> None:
    """The answer itself is what it was, but for the empty one."""
    usage = (await one(None))[1].message.usage
    assert usage is not None
    assert (await one("no_usage"))[1].message.usage is None
    assert (await one("high_usage"))[1].message.usage == Usage(plain=usage.plain * 1000, output=usage.output * 1000)
    assert (await one("negative_usage"))[1].message.usage == Usage(plain=-usage.plain, output=-usage.output)
    pieces, end = await one("empty")
    assert (pieces, end.message.content, end.message.stop, end.problem) == ([], (), "stop", None)


async def test_the_same_seed_is_the_same_chaos() -> None:
    """Call by call, and as often as the rates say."""

    async def faults(seed: int) -> list[Counter[Fault]]:
        chaos, made = Chaos(inner := Scripted(otherwise="yes"), seed=seed, rates=0.03, sleep=at_once), []
        for _ in range(400):
            await stream(chaos, inner)
            made.append(Counter(chaos.made))
        return made

    async def at_once(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    first = await faults(1)
    assert first == await faults(1)
    assert first != await faults(2)
    assert set(first[-1]) == set(FAULTS)
    assert 130 < sum(first[-1].values()) < 260


@pytest.mark.parametrize("rates", [{"flood": 0.1}, {"cut": 1.5}, {"cut": 0.6, "empty": 0.6}, 0.5])
def test_rates_that_are_none_are_told(rates: dict[Fault, float] | float) -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match=r"there is no fault|chances from 0 to 1"):
        Chaos(Scripted(), rates=rates)
