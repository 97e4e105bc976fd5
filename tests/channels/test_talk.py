"""A conversation apart from any screen: input, queue, commands, errors."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from governors.messages import Usage
from runtime import Reply
from runtime.agent.agent import Agent
from runtime.channels.blocks import Block
from runtime.channels.commands import Command
from runtime.channels.reducer import ChatState, Line, Shown, advance
from runtime.channels.talk import Talk
from runtime.events import Event, TurnFinished
from runtime.providers.scripted import Script
from runtime.session.entries import OutcomeRecord, RequestRecord, SettingRecord
from runtime.tools.base import Tool
from tests.agent.test_saving import watched
from tests.agents import talk as opened
from tests.session.disks import FULL


class Watching:
    """An audience that remembers; `until` waits for something to be shown."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []
        self.events: list[Event] = []
        self.agents: list[Agent] = []
        self.offered: list[str] = []
        self.moves = 0
        self._state = ChatState("", 0)
        self._news = anyio.Event()

    def happened(self, event: Event) -> None:
        self.events.append(event)
        self._state, shown = advance(self._state, event, 0.0)
        self.show(*shown)

    def show(self, *shown: Shown) -> None:
        self.shown.extend(shown)
        self._news.set()

    def began(self, agent: Agent) -> None:
        self.agents.append(agent)

    def moved(self, agent: Agent) -> None:
        self.moves += 1

    def offer(self, text: str, otherwise: str) -> None:
        self.offered.append(text)

    @property
    def texts(self) -> list[str]:
        return [f"{each.kind}: {each.text}" if isinstance(each, Line) else each.text for each in self.shown]

    async def until(self, words: str) -> None:
        with anyio.fail_after(10):
            while not any(words in text for text in self.texts):
                self._news = anyio.Event()
                await self._news.wait()


class Hold:
    """Keeps a reply from ending; `reached` tells that it is being kept."""

    def __init__(self) -> None:
        self.reached = anyio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await anyio.sleep_forever()


@asynccontextmanager
async def sitting(
    folder: Path, *script: Script, tools: Sequence[Tool] = (), session: str | None = None, **model: Any
) -> AsyncIterator[tuple[Talk, Watching]]:
    async with opened(folder, script, tools=tools, session=session, **model) as scene:
        audience = Watching()
        talk = Talk(scene.runtime, scene.agent, audience)
        async with anyio.create_task_group() as group:
            group.start_soon(talk.follow)
            yield talk, audience
            await talk.close()
            group.cancel_scope.cancel()


async def test_a_message_and_its_answer(tmp_path: Path) -> None:
    """The message is shown once it is on disk, then the answer."""
    async with sitting(tmp_path, "Hello.") as (talk, audience):
        assert await talk.say("hi")
        await talk.settle()
        assert audience.texts == ["user: hi", "Hello."]


async def test_what_is_typed_meanwhile_joins_and_everything_is_shown_once(tmp_path: Path) -> None:
    """A steered message waits visibly, is shown when it is delivered, and brings no event a second time."""
    going = anyio.Event()
    async with sitting(tmp_path, Reply("One.", hold=going.wait), "Two.", "Three.") as (talk, audience):
        await talk.say("first")
        await audience.until("user: first")
        await talk.say("second")
        await talk.say("third")
        assert talk.waiting() == [("steered", "second"), ("steered", "third")]
        going.set()
        await talk.settle()
        assert audience.texts == ["user: first", "One.", "user: second", "user: third", "Two."]
        assert talk.waiting() == []
        assert sum(isinstance(event, TurnFinished) for event in audience.events) == 1


async def test_a_stop_holds_what_waits_until_it_is_sent_or_dropped(tmp_path: Path) -> None:
    """/held shows it, /send runs it as a turn of its own, /drop forgets it."""
    holds = [Hold(), Hold()]
    script = (Reply("Half", hold=holds[0]), "Answer.", Reply("Again", hold=holds[1]))
    async with sitting(tmp_path, *script) as (talk, audience):
        for round_ in (1, 2):
            await talk.say(f"go {round_}")
            await holds[round_ - 1].reached.wait()
            await talk.say(f"later {round_}")
            await talk.run(Command("/stop"))
            await talk.settle()
            assert audience.texts[-2:] == ["info: Stopped.", "info: Held back: 1 message. /send sends, /drop drops."]
            await talk.run(Command("/held"))
            assert f"queued: later {round_}" in audience.texts
            await talk.run(Command("/send" if round_ == 1 else "/drop"))
            await talk.settle()
            assert talk.waiting() == []
        assert "Answer." in audience.texts
        assert "user: later 1" in audience.texts
        assert "user: later 2" not in audience.texts
        assert audience.texts[-1].startswith("info: Dropped 1 message")


async def test_new_begins_another_session_and_keeps_the_old_one(tmp_path: Path) -> None:
    """The running turn is stopped first, and the next message goes to the new session."""
    hold = Hold()
    async with sitting(tmp_path, Reply("Half", hold=hold), "Fresh.") as (talk, audience):
        old = talk.agent.session
        await talk.say("go")
        await hold.reached.wait()
        await talk.run(Command("/new"))
        assert audience.agents == [talk.agent]
        assert audience.texts[-1].startswith("info: New session")
        assert talk.agent.session.id != old.id
        await talk.say("hello")
        await talk.settle()
        assert audience.texts[-2:] == ["user: hello", "Fresh."]
        assert len(talk.runtime.supervisor.store.list("assistant")) == 2


async def test_commands_that_only_tell(tmp_path: Path) -> None:
    """/help, /model and /tokens show something; mistakes are lines and never exceptions."""
    async with sitting(tmp_path, "Yes.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        for name, words in (
            ("/help", "/tokens"),
            ("/model", "scripted/scripted (a script)"),
            ("/tokens", "system prompt"),
            ("/send", "Nothing is held back"),
            ("/drop", "Nothing is held back"),
            ("/stop", "Nothing is running"),
            ("/tokns", "/tokens?"),
        ):
            await talk.run(Command(name))
            assert words in audience.texts[-1], name
        await talk.run(Command("/model", "nobody/nothing"))
        assert audience.texts[-1].startswith("error: there is no model 'nobody/nothing'")
        await talk.run(Command("/quit"))
        assert talk.over


async def test_tokens_knows_what_was_learned_on_another_branch(tmp_path: Path) -> None:
    """The window that it shows is the one that the next request is made for."""
    async with sitting(tmp_path, "Yes.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        learned = SettingRecord(name="fit:scripted/scripted", value={"window": 12_345, "factor": 1.0})
        await talk.agent.session.append(learned)
        await talk.run(Command("/undo"))
        await talk.run(Command("/tokens"))
        assert "12,345" in audience.texts[-1]


async def test_a_message_that_cannot_be_recorded_is_refused_with_its_reason(tmp_path: Path) -> None:
    """The person hears of it, and the text is not lost silently."""
    async with sitting(tmp_path) as (talk, audience):
        await talk.agent.session.close()
        assert not await talk.say("hi")
        assert audience.texts[-1].startswith("error: ")
        assert not any(isinstance(each, Block) for each in audience.shown)


async def test_a_command_whose_record_the_disk_refuses_says_so(tmp_path: Path) -> None:
    """Between turns too: what it did holds, and is not on disk. What records nothing is silent."""
    async with sitting(tmp_path, "Hello.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        disk = watched(talk.agent.session)
        disk.refuse = {"write": FULL}
        audience.shown.clear()
        await talk.run(Command("/note", "beans"))
        await talk.run(Command("/show"))
        await talk.run(Command("/note", "peas"))
        noted = [text.split(".")[0] for text in audience.texts if text.startswith(("info: Noted", "warning"))]
        assert noted[0].startswith("warning: The session cannot be saved: No space left on device")
        assert noted[1:] == [
            "info: Noted as #6",
            "info: Noted as #7",
            "warning: Not on disk yet: No space left on device",
        ]
        disk.heal()


@pytest.mark.parametrize("command", ["/new", "/fork"])
async def test_going_away_from_a_session_that_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The conversation goes on in the new session; where the unsaved rest is, is told."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with sitting(tmp_path / "work", "Hello.", "Here.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        first = talk.agent
        watched(first.session).refuse = {"write": FULL}
        await talk.run(Command("/note", "beans"))
        await talk.run(Command(command))
        assert talk.agent is not first and not talk.agent.session.closed
        assert any(text.startswith("error: The session before could not be closed") for text in audience.texts)
        await talk.say("again")
        await talk.settle()
        assert any("Here." in text for text in audience.texts)


async def test_that_the_disk_works_again_is_shown_at_once(tmp_path: Path) -> None:
    """Nobody has to say something for that, also not after a new session was begun and left."""
    async with sitting(tmp_path, "Hello.", "Again.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        first = talk.agent
        await talk.run(Command("/new"))
        assert first.saving.hear is None
        disk = watched(talk.agent.session)
        disk.refuse = {"write": FULL}
        await talk.say("what now?")
        await audience.until("cannot be saved")
        await talk.settle()
        turns = len(audience.events)
        disk.heal()
        await audience.until("can be saved again")
        assert len(audience.events) == turns
        await talk.say("next")
        await talk.settle()
        assert sum("can be saved again" in text for text in audience.texts) == 1


async def test_tokens_tells_what_keeping_the_cache_warm_came_to(tmp_path: Path) -> None:
    """A line of its own, and none where nothing was sent."""
    async with sitting(tmp_path, "Hello.") as (talk, audience):
        await talk.say("hi")
        await talk.settle()
        await talk.run(Command("/tokens"))
        assert "kept the cache warm" not in audience.texts[-1]
        asked = next(e.record for e in talk.agent.session.branch() if isinstance(e.record, RequestRecord))
        (entry,) = await talk.agent.session.append(replace(asked, purpose="warming"))
        usage = Usage(cache_read=42_000, output=1)
        await talk.agent.session.append(OutcomeRecord(request=entry.id, stop="length", usage=usage, cost=0.0126))
        await talk.run(Command("/tokens"))
        assert audience.texts[-1].endswith("1 request kept the cache warm (42k read, $0.0126).")
