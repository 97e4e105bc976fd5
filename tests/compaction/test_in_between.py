"""Compactions and what else happens to a session: overflows, restarts, undo, refusing disks, people who talk."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from runtime.events import CompactionFinished, CompactionStarted, TurnFinished
from runtime.providers.base import Problem, Request
from runtime.providers.scripted import Call, Reply
from runtime.session.entries import CompactionRecord, HeadRecord, OutcomeRecord, RequestRecord
from tests.agent.test_compacting import LONG, ON, SUMMARY, answering, is_asked, look, said
from tests.agent.test_saving import watched
from tests.agents import Talk, of, talk
from tests.session.disks import FULL

Answer = str | Reply | Call


def errors(events: list[Any]) -> list[str | None]:
    return [event.error for event in of(TurnFinished, events)]


def working(steps: int) -> Any:
    """A model that calls a tool in so many steps of each turn."""
    numbers = count(1)

    def answer(_: Request) -> Answer:
        number = next(numbers)
        return Call("look", {"number": number}) if number % (steps + 1) else "done"

    return answer


async def test_an_overflow_that_the_provider_reports_makes_room_once_a_call(tmp_path: Path) -> None:
    """It is learnt from; where the next one overflows as well, the request is fitted, not summed up again."""
    over = Problem("overflow", "the prompt is too long: its window is 4,000.", 400, window=4_000)
    refused: Iterator[Answer] = iter([Reply(error=over), Reply(error=over)])

    def answer(request: Request) -> Answer:
        return next(refused, "fine") if "Now go on" in str(request.body["messages"][-1]) else LONG

    async with talk(tmp_path, otherwise=answering(SUMMARY, answer), settings=ON, window=16_000) as it:
        await said(it, 12)
        events = await it.say("Now go on.")
        assert errors(events) == [None]
        assert [each.reason for each in of(CompactionStarted, events)] == ["overflow"]


async def test_where_each_piece_overflows_the_window_is_said_to_be_full(tmp_path: Path) -> None:
    """The oldest of a piece goes, down to one message; that is a failure with words, and the turn goes on."""
    over = Problem("overflow", "the prompt is too long.", 400)
    async with talk(tmp_path, otherwise=answering(Reply(error=over)), settings=ON, window=8_000) as it:
        events = await said(it, 18)
        assert set(errors(events)) == {None}
        failed = of(CompactionFinished, events)
        assert failed and "the window is full" in failed[0].why
        asked = [each for each in it.model.requests if "Write the summary now" in str(each.body)]
        assert len(asked) <= 3 * 8, "the oldest go by twos, fours and eights"


async def test_a_session_goes_on_in_the_middle_of_a_turn_after_a_head_inside_it(tmp_path: Path) -> None:
    """Another process reads the head, the kept steps and the summary; nothing of it is lost or sent twice."""
    async with talk(
        tmp_path, otherwise=answering(SUMMARY, working(24)), settings=ON, window=8_000, tools=[look], session="s"
    ) as it:
        await it.say("The task: count the 4711 doors.")
        assert it.records(HeadRecord)[-1].placement == "last"
    async with talk(
        tmp_path, otherwise=answering(), settings=ON, window=8_000, tools=[look], session="s", prefix_law=False
    ) as it:
        assert errors(await it.say("And?")) == [None]
        view = str(it.bodies[-1]["messages"])
        assert "4711 doors" in view and view.count("Something was kept.") == 7, "the newest summary alone"
        assert not [each.problem for each in it.records(OutcomeRecord) if each.problem]


async def test_undo_of_a_head_inside_a_turn_shows_all_again(tmp_path: Path) -> None:
    """What was folded is in view, with what came since."""
    async with talk(
        tmp_path, otherwise=answering(SUMMARY, working(10)), settings={**ON, "compaction.strategy": "off"}, tools=[look]
    ) as it:
        await it.say("Look at all of it.")
        await it.agent.compactions.by_hand()
        await it.say("Go on.")
        assert "result 1 " not in str(it.bodies[-1]["messages"])
        await it.agent.branches.undo_head()
        await it.say("And now?")
        view = str(it.bodies[-1]["messages"])
        assert "result 1 " in view and "Go on." in view and "Something was kept." not in view


async def test_while_the_disk_refuses_room_is_made_and_saved_later_as_one(tmp_path: Path) -> None:
    """Head and receipt reach the log together once it takes them."""
    async with talk(tmp_path, otherwise=answering(), settings=ON, prefix_law=False) as it:
        await said(it, 30)
        disk = watched(it.agent.session)
        disk.refuse = {"write": FULL}
        receipt = await it.agent.compactions.by_hand()
        assert receipt.result == "done" and not it.records(HeadRecord)
        assert errors(await it.say("Are you there?")) == [None]
        disk.heal()
        assert errors(await it.say("And now?")) == [None]
        entries = it.on_disk()
        heads = [(a, b) for a, b in pairwise(entries) if isinstance(a.record, HeadRecord)]
        assert len(heads) == 1 and isinstance(heads[0][1].record, CompactionRecord)


async def test_what_is_said_while_room_is_made_inside_a_turn_joins_it_afterwards(tmp_path: Path) -> None:
    """It is recorded at once, waits for the summary, and is delivered in the same turn."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def hang() -> None:
        begun.set()
        await go_on.wait()

    answer = answering(Reply(SUMMARY, hold=hang), working(24))
    async with talk(tmp_path, otherwise=answer, settings=ON, window=8_000, tools=[look]) as it:
        heard: list[Any] = []

        async def speak(text: str) -> None:
            heard.extend(await it.say(text))

        async with anyio.create_task_group() as group:
            group.start_soon(speak, "Look at all of it.")
            await begun.wait()
            assert it.agent.state.value == "compact"
            group.start_soon(speak, "Hurry up, please.")
            while "Hurry up, please." not in it.log.read_text():
                await anyio.lowlevel.checkpoint()
            go_on.set()
        assert set(errors(heard)) == {None}
        assert any("Hurry up, please." in str(each["messages"]) for each in it.bodies[:-1])


async def test_another_branch_from_before_a_compaction_has_no_summary(tmp_path: Path) -> None:
    """A head counts on its own branch alone."""
    async with talk(tmp_path, otherwise=answering(), settings=ON) as it:
        await said(it, 3)
        leaf = it.agent.session.tree.leaf
        assert leaf is not None
        await said(it, 40)
        await it.agent.compactions.by_hand()
        await it.say("Go on.")
        assert "Something was kept." in str(it.bodies[-1]["messages"])
        await it.agent.branches.switch(leaf)
        await it.say("Go on, over here.")
        view = str(it.bodies[-1]["messages"])
        assert "Something was kept." not in view and "order_0" in view


def asked_for(it: Talk) -> list[RequestRecord]:
    return [each for each in it.records(RequestRecord) if each.purpose == "compaction"]


async def test_a_chaotic_summariser_never_harms_the_conversation(tmp_path: Path) -> None:
    """Whatever it answers, each turn ends well, nothing is over budget, and attempts are bounded."""
    bad: list[Answer] = [
        "",
        " \n\t ",
        "## Goal\n## Instructions\n## Decisions\n## State\n## Files\n## Facts\n## Questions",
        Reply(SUMMARY, stop="length"),
        Reply("No.", stop="refused"),
        Reply(SUMMARY, [Call("look", {"number": 1})]),
        Call("unheard_of", "{broken"),
        Reply(error="network"),
        Reply(error="overloaded"),
        Reply(error=Problem("overflow", "too long", 400)),
        SUMMARY.replace("## Facts", "## Fact"),
        SUMMARY + LONG * 100,
        Reply(SUMMARY, stop="deferred"),
        "<|endoftext|>\ud83d" + SUMMARY[:40],
    ]
    answers = iter(bad * 20)
    async with talk(
        tmp_path, otherwise=answering(lambda _: next(answers), working(3)), settings=ON, window=8_000, tools=[look]
    ) as it:
        events = await said(it, 40)
        assert set(errors(events)) == {None}
        assert all(each.forecast <= each.budget for each in it.records(RequestRecord))
        assert {each.result for each in it.records(CompactionRecord)} == {"failed"}
        assert len(asked_for(it)) < 60 and not [each for each in it.model.requests[-1:] if is_asked(each)]
