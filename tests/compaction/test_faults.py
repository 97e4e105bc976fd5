"""Faults of compaction that users of such systems reported, each as a conversation in small."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from governors.messages import Image, Text
from runtime.compaction.parts import PARTS
from runtime.events import CompactionFinished, HistoryCut, StateChanged, TurnFinished
from runtime.providers.base import Problem, Request
from runtime.providers.problems import Target, from_status
from runtime.providers.scripted import Call, Reply
from runtime.session.entries import CompactionRecord, HeadRecord, OutcomeRecord, RequestRecord, ResultRecord
from tests.agent.test_compacting import LONG, ON, SUMMARY, answering, is_asked, last_text, look, said
from tests.agents import Talk, of, talk
from tests.agents_again import assert_every_request_is_made_again

Answer = str | Reply | Call


def body(it: Talk) -> str:
    return str(it.bodies[-1]["messages"])


def ends(events: list[Any]) -> list[str | None]:
    return [event.error for event in of(TurnFinished, events)]


async def test_fault_pictures_were_copied_into_each_compaction(tmp_path: Path) -> None:
    """Their bytes stand in the log once, however often they are folded."""
    data = base64.b64encode(Random(1).randbytes(3_000)).decode()
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        picture: Any = (Text("Look at this."), Image("image/png", data, 64, 64))
        await it.say(picture)
        await said(it, 40)
        assert len(it.records(HeadRecord)) >= 2
        assert it.log.read_text().count(data[:400]) <= 1
        heads = [line for line in it.log.read_text().splitlines() if '"head"' in line[:200]]
        assert max(map(len, heads), default=0) < 20_000


async def test_fault_an_empty_summary_stood_in_for_all_in_silence(tmp_path: Path) -> None:
    """It is a failure that people are told of, and after three nothing more is asked."""
    async with talk(tmp_path, otherwise=answering(""), settings=ON, window=8_000) as it:
        events = await said(it, 18)
        failed = of(CompactionFinished, events)
        assert failed and {each.result for each in failed} == {"failed"} and "wrote nothing" in failed[0].why
        assert len(list(filter(is_asked, it.model.requests))) <= 6, "each is asked once more, and there are three"


async def test_fault_after_one_failure_it_never_fired_again(tmp_path: Path) -> None:
    """What was measured stays known, so that the next turn is tried again."""
    answers: Iterator[Answer] = iter([Reply(error="overloaded")])
    async with talk(tmp_path, otherwise=answering(lambda _: next(answers, SUMMARY)), settings=ON, window=8_000) as it:
        assert set(ends(await said(it, 20))) == {None}
        assert [each.result for each in it.records(CompactionRecord)][:2] == ["failed", "done"]


async def test_fault_two_small_savings_switched_it_off_for_good(tmp_path: Path) -> None:
    """When the breaker is open, a new turn and growth close it."""
    answers: Iterator[Answer] = iter([""] * 6)
    async with talk(tmp_path, otherwise=answering(lambda _: next(answers, SUMMARY)), settings=ON, window=8_000) as it:
        assert set(ends(await said(it, 45))) == {None}
        results = [each.result for each in it.records(CompactionRecord)]
        assert results[:3] == ["failed"] * 3 and "done" in results


async def test_fault_the_compressed_prompt_was_larger_than_the_original(tmp_path: Path) -> None:
    """A summary that saves nothing is none."""
    async with talk(tmp_path, otherwise=answering(SUMMARY + LONG * 60), settings=ON, window=8_000) as it:
        await said(it, 18)
        assert "saves nothing" in it.records(CompactionRecord)[0].why
        assert {head.cause for head in it.records(HeadRecord)} <= {"snip"}


async def test_fault_nothing_to_compact_was_a_failure_and_stopped_the_next_pass(tmp_path: Path) -> None:
    """Nothing to do, a failure and a success are three, and a compaction may follow on one."""
    answers: Iterator[Answer] = iter([SUMMARY, "", "", SUMMARY])
    async with talk(tmp_path, otherwise=answering(lambda _: next(answers)), settings=ON) as it:
        by_hand = it.agent.compactions.by_hand
        assert (await by_hand()).result == "nothing"
        await said(it, 30)
        assert (await by_hand()).result == "done"
        assert (await by_hand()).result in ("nothing", "failed"), "what stayed is small"
        breaker = it.records(CompactionRecord)[-1].breaker
        await said(it, 30)
        assert (await by_hand()).result in ("done", "failed") and breaker.get("misses", 0) <= 1


async def test_fault_a_conversation_too_long_for_its_summary_was_lost(tmp_path: Path) -> None:
    """After a switch to a smaller window it is told in pieces, each with the notes so far, and the newest stays."""
    seen: list[str] = []

    def summary(request: Request) -> Answer:
        seen.append(last_text(request))
        known = [f"order_{number}" for number in range(40) if f"order_{number} " in seen[-1] + " "]
        return SUMMARY.replace("## Facts\nSomething was kept.", "## Facts\n" + " ".join(known))

    async with talk(tmp_path, otherwise=answering(summary), settings=ON, prefix_law=False) as it:
        await said(it, 40)
        await it.agent.switch_model(it.model.chosen(window=8_000))
        events = await it.say("What was order_39?")
        assert ends(events) == [None] and not of(HistoryCut, events)
        (receipt,) = it.records(CompactionRecord)
        assert receipt.result == "done" and len(receipt.requests) >= 2
        assert "The notes so far" in seen[-1] and "order_0" in seen[-1]
        assert "order_39" in body(it)
        assert all(each.forecast <= each.budget for each in it.records(RequestRecord))


async def test_fault_compaction_began_when_it_was_too_late(tmp_path: Path) -> None:
    """One large addition between two counts: nothing is sent that is too large, and success is told once it is true."""
    script: Iterator[Answer] = iter([Call("look", {"number": 1}), "done"])

    def answer(request: Request) -> Answer:
        return next(script, "done") if "Big" in str(request.body["messages"][-3:]) else LONG

    async with talk(tmp_path, otherwise=answering(SUMMARY, answer), settings=ON, window=8_000, tools=[look]) as it:
        await said(it, 10)
        events = await it.say("Big: " + "word " * 2_500)
        assert ends(events) == [None]
        problems = [each.problem for each in it.records(OutcomeRecord) if each.problem]
        assert not problems and all(each.forecast <= each.budget for each in it.records(RequestRecord))
        on_disk = {entry.id for entry in it.on_disk()}
        assert all(each.entry in on_disk for each in of(CompactionFinished, events))


async def test_fault_chained_compactions_kept_a_result_without_its_call(tmp_path: Path) -> None:
    """Many on end, inside turns, before them and by hand, across restarts: each request is legal and made again."""
    numbers = count(1)

    def answer(_: Request) -> Answer:
        number = next(numbers)
        calls = [Call("look", {"number": number * 10 + each}) for each in range(number % 3 + 1)]
        return Reply("", calls) if number % 6 else "done"

    for life in range(2):
        async with talk(
            tmp_path,
            otherwise=answering(SUMMARY, answer),
            settings=ON,
            window=8_000,
            tools=[look],
            session="s",
            prefix_law=not life,
        ) as it:
            events: list[Any] = []
            for turn in range(5):
                events += await it.say(f"Turn {turn} of life {life}: {LONG}")
            await it.agent.compactions.by_hand()
            assert set(ends(events)) == {None}
            assert not [each.problem for each in it.records(OutcomeRecord) if each.problem]
    assert len({head.placement for head in it.records(HeadRecord)}) == 2 and len(it.records(HeadRecord)) >= 5


async def test_fault_the_compact_tool_put_its_result_on_another_branch_than_its_call(tmp_path: Path) -> None:
    """Its result, and those of the calls beside it, belong to their calls; the turn goes on."""
    calls = Reply("", [Call("look", {"number": 1}), Call("compact", {"keep": "all"}), Call("look", {"number": 2})])
    script: Iterator[Answer] = iter(
        [*[Call("look", {"number": n}) for n in range(6)], calls, Call("look", {"number": 3}), "done"]
    )
    async with talk(
        tmp_path, otherwise=answering(SUMMARY, lambda _: next(script)), settings=ON, window=20_000, tools=[look]
    ) as it:
        assert ends(await it.say("Look around.")) == [None]
        branch = {entry.id for entry in it.agent.session.branch()}
        results = [entry for entry in it.on_disk() if isinstance(entry.record, ResultRecord)]
        assert all(entry.id in branch and entry.record.call[0] in branch for entry in results)  # type: ignore[union-attr]
        assert_every_request_is_made_again(it)


async def test_fault_the_agent_answered_hours_old_messages_after_a_compaction(tmp_path: Path) -> None:
    """What the user says now stands last, word for word, and the summary before it."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        finished: list[Any] = []
        for turn in range(30):
            finished = of(CompactionFinished, await it.say(f"Now do task {turn}."))
            if finished:
                break
        sent = it.bodies[-1]["messages"]
        assert finished and f"Now do task {turn}." in str(sent[-1]) and "Something was kept." in str(sent[0])


async def test_fault_the_task_in_the_first_message_fell_out_of_view(tmp_path: Path) -> None:
    """Sixty rounds of tools after it, it is there word for word, though no summary repeats it."""
    numbers = count(1)

    def answer(_: Request) -> Answer:
        number = next(numbers)
        return Call("look", {"number": number}) if number < 60 else "done"

    async with talk(
        tmp_path,
        otherwise=answering(SUMMARY, answer),
        settings={**ON, "limits.max_steps": 80},
        window=8_000,
        tools=[look],
    ) as it:
        assert ends(await it.say("The task: count the 4711 doors, and never open one.")) == [None]
        assert len(it.records(HeadRecord)) >= 2
        assert all("count the 4711 doors" in str(each["messages"]) for each in it.bodies)


async def test_fault_rules_were_gone_after_a_compaction(tmp_path: Path) -> None:
    """The system prompt is told anew, and the model that sums up knows that it will be."""
    (tmp_path / "AGENTS.md").write_text("Always answer in rhymes.")
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        await said(it, 20)
        assert it.records(HeadRecord) and all("Always answer in rhymes." in str(each["system"]) for each in it.bodies)
        (asked, *_) = filter(is_asked, it.model.requests)
        assert "told anew" in last_text(asked) and "agents" in last_text(asked).casefold()


async def test_fault_a_failed_compaction_left_a_latch(tmp_path: Path) -> None:
    """The state is left however it ends, what is said runs, and idle time is not spent on trying again and again."""
    clock = [1_000_000.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    answer = answering(Reply(error=Problem("network", "the connection broke")))
    async with talk(tmp_path, otherwise=answer, settings=ON, window=8_000) as it:
        it.agent.equipment = replace(it.agent.equipment, now=lambda: clock[0], sleep=sleep)
        events = await said(it, 30)
        assert set(ends(events)) == {None}
        moves = [(each.before, each.after) for each in of(StateChanged, events)]
        assert moves.count(("run", "compact")) == moves.count(("compact", "run"))
        receipt = await it.agent.compactions.by_hand()
        assert receipt.result == "failed" and it.agent.state.value == "idle"
        assert ends(await it.say("Are you there?")) == [None]
        assert len(it.records(CompactionRecord)) < 31, "less than once a message, counting those while nobody talks"


WORDINGS = [
    "Input length 5393 exceeds the maximum allowed input length of 5040 tokens.",
    "Prompt has 5468 tokens, but the configured context size is 5000 tokens",
    "tokens in request more than max tokens allowed",
]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_fault_an_overflow_in_other_words_was_retried_a_hundred_times(tmp_path: Path, wording: str) -> None:
    """Room is made once, and the request goes out again; it is not retried as it was."""
    problem = from_status(400, {"error": {"message": wording}}, Target("scripted", "http://localhost"))
    refused: Iterator[Answer] = iter([Reply(error=problem)])

    def answer(request: Request) -> Answer:
        return next(refused, "fine") if "Now go on" in str(request.body["messages"][-1]) else LONG

    async with talk(tmp_path, otherwise=answering(SUMMARY, answer), settings=ON, window=8_000) as it:
        await said(it, 14)
        before = len(it.model.requests)
        events = await it.say("Now go on.")
        assert ends(events) == [None] and 2 <= len(it.model.requests) - before <= 6
        assert next(refused, None) is None, "it was refused"


def test_the_parts_are_those_that_the_faults_are_about() -> None:
    """State says what is done and what is awaited, Instructions what holds."""
    assert {"State", "Instructions", "Goal"} <= {part.heading for part in PARTS}
