"""Room is made in conversations that grow too long: when, how, what stays, and what happens when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from runtime import tool
from runtime.compaction.parts import PARTS
from runtime.events import CompactionFinished, CompactionStarted, HistoryCut, StateChanged, TurnFinished
from runtime.providers.base import Request
from runtime.providers.scripted import Call, Reply, Script
from runtime.session.entries import CompactionRecord, HeadRecord, OutcomeRecord, RequestRecord
from tests.agents import Talk, of, talk
from tests.agents_again import assert_every_request_is_made_again

ON = {"compaction.strategy": "summary"}
LONG = "word " * 150
SUMMARY = "\n\n".join(f"## {part.heading}\nSomething was kept." for part in PARTS)


@tool(read_only=True)
def look(number: int) -> str:
    """Look at something.

    Args:
        number: Which.
    """
    return f"result {number} {LONG}"


def last_text(request: Request) -> str:
    """What the newest message of a request says."""
    content = request.body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[-1].get("text", ""))


def is_asked(request: Request) -> bool:
    """Whether a request asks for a summary."""
    return "Write the summary now" in last_text(request)


def answering(summary: Script = SUMMARY, answer: Script = LONG) -> Callable[[Request], Any]:
    """A model that answers every message with `answer` and every request for a summary with `summary`."""

    def answer_to(request: Request) -> Any:
        script = summary if is_asked(request) else answer
        return script(request) if callable(script) else script

    return answer_to


async def said(it: Talk, turns: int) -> list[Any]:
    events: list[Any] = []
    for number in range(turns):
        events += await it.say(f'Note order_{number} and "exact words {number}".')
    return events


async def test_before_a_turn_the_old_turns_become_a_summary(tmp_path: Path) -> None:
    """It stands first, the newest turns stay word for word, and nobody's request is over budget."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        events = await said(it, 30)
        heads, receipts = it.records(HeadRecord), it.records(CompactionRecord)
        assert [head.cause for head in heads] == ["compaction"] * 2 and not of(HistoryCut, events)
        assert [each.result for each in receipts] == ["done"] * 2
        assert all(head.placement == "first" and head.resume is None for head in heads)
        assert all(
            head.before - head.after > 0.2 * receipt.before for head, receipt in zip(heads, receipts, strict=True)
        )
        sent = it.bodies[-1]["messages"]
        assert "Something was kept." in str(sent[0]) and "order_29" in str(sent[-1]) and "order_28" in str(sent)
        assert_every_request_is_made_again(it)


async def test_the_receipt_names_what_the_summary_lost(tmp_path: Path) -> None:
    """Every figure, name and quotation of what the user said there, and nothing that is kept."""
    kept = SUMMARY.replace("## Facts\nSomething was kept.", '## Facts\norder_0, "exact words 0", 0')
    async with talk(tmp_path, otherwise=answering(kept), settings=ON, window=8_000) as it:
        events = await said(it, 18)
        (receipt,) = it.records(CompactionRecord)
        (told,) = of(CompactionFinished, events)
        assert told.dropped == receipt.dropped
        assert {"order_1", '"exact words 1"'} <= set(receipt.dropped)
        assert not {"order_0", '"exact words 0"', "order_17"} & set(receipt.dropped)


async def test_the_summary_is_asked_for_at_the_end_of_the_warm_prefix(tmp_path: Path) -> None:
    """Same system prompt, same tools, same messages, and one more."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000, tools=[look]) as it:
        await said(it, 18)
        place = next(index for index, request in enumerate(it.model.requests) if is_asked(request))
        before, asked = it.bodies[place - 1], it.bodies[place]
        assert (asked["system"], asked["tools"]) == (before["system"], before["tools"])
        shared = [message["content"][0]["text"] for message in before["messages"]]
        assert [message["content"][0]["text"] for message in asked["messages"]][: len(shared)] == shared
        purposes = [record.purpose for record in it.records(RequestRecord)]
        assert purposes.count("compaction") == 1


async def test_inside_a_turn_the_oldest_steps_go_and_the_summary_stands_last(tmp_path: Path) -> None:
    """The user's words stay; the turn goes on; the state says what happens."""
    steps = iter(range(1, 100))

    def answer(_: Request) -> Script:
        number = next(steps)
        return Call("look", {"number": number}) if number < 30 else "done"

    async with talk(tmp_path, otherwise=answering(SUMMARY, answer), settings=ON, window=8_000, tools=[look]) as it:
        events = await it.say('Look at all of it, and "never stop".')
        (finished,) = of(TurnFinished, events)
        assert finished.text == "done" and finished.error is None
        heads = it.records(HeadRecord)
        assert heads and all(head.placement == "last" and head.resume is not None for head in heads)
        assert all(each.dropped == () for each in it.records(CompactionRecord)), "what was said is still in view"
        moves = [(each.before, each.after) for each in of(StateChanged, events)]
        assert moves == [("idle", "run"), *[("run", "compact"), ("compact", "run")] * len(heads), ("run", "idle")]
        assert "never stop" in str(it.bodies[-1]["messages"][0])
        assert_every_request_is_made_again(it)


async def test_the_model_may_ask_for_room(tmp_path: Path) -> None:
    """Once its step is recorded, and with what it wants to keep."""
    script = iter([*[Call("look", {"number": n}) for n in range(6)], Call("compact", {"keep": "the prices"}), "done"])
    async with talk(
        tmp_path, otherwise=answering(SUMMARY, lambda _: next(script)), settings=ON, window=20_000, tools=[look]
    ) as it:
        events = await it.say("Look around.")
        (started,) = of(CompactionStarted, events)
        assert (started.timing, started.reason) == ("mid_turn", "model")
        assert of(TurnFinished, events)[0].text == "done"
        assert "keep above all: the prices" in last_text(next(filter(is_asked, it.model.requests)))


async def test_by_hand_it_is_made_whatever_the_size(tmp_path: Path) -> None:
    """With what the user wants to keep; undone, everything is in view again."""
    async with talk(tmp_path, otherwise=answering(), settings=ON) as it:
        await said(it, 30)
        receipt = await it.agent.compactions.by_hand("the orders")
        assert receipt.result == "done" and receipt.folded > 0 and receipt.after < receipt.before
        assert "keep above all: the orders" in last_text(it.model.requests[-1])
        await it.say("And now?")
        assert "order_0" not in str(it.bodies[-1]["messages"])
        await it.agent.branches.undo()  # the turn
        await it.agent.branches.undo()  # the compaction
        await it.say("And now?")
        assert "order_0" in str(it.bodies[-1]["messages"])


async def test_a_head_knows_what_its_own_summary_cost(tmp_path: Path) -> None:
    """The fault of the session that became cheaper with each compaction."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        await said(it, 18)
        (head,) = it.records(HeadRecord)
        place = next(entry.id for entry in it.on_disk() if isinstance(entry.record, HeadRecord))
        costs = [
            each.record.cost for each in it.on_disk() if isinstance(each.record, OutcomeRecord) and each.id < place
        ]
        assert head.spent == pytest.approx(sum(cost or 0.0 for cost in costs))


async def test_by_hand_there_may_be_nothing_to_fold(tmp_path: Path) -> None:
    """That is neither a success nor a failure, and no model is asked."""
    async with talk(tmp_path, otherwise=answering(answer="Hi."), settings=ON) as it:
        await it.say("Hello.")
        receipt = await it.agent.compactions.by_hand()
        assert receipt.result == "nothing" and len(it.model.requests) == 1 and not it.records(HeadRecord)


async def test_a_cleared_conversation_keeps_what_the_user_says_now(tmp_path: Path) -> None:
    """No model is asked, and the log has everything."""
    async with talk(tmp_path, otherwise=answering(), settings={"compaction.strategy": "blank"}, window=8_000) as it:
        await said(it, 20)
        receipt = it.records(CompactionRecord)[0]
        assert (receipt.strategy, receipt.requests, receipt.cost) == ("blank", (), 0.0)
        assert not any(map(is_asked, it.model.requests))
        assert "order_0" in receipt.dropped


FAILURES: list[tuple[Script, str]] = [
    ("", "wrote nothing"),
    ("I will go on.", "it lacks"),
    (Reply(SUMMARY, stop="length"), "output limit"),
    (Reply(SUMMARY, stop="refused"), "refused"),
    (Call("look", {"number": 1}), "called a tool"),
    (SUMMARY + LONG * 60, "saves nothing"),
    (Reply(error="overloaded"), "overloaded"),
]


@pytest.mark.parametrize(("summary", "why"), FAILURES, ids=[why for _, why in FAILURES])
async def test_a_summary_that_fails_changes_nothing_and_the_turn_goes_on(
    tmp_path: Path, summary: Script, why: str
) -> None:
    """It is said why; after three the breaker is open, and what is too long is cut without a summary."""
    async with talk(tmp_path, otherwise=answering(summary), settings=ON, window=8_000, tools=[look]) as it:
        events = await said(it, 30)
        receipts = it.records(CompactionRecord)
        assert {each.result for each in receipts} == {"failed"} and why in receipts[0].why
        assert not [each for each in of(TurnFinished, events) if each.error]
        assert {head.cause for head in it.records(HeadRecord)} == {"snip"}
        assert [each.breaker["misses"] for each in receipts[:3]] == [1, 2, 3]
        assert len(receipts) <= 9, "it closes only when the request has grown, so it is not tried at each call"


async def test_an_answer_that_does_not_count_is_asked_for_once_more(tmp_path: Path) -> None:
    """With the reason, at the same warm prefix."""
    answers = iter(["I will go on.", SUMMARY, SUMMARY])
    async with talk(tmp_path, otherwise=answering(lambda _: next(answers)), settings=ON, window=8_000) as it:
        await said(it, 18)
        first, again = filter(is_asked, it.model.requests)
        assert "does not count: it lacks" in last_text(again) and "does not count" not in last_text(first)
        (receipt,) = it.records(CompactionRecord)
        assert receipt.result == "done" and len(receipt.requests) == 2


async def test_a_floor_above_the_mark_stops_after_three(tmp_path: Path) -> None:
    """The fault of the compaction at every call: nothing that goes brings the request under the mark."""
    steps = iter(range(1, 200))

    def answer(_: Request) -> Script:
        return Call("look", {"number": next(steps)})

    async with talk(
        tmp_path,
        otherwise=answering(SUMMARY, answer),
        settings={**ON, "limits.max_steps": 40, "compaction.block": 0.2, "compaction.idle": 0.1},
        window=8_000,
        tools=[look],
    ) as it:
        events = await it.say("Keep this: " + "important " * 1_200)
        assert len(it.records(CompactionRecord)) <= 3
        assert of(TurnFinished, events)[0].error is not None
        assert it.log.stat().st_size < 2_000_000


async def test_a_stop_while_room_is_made_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    """Nothing between before and after; the next turn works."""
    begun = anyio.Event()

    async def hang() -> None:
        begun.set()
        await anyio.sleep_forever()

    async with talk(tmp_path, otherwise=answering(Reply("## Goal", hold=hang)), settings=ON, window=8_000) as it:
        async with anyio.create_task_group() as group:
            group.start_soon(said, it, 20)
            await begun.wait()
            await it.agent.stop()
            group.cancel_scope.cancel()
        assert not it.records(HeadRecord) and not it.records(CompactionRecord)
        it.model._otherwise = answering()
        events = await it.say("Go on.")
        assert of(TurnFinished, events)[0].error is None and it.records(HeadRecord)


async def test_what_is_said_while_room_is_made_by_hand_waits_and_runs(tmp_path: Path) -> None:
    """It is on disk at once, and opens a turn afterwards."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def hang() -> None:
        begun.set()
        await go_on.wait()

    async with talk(tmp_path, otherwise=answering(Reply(SUMMARY, hold=hang)), settings=ON) as it:
        await said(it, 30)
        heard: list[Any] = []

        async def speak() -> None:
            heard.extend(await it.say("Are you there?"))

        async with anyio.create_task_group() as group:
            group.start_soon(it.agent.compactions.by_hand)
            await begun.wait()
            group.start_soon(speak)
            while "Are you there?" not in it.log.read_text():
                await anyio.lowlevel.checkpoint()
            assert it.agent.state.value == "compact"
            go_on.set()
        assert of(TurnFinished, heard) and it.records(CompactionRecord)[0].result == "done"


async def test_while_nobody_talks_room_is_made_when_the_cache_expires(tmp_path: Path) -> None:
    """Just before, once, and only where it is worth it."""
    clock = [1_000_000.0]
    slept: list[float] = []

    later = anyio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await later.wait()
        clock[0] += seconds

    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000) as it:
        it.agent.equipment = replace(it.agent.equipment, now=lambda: clock[0], sleep=sleep)
        await said(it, 13)
        later.set()
        with anyio.fail_after(20):
            while not it.records(CompactionRecord):
                await anyio.lowlevel.checkpoint()
        await it.agent.rest()
        (receipt,) = it.records(CompactionRecord)
        assert (receipt.timing, receipt.reason, receipt.result) == ("idle", "cold", "done")
        assert slept[-1] in (300 - 20, 3_600 - 20), "just before what was asked for expires"


async def test_a_tiny_model_is_not_asked_for_summaries(tmp_path: Path) -> None:
    """It cannot write one; the oldest turns are cut."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, window=8_000, profile="tiny") as it:
        await said(it, 30)
        assert not it.records(CompactionRecord) and {head.cause for head in it.records(HeadRecord)} == {"snip"}
