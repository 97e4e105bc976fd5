"""/compact, and what is told of room that is made by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from runtime import Conversation, Reply
from runtime.channels.commands import Command
from runtime.channels.entry_lines import entry_lines
from runtime.channels.live import activity
from runtime.channels.recap import counted_tokens, used_tokens
from runtime.channels.receipts import beginning, result_line, saving
from runtime.channels.reducer import ChatState, Line, advance
from runtime.channels.status import status_line
from runtime.channels.talk import Talk
from runtime.errors import ConfigError
from runtime.events import CompactionFinished, CompactionStarted
from runtime.providers.base import Price
from runtime.session.entries import CompactionRecord, Entry, HeadRecord
from tests.agent.test_compacting import LONG, ON, SUMMARY, answering
from tests.agents import Talk as Scene
from tests.agents import talk as opened
from tests.channels.test_talk import Hold, Watching
from tests.channels.test_tree_commands import new, type_


@asynccontextmanager
async def long_talk(
    folder: Path, otherwise: Any, *, turns: int = 12, settings: Any = ON, **model: Any
) -> AsyncIterator[tuple[Talk, Watching, Scene]]:
    """A conversation of some length, and a window that it does not fill."""
    async with opened(folder, otherwise=otherwise, settings=settings, **{"window": 20_000, **model}) as scene:
        audience = Watching()
        talk = Talk(scene.runtime, scene.agent, audience)
        async with anyio.create_task_group() as group:
            group.start_soon(talk.follow)
            for number in range(turns):
                await talk.say(f"Note order_{number}.")
                await talk.settle()
            yield talk, audience, scene
            await talk.close()
            group.cancel_scope.cancel()


async def test_a_receipt_tells_what_went_what_is_lost_and_how_to_undo(tmp_path: Path) -> None:
    """In a few lines; /show has all of it, and the summary."""
    async with long_talk(tmp_path, answering()) as (talk, audience, scene):
        before = len(audience.texts)
        await type_(talk, "/compact the orders")
        began, told = new(audience, before)
        assert began == "info: As you asked: the conversation is summed up …"
        (head,), (receipt,) = scene.records(HeadRecord), scene.records(CompactionRecord)
        first, money, lost, undo = told.removeprefix("info: ").splitlines()
        number = next(entry.id for entry in scene.on_disk() if entry.record == head)
        assert first.endswith(f"{receipt.folded} messages went out of view. /show {number} shows it.")
        assert first.startswith("Room was made: ") and money.startswith("It cost $0.0") and "less from now on" in money
        assert lost.startswith(f"The summary lacks {len(receipt.dropped)} details of what you said: order_0, ")
        assert lost.endswith(f"(/show {number + 1}).") and undo == "/undo takes it back."
        await type_(talk, f"/show {number}", f"/show {number + 1}")
        assert "Something was kept." in audience.texts[-3] and "  order_9" in audience.texts[-1].splitlines()
        assert "keep above all: the orders" in str(scene.bodies[-1]["messages"][-1])


async def test_what_is_said_meanwhile_goes_out_right_after_and_a_second_one_is_refused(tmp_path: Path) -> None:
    """The person may go on typing."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def hang() -> None:
        begun.set()
        await go_on.wait()

    async with long_talk(tmp_path, answering(Reply(SUMMARY, hold=hang))) as (talk, audience, scene):
        before = len(audience.texts)
        await talk.run(Command("/compact"))
        await begun.wait()
        await talk.say("Are you there?")
        await talk.run(Command("/compact"))
        assert new(audience, before)[1].startswith("warning: Room is being made already.")
        assert talk.waiting() == [("steered", "Are you there?")]
        go_on.set()
        await talk.settle()
        told = new(audience, before)
        assert told[2].startswith("info: Room was made: ") and told[3] == "user: Are you there?"
        assert not talk.occupied and len(scene.records(CompactionRecord)) == 1


async def test_a_turn_is_interrupted_and_a_stop_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """Both are told."""
    answers: dict[str, Any] = {"answer": LONG}
    summary = Hold()
    async with long_talk(tmp_path, answering(Reply("## Goal", hold=summary), lambda _: answers["answer"])) as (
        talk,
        audience,
        scene,
    ):
        answers["answer"] = Reply("Half", hold=(turn := Hold()))
        before = len(audience.texts)
        await talk.say("go on")
        await turn.reached.wait()
        await talk.run(Command("/compact"))
        await summary.reached.wait()
        await talk.run(Command("/stop"))
        await talk.settle()
        told = new(audience, before)
        assert told[0] == "user: go on" and "info: Stopped." in told[1:3]
        assert told[-1] == "info: Stopped. No room was made; nothing has changed."
        assert not scene.records(HeadRecord) and not scene.records(CompactionRecord)


async def test_leaving_while_room_is_made_waits_for_nothing(tmp_path: Path) -> None:
    """Also before it has begun."""
    async with long_talk(tmp_path, answering(Reply("## Goal", hold=Hold()))) as (talk, _, scene):
        await talk.run(Command("/compact"))
        with anyio.fail_after(5):
            await talk.close()
        assert not scene.records(HeadRecord)


async def test_a_failure_says_why_and_what_to_do(tmp_path: Path) -> None:
    async with long_talk(tmp_path, answering("I will go on.")) as (talk, audience, _):
        await type_(talk, "/compact")
        assert audience.texts[-2].startswith("error: No room was made: the summary does not count: it lacks")
        assert audience.texts[-2].endswith(". Nothing has changed.")
        assert audience.texts[-1].startswith("info: /compact tries again, /model NAME")


async def test_where_nothing_can_go_that_is_told(tmp_path: Path) -> None:
    async with long_talk(tmp_path, answering(answer="Hi."), turns=1) as (talk, audience, _):
        await type_(talk, "/compact")
        assert audience.texts[-1].startswith("info: There is nothing to sum up: the ")


@pytest.mark.parametrize("command", ["/undo", "/compact undo"])
async def test_undo_shows_the_model_everything_again(tmp_path: Path, command: str) -> None:
    """And warns when that would be folded again at once."""
    async with long_talk(tmp_path, answering(), settings={**ON, "compaction.block": 0.99}) as (talk, audience, scene):
        await type_(talk, "/compact", command)
        assert audience.texts[-1].startswith("info: The model sees again what was out of its view.")
        equipment = scene.agent.equipment
        scene.agent.equipment = replace(equipment, marks=replace(equipment.marks, block=0.1, idle=0.1))
        between = ["One more thing."] if command == "/compact undo" else []
        await type_(talk, "/compact", *between, command)
        assert audience.texts[-1].startswith("warning: That is ") and "makes room again" in audience.texts[-1]
        await type_(talk, "/compact undo")
        assert audience.texts[-1].startswith("error: ")


async def test_tokens_tells_the_marks_and_an_open_breaker(tmp_path: Path) -> None:
    async with long_talk(tmp_path, answering("I will go on."), turns=3) as (talk, audience, _):
        await type_(talk, "/tokens")
        assert audience.texts[-1].splitlines()[-1].startswith("Room is made from ")
        await type_(talk, "/compact", "/compact", "/compact", "/tokens")
        assert "That brought nothing 3 times in a row" in audience.texts[-1].splitlines()[-1]
    async with opened(tmp_path / "off") as scene:
        talk = Talk(scene.runtime, scene.agent, audience)
        await talk.run(Command("/tokens"))
        assert "Making room by summing up is off" in audience.texts[-1]


async def test_room_that_is_made_inside_a_conversation_is_told_in_a_line_each(tmp_path: Path) -> None:
    """That it begins, and what came of it; the status follows."""
    async with long_talk(tmp_path, answering(), turns=18, window=8_000) as (_, audience, scene):
        (receipt,) = scene.records(CompactionRecord)
        place = audience.texts.index("info: " + beginning("before_turn", "full", "summary"))
        assert audience.texts[place + 1].startswith("info: Room was made for $0.0")
        assert f"{receipt.folded} messages" in audience.texts[place + 1] and "(/show " in audience.texts[place + 1]


def test_the_status_says_that_room_is_made() -> None:
    """With the time that it takes; afterwards it tells the new size, and what all did cost."""
    state = ChatState("maker/model", 1_000, used=900, cost=0.5, phase="run")
    state, _ = advance(state, CompactionStarted(timing="mid_turn", reason="full", strategy="summary"), 10.0)
    assert "making room, 3 s" in status_line(state, 80, free=False, now=13.0)
    assert activity(state, [("steered", "hello")], 13.0, 80) == (
        Line("thinking", "making room · 3 s"),
        Line("queued", "right after: hello"),
    )
    event = CompactionFinished(result="done", before=900, after=300, folded=7, cost=0.25, entry=9)
    state, _ = advance(state, event, 14.0)
    assert (state.used, state.cost) == (300, 0.75)
    failed = CompactionFinished(result="failed", why="it wrote nothing", before=900, after=900, cost=None, entry=9)
    state, (line,) = advance(state, failed, 15.0)
    assert isinstance(line, Line)
    assert (state.used, state.cost, line.kind) == (300, None, "warning")
    assert line.text == "No room was made: it wrote nothing. Nothing has changed."


async def test_what_was_made_while_nobody_talked_is_told_when_somebody_does(tmp_path: Path) -> None:
    """Once, before the message; the window's use is known at once."""
    clock, later, slept = [1_000_000.0], anyio.Event(), anyio.Event()

    async def sleep(seconds: float) -> None:
        slept.set()
        await later.wait()
        clock[0] += seconds

    async with long_talk(tmp_path, answering(), turns=0, window=8_000) as (talk, audience, scene):
        scene.agent.equipment = replace(scene.agent.equipment, now=lambda: clock[0], sleep=sleep)
        await type_(talk, *[f"Note order_{number}." for number in range(13)])
        await slept.wait()
        before = len(audience.texts)
        later.set()
        with anyio.fail_after(10):
            while not scene.agent.session.tree.entries or not scene.records(CompactionRecord):
                await anyio.lowlevel.checkpoint()
            await scene.agent.rest()
        (head,) = scene.records(HeadRecord)
        assert used_tokens(scene.agent.session.branch()) == head.after
        assert counted_tokens(scene.agent.session.branch()) == 0
        assert new(audience, before) == []
        await type_(talk, "I am back.")
        first, second = new(audience, before)[:2]
        assert first.startswith("info: While nobody talked: Room was made") and second == "user: I am back."
        await type_(talk, "Still here.")
        assert sum("While nobody talked" in text for text in audience.texts) == 1


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_message_that_meets_room_being_made_says_what_it_waits_for(tmp_path: Path, stopped: bool) -> None:
    """It goes out right after; a stop holds it, and says no longer that room is made."""
    later, begun, go_on = anyio.Event(), anyio.Event(), anyio.Event()
    clock = [1_000_000.0]

    async def sleep(seconds: float) -> None:
        await later.wait()
        clock[0] += seconds

    async def hang() -> None:
        begun.set()
        await go_on.wait()

    settings = {**ON, "economy.warming": False}
    script = answering(Reply(SUMMARY, hold=hang))
    async with long_talk(tmp_path, script, turns=0, settings=settings, window=8_000) as (talk, audience, scene):
        scene.agent.equipment = replace(scene.agent.equipment, now=lambda: clock[0], sleep=sleep)
        await type_(talk, *[f"Note order_{number}." for number in range(13)])
        later.set()
        with anyio.fail_after(10):
            await begun.wait()
        before, moves = len(audience.texts), audience.moves
        await talk.say("I am back.")
        assert new(audience, before) == [f"info: {beginning('idle', '', 'summary')}"]
        if stopped:
            await talk.run(Command("/stop"))
            await talk.settle()
            assert talk.waiting() == [("held", "I am back.")] and audience.moves == moves + 1
            assert audience.texts[-1] == "info: Held back: 1 message. /send sends, /drop drops."
            assert not scene.records(HeadRecord)
        else:
            go_on.set()
            await talk.settle()
            told = new(audience, before)[1:3]
            assert told[0].startswith("info: While nobody talked: Room was made") and told[1] == "user: I am back."


async def test_a_program_makes_room_by_itself(tmp_path: Path) -> None:
    """With a receipt; a strategy that there is not is told with those that there are."""
    async with opened(tmp_path, otherwise=answering(), settings=ON) as scene:
        conversation = Conversation(scene.runtime.supervisor, "assistant", scene.agent.session.id)
        for number in range(12):
            await conversation.ask(f"Note order_{number}.")
        with pytest.raises(
            ConfigError, match="no strategy 'magic' for making room; there are: summary, provider, blank"
        ):
            await conversation.compact(strategy="magic")
        receipt = await conversation.compact("the orders", "blank")
        assert receipt.result == "done" and receipt.cost == 0.0 and "order_0" in receipt.dropped
        assert (await conversation.undo_head()).unheaded


def receipt(**fields: Any) -> CompactionRecord:
    common = {"timing": "mid_turn", "reason": "full", "strategy": "summary", "result": "done"}
    return CompactionRecord(**{**common, "before": 50_000, "after": 10_000, "folded": 40, **fields})


def test_what_is_saved_is_told_where_prices_are_known() -> None:
    price = Price(plain=3.0, output=15.0, cache_read=0.3, cache_write_5m=3.75, cache_write_1h=6.0)
    told = saving(receipt(cost=0.02), price)
    assert told == "It cost $0.0200, and each call costs $0.0120 less from now on, $0.12 where the cache is cold."
    assert saving(receipt(), replace(price, cache_read=3.0)) == "Each call costs $0.12 less from now on."
    assert saving(receipt(), None) == saving(receipt(), Price(0, 0, 0, 0, 0)) == ""


def test_nothing_in_a_receipt_steers_the_terminal() -> None:
    """Neither a provider's reason nor what people said."""
    bad = "x\x1b[2J\nwhy"
    lines = [result_line(receipt(result="failed", why=bad)), entry_lines(_entry(receipt(dropped=(bad,))))]
    assert not any("\x1b" in line for line in lines) and "\n" not in lines[0]


def _entry(record: CompactionRecord) -> Entry:
    return Entry(9, 8, "2026-12-01T00:00:00Z", record)
