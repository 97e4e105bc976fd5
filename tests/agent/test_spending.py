"""Money is taken from the limits before a call leaves, and what it did cost put in its place, whatever happened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.economy import SHORT
from governors.messages import AssistantMessage, Usage
from runtime import Reply
from runtime.agent.reserving import charge, most_output, worst_case
from runtime.events import Notice, Retrying, TurnFinished
from runtime.ledger.base import Reservation, Spender, SpendingLimit
from runtime.providers.base import (
    CacheTerms,
    ChosenModel,
    Finished,
    Price,
    PriceTier,
    Problem,
    Request,
    Retry,
    StreamEvent,
    TextPiece,
    UsagePiece,
)
from runtime.providers.gate import Gate, Gated, Limits
from runtime.providers.retry import RetryingProvider
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import MessageRecord, NoteRecord, OutcomeRecord, RequestRecord
from tests.agent.test_warming import FIVE_MINUTES, LONG, nothing_more, until
from tests.agents import Talk, of, talk
from tests.caching import Caching, Clock, caching_talk


@dataclass
class Purse:
    """A ledger with one cap, that keeps what it was asked."""

    cap: float = 1_000.0
    spent: float = 0.0
    open: dict[int, Reservation] = field(default_factory=dict)
    asked: list[Reservation] = field(default_factory=list)
    settled: list[float | None] = field(default_factory=list)
    warning: str | None = None

    async def reserve(self, spender: Spender, model: str, most: float | None) -> Reservation:
        await anyio.lowlevel.checkpoint()
        held = sum(each.most or 0.0 for each in self.open.values())
        if most is None or self.spent + held + most > self.cap:
            raise SpendingLimit(f"the cap is ${self.cap:.2f}, ${self.spent:.2f} are spent. Raise limits.day")
        made = Reservation(id=len(self.asked) + 1, spender=spender, model=model, most=most, at=0.0, day="")
        self.asked.append(made)
        self.open[len(self.asked)] = made
        return made

    async def settle(self, reservation: Reservation, cost: float | None, usage: Usage | None) -> tuple[str, ...]:
        await anyio.lowlevel.checkpoint()
        assert reservation.id is not None
        assert self.open.pop(reservation.id) is reservation, "settled once"
        assert reservation.most is not None
        assert cost is None or cost <= reservation.most
        self.settled.append(cost)
        self.spent += reservation.most if cost is None else cost
        return () if self.warning is None else (self.warning,)


@asynccontextmanager
async def spending(folder: Path, purse: Purse, *script: Script, **options: Any) -> AsyncIterator[Talk]:
    async with talk(folder, script, **options) as it:
        it.agent.equipment = replace(it.agent.equipment, ledger=purse)
        yield it
    assert not purse.open, "every reservation is settled"


async def test_what_a_call_may_cost_is_reserved_and_what_it_did_cost_settled(tmp_path: Path) -> None:
    purse = Purse()
    async with spending(tmp_path, purse, Reply("one"), Reply("two")) as it:
        await it.say("hello")
        await it.say("and again")
        requests, outcomes = it.records(RequestRecord), it.records(OutcomeRecord)
        assert [each.most for each in purse.asked] == [request.reserved for request in requests]
        assert purse.settled == [outcome.cost for outcome in outcomes]
        for request, outcome in zip(requests, outcomes, strict=True):
            assert request.reserved is not None and outcome.cost is not None
            assert 0 < outcome.cost < request.reserved
        opening = next(entry for entry in it.on_disk() if isinstance(entry.record, MessageRecord)).id
        session, folder = it.agent.session.id, str(it.agent.equipment.workspace)
        expected = Spender(agent="assistant", session=session, turn=opening, purpose="turn", workspace=folder)
        assert (purse.asked[0].spender, purse.asked[0].model) == (expected, "scripted/scripted")


async def test_a_refused_call_leaves_nothing_and_the_session_stays_usable(tmp_path: Path) -> None:
    purse = Purse(cap=0.0)
    async with spending(tmp_path, purse, "at last") as it:
        (finished,) = of(TurnFinished, await it.say("hello"))
        assert finished.error is not None and "$0.00" in finished.error and finished.stop == "error"
        assert not it.model.requests and not it.records(RequestRecord)
        assert [note.text for note in it.records(NoteRecord)] == [finished.error]
        purse.cap = 10.0
        (finished,) = of(TurnFinished, await it.say("and now?"))
        assert (finished.text, finished.error) == ("at last", None)


async def test_a_model_whose_price_is_not_known_asks_for_what_is_not_known(tmp_path: Path) -> None:
    purse = Purse()
    async with spending(tmp_path, purse, "never", price=None) as it:
        (finished,) = of(TurnFinished, await it.say("hello"))
        assert finished.error is not None and not it.model.requests


async def test_warnings_are_told(tmp_path: Path) -> None:
    purse = Purse(warning="80 % of today's $5.00 are spent.")
    async with spending(tmp_path, purse, "yes") as it:
        assert "80 %" in of(Notice, await it.say("hello"))[0].text


@pytest.mark.parametrize("kind", ["stopped", "overloaded", "cut"])
async def test_every_call_is_settled_whatever_became_of_it(tmp_path: Path, kind: str) -> None:
    purse, never = Purse(), anyio.Event()
    replies = {
        "stopped": Reply("half of an answer", hold=never.wait),
        "overloaded": Reply(error="overloaded"),
        "cut": Reply("half of", error="network"),
    }
    async with spending(tmp_path, purse, replies[kind], "well") as it:
        async with anyio.create_task_group() as group:
            group.start_soon(it.say, "hello")
            if kind == "stopped":
                with anyio.fail_after(20):
                    while not it.model.requests:
                        await anyio.wait_all_tasks_blocked()
                    await anyio.wait_all_tasks_blocked()
                await it.agent.stop()
        assert len(purse.settled) == 1 and not purse.open
        assert purse.spent > 0.0, "nobody knows that it was not billed"
        await it.say("go on")
        assert len(purse.settled) == 2


async def test_a_warming_that_the_limits_refuse_is_not_sent_and_nobody_is_disturbed(tmp_path: Path) -> None:
    provider, purse = Caching(Clock()), Purse()
    async with caching_talk(tmp_path, provider, session="pause", cache=FIVE_MINUTES) as it:
        it.agent.equipment = replace(it.agent.equipment, ledger=purse)
        await it.say(LONG)
        purse.cap = 0.0
        await provider.clock.advance(291)
        assert not await nothing_more(it)
        assert not purse.open


async def test_a_warming_reserves_what_it_may_cost(tmp_path: Path) -> None:
    provider, purse = Caching(Clock()), Purse()
    async with caching_talk(tmp_path, provider, session="pause", cache=FIVE_MINUTES) as it:
        it.agent.equipment = replace(it.agent.equipment, ledger=purse)
        await it.say(LONG)
        await provider.clock.advance(291)
        assert len(await nothing_more(it)) == 1
        assert [each.spender.purpose for each in purse.asked] == ["turn", "warming"]
        written = provider.usages[0].prompt * 3.75e-6
        assert written <= (purse.asked[1].most or 0.0) < written + 0.02


RATES = st.floats(0, 100, allow_nan=False)
TIERS = st.lists(st.integers(1, 400_000), max_size=2, unique=True).map(sorted)


@st.composite
def prices(draw: st.DrawFn) -> Price:
    rates = [[draw(RATES) for _ in range(5)] for _ in range(3)]
    tiers = tuple(PriceTier(above, *row) for above, row in zip(draw(TIERS), rates[1:], strict=False))
    return Price(*rates[0], tiers)


@given(
    prices(), st.lists(st.integers(0, 300_000), min_size=5, max_size=5), st.sampled_from([300, 1_800, 3_600]), st.data()
)
def test_the_worst_case_is_never_under_what_a_call_within_its_bounds_costs(
    price: Price, tokens: list[int], lifetime: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.booleans())
    info = Scripted().model(price=price, cache=CacheTerms((300, 3_600), chosen=chosen))
    if lifetime <= SHORT and chosen:
        tokens[3] = 0  # nothing is written for an hour that was not asked for
    usage = Usage(*tokens)
    prompt, output = usage.prompt + data.draw(st.integers(0, 9)), usage.output + data.draw(st.integers(0, 9))
    most = worst_case(info, prompt, output, lifetime)
    assert most is not None and most >= price.cost(usage) * (1 - 1e-12)


def test_the_worst_case_of_an_unknown_price_is_unknown() -> None:
    assert worst_case(Scripted().model(price=None), 1_000, 10, 300) is None
    assert worst_case(Scripted().model(price=Price(0, 0, 0, 0, 0)), 1_000, 10, 300) == 0.0


def test_the_most_of_an_answer_is_what_its_body_allows() -> None:
    info = Scripted().model(max_output=4_000)
    assert most_output({"max_tokens": 100}, info) == 100
    assert most_output({"max_completion_tokens": 100, "n": 3}, info) == 300
    assert most_output({}, info) == 4_000


def test_what_is_charged_for_a_call_that_did_not_end() -> None:
    """Nothing where it never left or was refused; else the prompt, and no more output than was heard in bytes."""
    info = Scripted().model()
    usage = Usage(plain=1_000_000, output=1)
    heard: list[StreamEvent] = [UsagePiece(usage), TextPiece("x" * 744)]
    cut = Finished(AssistantMessage((), stop="aborted", usage=usage))

    def failed(**problem: Any) -> Finished:
        return Finished(AssistantMessage((), stop="error"), Problem("network", "", **problem))

    assert charge(info, failed(unsent=True), [], 4_000) == 0.0
    assert charge(info, failed(status=529), [], 4_000) == 0.0
    assert charge(info, failed(), [], 4_000) is None
    assert charge(info, cut, heard, 4_000) == pytest.approx(3.0 + 1_000 * 15e-6)
    assert charge(info, cut, heard, 500) == pytest.approx(3.0 + 500 * 15e-6)
    assert charge(replace(info, reasons=True), cut, heard, 4_000) == pytest.approx(3.0 + 4_000 * 15e-6)
    whole = Finished(AssistantMessage((), stop="stop", usage=usage))
    assert charge(info, whole, heard, 4_000) == pytest.approx(3.0 + 15e-6)
    assert charge(replace(info, price=None), whole, heard, 4_000) is None


def test_a_call_that_was_made_again_and_then_refused_is_not_charged_as_one_that_broke() -> None:
    """What is heard between two attempts is of neither answer."""
    info, usage = Scripted().model(), Usage(plain=1_000, output=1)
    refused = Finished(AssistantMessage((), stop="error"), Problem("overloaded", "", 529))
    heard: list[StreamEvent] = [Retry("overloaded", 1.0, 2), Retry("overloaded", 2.0, 3)]
    assert charge(info, refused, heard, 4_000) == 0.0
    cut = Finished(AssistantMessage((), stop="aborted", usage=usage))
    alone = charge(info, cut, [TextPiece("half")], 4_000)
    assert charge(info, cut, [*heard, TextPiece("half")], 4_000) == alone


BROKEN = Problem("network", "the connection broke")


async def _at_once(seconds: float) -> None:
    """Waits are not waited for."""


async def test_attempts_that_may_have_been_paid_are_reserved_and_recorded_each(tmp_path: Path) -> None:
    """Three attempts were one reservation, and could cost three times as much."""
    purse = Purse()
    script = [Reply(error=BROKEN), Reply(error=Problem("overloaded", "", 529)), Reply(error=BROKEN), Reply("well")]
    async with spending(tmp_path, purse, *script) as it:
        it.agent.model = replace(it.agent.model, provider=RetryingProvider(it.model, sleep=_at_once))
        events = await it.say("hello")
        assert of(TurnFinished, events)[0].text == "well"
        assert len(it.model.requests) == 4 and len(of(Retrying, events)) == 3
        requests, outcomes = it.records(RequestRecord), it.records(OutcomeRecord)
        assert len(requests) == len(outcomes) == len(purse.asked) == 3, "an overloaded host bills nothing"
        assert [outcome.stop for outcome in outcomes] == ["error", "error", "stop"]
        assert purse.settled[-1] == outcomes[-1].cost
        assert all(cost is None or cost > 0.0 for cost in purse.settled)
        assert len({request.prefix for request in requests}) == 1
        assert [outcome.cause for outcome in outcomes] == [None] * 3


async def test_a_broken_call_is_not_made_again_where_the_limits_refuse_another(tmp_path: Path) -> None:
    purse = Purse()

    def broken(request: Request) -> Reply:
        purse.cap = purse.asked[-1].most or 0.0
        return Reply(error=BROKEN)

    async with spending(tmp_path, purse, broken, Reply("well")) as it:
        it.agent.model = replace(it.agent.model, provider=RetryingProvider(it.model, sleep=_at_once))
        (finished,) = of(TurnFinished, await it.say("hello"))
        assert finished.error is not None and "the cap is $" in finished.error
        assert len(it.model.requests) == len(it.records(RequestRecord)) == len(it.records(OutcomeRecord)) == 1
        assert 0.0 < purse.spent <= purse.cap
        purse.cap = 10.0
        (finished,) = of(TurnFinished, await it.say("again"))
        assert (finished.text, finished.error) == ("well", None)


async def test_a_warming_that_waits_at_the_gate_is_not_sent_and_costs_nothing(tmp_path: Path) -> None:
    """It was charged at the worst case, as if it had broken on its way."""
    provider, purse = Caching(Clock()), Purse()
    gate = Gate(Limits(concurrency=1), now=provider.clock, sleep=provider.clock.sleep)
    async with caching_talk(tmp_path, provider, session="pause", cache=FIVE_MINUTES) as it:
        it.agent.equipment = replace(it.agent.equipment, ledger=purse)
        it.agent.model = replace(it.agent.model, provider=Gated(provider, gate))
        await it.say(LONG)
        place = gate.enter("another session", 1)
        await provider.clock.advance(291)
        await until(lambda: len(purse.asked) == 2 and provider.clock.waiting > 0)
        await provider.clock.advance(2)
        await until(lambda: len(purse.settled) == 2)
        gate.leave(place)
        assert purse.settled[1] == 0.0 and not purse.open
        assert len(provider.requests) == 1
        outcome = it.records(OutcomeRecord)[-1]
        assert outcome.problem is not None and outcome.problem["unsent"]


class Counting(Scripted):
    """Tells what it has counted before it says anything, as Anthropic does, and never ends."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        self.requests.append(request)

        async def events() -> AsyncIterator[StreamEvent]:
            yield UsagePiece(Usage(plain=500, output=1))
            yield TextPiece("half of an")
            await anyio.sleep_forever()

        stream = events()
        try:
            yield stream
        finally:
            await stream.aclose()  # type: ignore[attr-defined] # it is a generator


async def test_a_stopped_call_keeps_the_usage_that_was_told(tmp_path: Path) -> None:
    provider, purse = Counting(), Purse()
    async with spending(tmp_path, purse, prefix_law=False) as it:
        it.agent.model = ChosenModel(provider.model(), provider)
        async with anyio.create_task_group() as group:
            group.start_soon(it.say, "hello")
            with anyio.fail_after(20):
                while not provider.requests:
                    await anyio.wait_all_tasks_blocked()
                await anyio.wait_all_tasks_blocked()
            await it.agent.stop()
        (outcome,) = it.records(OutcomeRecord)
        assert (outcome.stop, outcome.usage) == ("aborted", Usage(plain=500, output=1))
        assert purse.settled == [pytest.approx(500 * 3e-6 + (10 + 256) * 15e-6)]
