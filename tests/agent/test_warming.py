"""The cache is kept warm while nobody talks, as long as that pays, and nothing else notices."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from governors.wire.base import Abilities
from runtime import Call, Reply, tool
from runtime.agent.thrift import thrift_of
from runtime.channels.recap import interrupted, recap
from runtime.channels.reducer import ChatState, advance
from runtime.conversing import ASKED_ONCE
from runtime.events import CacheKeptWarm, TurnFinished
from runtime.exports import as_model, transcript
from runtime.exports.transcript import Mark, Said
from runtime.providers.base import CacheTerms, ChosenModel, Price
from runtime.session.entries import Entry, MessageRecord, OutcomeRecord, RequestRecord
from runtime.session.opening import read_log
from runtime.session.view.spending import share_of, spent
from runtime.shelf.base import shelf
from runtime.shelf.showing import show_as_model
from tests.agent.test_saving import watched
from tests.agents import Talk, of
from tests.agents_again import bytes_of
from tests.caching import Caching, Clock, by_clock, caching_talk
from tests.session.disks import FULL

FIVE_MINUTES = CacheTerms((300,), renews=True)
LONG = "a long text that is worth keeping " * 400


@asynccontextmanager
async def pausing(folder: Path, provider: Caching, **options: Any) -> AsyncIterator[Talk]:
    """A conversation whose prompt is kept for five minutes, and in which something long was said."""
    async with caching_talk(folder, provider, session="pause", **{"cache": FIVE_MINUTES, **options}) as it:
        await it.say(LONG)
        yield it


def warmings(it: Talk) -> list[Entry]:
    records = [entry for entry in it.agent.session.tree.entries if isinstance(entry.record, RequestRecord)]
    return [entry for entry in records if getattr(entry.record, "purpose", "") == "warming"]


def outcomes(it: Talk) -> list[OutcomeRecord]:
    """Those of the warmings."""
    wanted = {entry.id for entry in warmings(it)}
    records = [entry.record for entry in it.agent.session.tree.entries]
    return [record for record in records if isinstance(record, OutcomeRecord) and record.request in wanted]


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.wait_all_tasks_blocked()
            await anyio.sleep(0.001)  # a thread may be at work


async def pause(it: Talk, seconds: float, *, sent: int) -> None:
    """Let `seconds` pass, and wait until `sent` warmings in all are recorded with their outcomes."""
    assert isinstance(it.model, Caching)
    await it.model.clock.advance(seconds)
    await until(lambda: len(outcomes(it)) >= sent)
    assert len(outcomes(it)) == sent


def over(it: Talk) -> bool:
    """Whether nothing more will be sent in this gap."""
    pause = it.agent._warming._pause
    return pause is None or pause.over.is_set()


async def nothing_more(it: Talk) -> list[Entry]:
    """All warmings, once it is sure that no other follows."""
    await it.agent.stop()
    return warmings(it)


async def test_who_comes_back_after_nine_minutes_finds_a_warm_cache(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await pause(it, 291, sent=1)
        provider.clock.now += 270
        events = await it.say("I am back")
        assert provider.usages[-1].cache_read >= provider.usages[0].prompt
        (kept,) = of(CacheKeptWarm, events)
        assert (kept.requests, kept.tokens, kept.error) == (1, provider.usages[0].prompt, None)
        assert of(TurnFinished, events)[0].text == "yes"
        assert not of(CacheKeptWarm, await it.say("and again"))


async def test_a_warming_is_the_last_request_with_the_shortest_answer(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await pause(it, 291, sent=1)
        first, warming = (dict(request.body) for request in it.model.requests)
        assert warming == {**first, "max_tokens": 1}
        assert list(warming) == list(first)
        turn, renewal = it.records(RequestRecord)
        assert (renewal.purpose, renewal.prefix, renewal.lifetime) == ("warming", turn.prefix, turn.lifetime)
        (outcome,) = outcomes(it)
        assert outcome.usage is not None and outcome.usage.cache_read == provider.usages[0].prompt
        assert outcome.cost == pytest.approx(outcome.usage.cache_read * 0.3e-6 + outcome.usage.output * 15e-6)
        costs = [record.cost or 0.0 for record in it.records(OutcomeRecord)]
        assert spent(it.on_disk()) == pytest.approx(sum(costs))
        assert it.agent.room.standing().spent == pytest.approx(sum(costs))
        assert share_of(it.on_disk(), "warming").read == outcome.usage.cache_read


async def test_an_abandoned_session_costs_less_than_the_cold_start_it_might_have_saved(tmp_path: Path) -> None:
    """The ski rental's bound: whoever never comes back has not paid more than whoever comes back cold."""
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        for _ in range(40):
            await provider.clock.advance(290)
            await until(lambda: bool(provider.clock.waiting) or over(it))
        sent = await nothing_more(it)
        assert 1 <= len(sent) <= 11
        cold = provider.usages[0].prompt * (3.75 - 0.3) * 1e-6
        assert sum(outcome.cost or 0.0 for outcome in outcomes(it)) <= cold
        assert len(it.records(MessageRecord)) == 2, "people see nothing of it"


@pytest.mark.parametrize(
    "options",
    [
        {"settings": {"economy.warming": False}},
        {"cache": CacheTerms((300, 3_600), chosen=True, renews=True)},
        {"price": None},
        {"price": Price(0, 0, 0, 0, 0)},
        {"cache": CacheTerms((300,), renews=False)},
        {"wire": "openai_chat", "cache": CacheTerms()},
        {"abilities": Abilities(thinking="budget"), "settings": {"thinking": "high"}, "max_output": 8_000},
    ],
    ids=[
        "switched off",
        "an hour is sold",
        "price unknown",
        "free",
        "reads do not renew",
        "another wire",
        "a budget to think",
    ],
)
async def test_nothing_is_sent_where_it_does_not_pay_or_cannot_be(options: dict[str, Any], tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider, **options) as it:
        await provider.clock.advance(291)
        assert not await nothing_more(it)


async def test_whoever_wishes_it_has_it_where_an_hour_is_sold_too(tmp_path: Path) -> None:
    provider, terms = Caching(Clock()), CacheTerms((300, 3_600), chosen=True, renews=True)
    async with pausing(tmp_path, provider, cache=terms, settings={"economy.warming": True}) as it:
        assert it.records(RequestRecord)[0].lifetime == 300
        await pause(it, 291, sent=1)


async def test_nothing_is_sent_where_nothing_was_kept(tmp_path: Path) -> None:
    provider = Caching(Clock(), least=1_000_000)
    async with pausing(tmp_path, provider) as it:
        await provider.clock.advance(291)
        assert not await nothing_more(it)


async def test_a_machine_that_slept_too_long_sends_nothing(tmp_path: Path) -> None:
    """The cache has expired by then: a warming would write all of it."""
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await provider.clock.advance(3_600)
        assert not await nothing_more(it)


async def test_what_moves_the_prefix_ends_the_warming(tmp_path: Path) -> None:
    for number, act in enumerate(("omit", "redact", "undo", "switch", "stop")):
        provider = Caching(Clock())
        async with pausing(tmp_path / str(number), provider) as it:
            said = next(e for e in it.agent.session.branch() if isinstance(e.record, MessageRecord))
            match act:
                case "omit":
                    await it.agent.marks.omit(said.id)
                case "redact":
                    await it.agent.marks.redact(said.id)
                case "undo":
                    await it.agent.branches.undo()
                case "switch":
                    await it.agent.switch_model(ChosenModel(replace(it.agent.model.info, id="other"), provider))
                case _:
                    await it.agent.stop()
            await provider.clock.advance(291)
            assert not await nothing_more(it), act


async def test_a_failing_warming_is_the_last_of_its_gap(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        provider.add(Reply(error="overloaded"))
        await pause(it, 291, sent=1)
        (outcome,) = outcomes(it)
        assert outcome.problem is not None and outcome.problem["kind"] == "overloaded"
        await provider.clock.advance(280)
        events = await it.say("back")
        (kept,) = of(CacheKeptWarm, events)
        assert kept.requests == 1 and kept.error is not None
        assert of(TurnFinished, events)[0].error is None
        await pause(it, 291, sent=2)  # the next gap is another one


async def test_a_warming_that_finds_nothing_kept_is_the_last_of_its_gap(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        provider.evict()
        await pause(it, 291, sent=1)
        await provider.clock.advance(291)
        assert len(await nothing_more(it)) == 1


async def test_a_turn_breaks_off_a_warming_at_once(tmp_path: Path) -> None:
    """And its outcome stands before the turn's request."""
    provider, never = Caching(Clock()), anyio.Event()
    async with pausing(tmp_path, provider) as it:
        provider.add(Reply(hold=never.wait))
        await provider.clock.advance(291)
        await until(lambda: len(it.model.requests) == 2)
        events = await it.say("back already")
        assert of(TurnFinished, events)[0].text == "yes"
        kinds = [entry.record for entry in it.on_disk() if entry.record.type in ("request", "outcome")]
        assert [kind.stop for kind in kinds if isinstance(kind, OutcomeRecord)] == ["stop", "aborted", "stop"]
        assert [kind.type for kind in kinds] == ["request", "outcome"] * 3


async def test_a_close_breaks_off_a_warming_at_once(tmp_path: Path) -> None:
    provider, never = Caching(Clock()), anyio.Event()
    async with pausing(tmp_path, provider) as it:
        provider.add(Reply(hold=never.wait))
        await provider.clock.advance(291)
        await until(lambda: len(it.model.requests) == 2)
    assert [record.stop for record in outcomes(it)] == ["aborted"]


async def test_nothing_is_sent_while_the_disk_refuses(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        disk = watched(it.agent.session)
        disk.refuse = {"write": FULL}
        await it.agent.marks.note("what cannot be written")
        assert it.agent.session.unsaved
        await provider.clock.advance(291)
        assert not await nothing_more(it)
        disk.heal()
        await it.agent.session.save()


async def test_what_is_known_of_the_cache_is_the_same_live_and_after_a_resume(tmp_path: Path) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await pause(it, 291, sent=1)
        await it.agent.stop()
        live = it.agent.room.desk().thrift(it.agent.model).economy
        read = thrift_of(by_clock(it), it.agent.model, warming=True).economy
        assert live.cache is not None and live.cache.used_at == provider.clock.now
        assert read == live


async def test_nothing_in_the_conversation_notices(tmp_path: Path) -> None:
    """Undo, retry, recap, exports: as if it had not been."""
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await it.say("the second")
        await pause(it, 291, sent=1)
        branch = it.agent.session.branch()
        assert not interrupted(branch)
        assert [line.kind for line in recap(branch)] == ["past"] * 4
        moved = await it.agent.branches.undo()
        assert moved.text == "the second"
        await it.say("another second")
        assert "the second" not in str(it.bodies[-1]["messages"])
        await pause(it, 291, sent=2)
        async for _ in it.agent.branches.retry():
            pass
        assert [record.cause for record in it.records(OutcomeRecord)] == [None] * 6


async def test_an_export_gives_each_reply_its_own_cost_and_tells_of_no_failed_warming(tmp_path: Path) -> None:
    """The message after a warming would else be said to have cost what the warming did."""
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        provider.add(Reply(error="overloaded"))
        await pause(it, 291, sent=1)
        await it.say("back")
        replies = [record.cost for record in it.records(OutcomeRecord)][::2]
        reading = read_log(it.log)
        shown = transcript(reading.header, reading.entries)
        items = [item for segment in shown.shown for item in segment.items]
        said = [item for item in items if isinstance(item, Said)]
        assert [item.cost for item in said] == [None, replies[0], None, replies[1]]
        assert not [item for item in items if isinstance(item, Mark) and item.kind == "problem"]


async def test_what_a_model_saw_is_told_of_the_newest_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await pause(it, 291, sent=1)
    assert show_as_model(shelf(tmp_path, None), "pause", None, as_json=True, environ={}) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["request"]["purpose"] == "turn"


async def test_a_warming_is_made_again_from_the_log(tmp_path: Path) -> None:
    """Byte for byte, like every request."""
    provider = Caching(Clock())
    async with pausing(tmp_path, provider) as it:
        await pause(it, 291, sent=1)
        (entry,) = warmings(it)
        seen = as_model(it.on_disk(), entry.id, it.agent.model.info)
        assert seen.same and seen.data == bytes_of(it.model.requests[-1].body)


def test_the_chat_says_it_in_a_line_and_counts_the_cost() -> None:
    event = CacheKeptWarm(requests=2, tokens=84_000, cost=0.0252)
    state, (line,) = advance(ChatState("m", 200_000, cost=1.0), event, 0.0)
    assert state.cost == pytest.approx(1.0252)
    assert "2 requests, 84k read, $0.0252" in line.text
    _, (line,) = advance(state, replace(event, cost=None, error="the provider is busy"), 0.0)
    assert "Then it failed: the provider is busy" in line.text


async def test_nothing_is_sent_for_what_asks_once(tmp_path: Path) -> None:
    """As `moonwake run` does: nobody comes back, whatever a file of settings wishes."""
    (tmp_path / "own.toml").write_text("[economy]\nwarming = true\n")
    environ = {"MOONWAKE_CONFIG": str(tmp_path / "own.toml")}
    provider = Caching(Clock())
    async with pausing(tmp_path, provider, settings=dict(ASKED_ONCE), environ=environ) as it:
        await provider.clock.advance(291)
        assert not await nothing_more(it)


async def test_nothing_is_sent_while_a_tool_runs(tmp_path: Path) -> None:
    """However long it takes: the turn goes on, and its next request comes by itself."""
    provider, done = Caching(Clock(), otherwise="yes"), anyio.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        await done.wait()
        return "at last"

    async with caching_talk(tmp_path, provider, session="pause", cache=FIVE_MINUTES, tools=[wait]) as it:
        await it.say(LONG)
        provider.add(Call("wait", {}), "done")
        async with anyio.create_task_group() as group:
            group.start_soon(it.say, "wait for it")
            await until(lambda: len(it.model.requests) == 2)
            for _ in range(3):
                await provider.clock.advance(291)
            assert not warmings(it)
            done.set()
        await pause(it, 291, sent=1)


@pytest.mark.parametrize(
    ("wire", "abilities", "sent"),
    [
        ("anthropic", Abilities(thinking="budget"), 0),  # the budget has to be below the limit
        ("anthropic", Abilities(thinking="adaptive"), 1),
        ("openai_chat", Abilities(thinking="effort"), 1),
        ("openai_responses", Abilities(thinking="effort"), 1),
    ],
)
async def test_a_warming_is_legal_whatever_is_thought(
    tmp_path: Path, wire: str, abilities: Abilities, sent: int
) -> None:
    """The scripted model refuses what breaks a rule of its wire, and the refusal would stand in the outcome."""
    provider = Caching(Clock())
    options: dict[str, Any] = {"abilities": abilities, "settings": {"thinking": "high"}, "max_output": 8_000}
    async with pausing(tmp_path, provider, wire=wire, **options) as it:
        await pause(it, 291, sent=sent)
        assert [outcome.problem for outcome in outcomes(it)] == [None] * sent
