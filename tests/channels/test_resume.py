"""Taking up a session by what a screen showed of it, and with the model that was chosen in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runtime import ChosenModel, Scripted
from runtime.channels.base import Host
from runtime.channels.opening import opening_lines, way_back
from runtime.channels.resume import is_new, take_up
from runtime.errors import ModelUnavailable, SessionError
from runtime.session.naming import short_id
from runtime.supervisor import Supervisor
from runtime.workspace import Workspace
from tests.agents import talk


@dataclass
class Desk:
    """A host with a second model, which can be had or not."""

    workspace: Workspace
    supervisor: Supervisor
    other: ChosenModel | None = None
    notes: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    async def choose(self, wanted: str) -> ChosenModel:
        self.asked.append(wanted)
        if self.other is None:
            raise ModelUnavailable("its key is not set")
        return self.other


@asynccontextmanager
async def desk(folder: Path, *answers: str) -> AsyncIterator[Desk]:
    async with talk(folder, answers) as scene:
        yield Desk(scene.runtime.workspace, scene.runtime.supervisor)


async def spoken(host: Host, session: str | None = None) -> str:
    """A session in which something was said; its id."""
    agent = await host.supervisor.agent("assistant", session)
    async for _ in agent.send("hi"):
        pass
    await host.supervisor.leave(agent)
    return agent.session.id


async def test_the_eight_characters_on_the_screen_find_their_session(tmp_path: Path) -> None:
    """So does the beginning of an id, and the whole of it."""
    async with desk(tmp_path, "one") as host:
        identity = await spoken(host)
        assert len(short_id(identity)) == 8
        for part in (short_id(identity), identity[:15], identity):
            taken = await take_up(host, "assistant", session=part)
            assert taken.agent.session.id == identity
            assert not is_new(taken.agent)
            await host.supervisor.leave(taken.agent)


async def test_a_part_of_several_ids_is_an_error_that_lists_them(tmp_path: Path) -> None:
    ids = [f"0199a000-0000-7000-8000-00000000000{number}" for number in (1, 2)]
    async with desk(tmp_path, "one", "two") as host:
        for identity in ids:
            await spoken(host, identity)
        with pytest.raises(SessionError, match=f"0199a000 may be any of these sessions: {ids[1]}, {ids[0]}"):
            await take_up(host, "assistant", session="0199a000")
        assert (await take_up(host, "assistant", session="00000002")).agent.session.id == ids[1]


async def test_a_name_is_meant_whole(tmp_path: Path) -> None:
    """`tax` and `facade` are other sessions than `taxes` and `facades`, though they look like parts."""
    async with desk(tmp_path, "one", "two") as host:
        for name in ("taxes", "facades"):
            await spoken(host, name)
        for name in ("tax", "facade"):
            taken = await take_up(host, "assistant", session=name)
            assert taken.agent.session.id == name
            assert is_new(taken.agent)


async def test_a_session_that_was_not_there_is_called_new(tmp_path: Path) -> None:
    async with desk(tmp_path, "one") as host:
        await spoken(host, "old")
        for name, words in (("old", "· session old ·"), ("fresh", "· new session fresh ·")):
            taken = await take_up(host, "assistant", session=name)
            assert words in opening_lines(taken.agent, tmp_path, ())[0].text


async def test_a_session_goes_on_with_the_model_that_was_chosen_in_it(tmp_path: Path) -> None:
    """Unless another one is asked for; the reason stands in the opening line."""
    other = Scripted(["from the other"]).chosen(id="other")
    async with desk(tmp_path) as host:
        agent = await host.supervisor.agent("assistant", "s")
        await agent.switch_model(other)
        await host.supervisor.leave(agent)
    async with desk(tmp_path) as host:
        host.other = other
        taken = await take_up(host, "assistant", session="s")
        assert (taken.agent.model.name, host.asked) == ("scripted/scripted", [])
        await host.supervisor.leave(taken.agent)
        taken = await take_up(host, "assistant", session="s", own_model=True)
        assert taken.notes == ()
        assert host.asked == ["scripted/other"]
        assert "scripted/other (as in this session)" in opening_lines(taken.agent, tmp_path, ())[0].text
        assert [event.text async for event in taken.agent.send("hi") if event.type == "turn_finished"] == [  # type: ignore[attr-defined]  # of the last event
            "from the other"
        ]


async def test_a_sessions_model_that_cannot_be_had_is_said_and_another_answers(tmp_path: Path) -> None:
    async with desk(tmp_path) as host:
        agent = await host.supervisor.agent("assistant", "s")
        await agent.switch_model(Scripted().chosen(id="other"))
        await host.supervisor.leave(agent)
    async with desk(tmp_path) as host:
        taken = await take_up(host, "assistant", session="s", own_model=True)
        assert taken.notes == (
            "This session talked to scripted/other, which cannot be had now (its key is not set). "
            "scripted/scripted answers.",
        )
        assert taken.agent.model.name == "scripted/scripted"


async def test_the_way_back_names_what_is_not_the_default(tmp_path: Path) -> None:
    """And quotes it for the shell."""
    async with desk(tmp_path) as host:
        agent = await host.supervisor.agent("gardener", "my taxes")
        assert way_back(agent, Path("/a b"), Path("/other")) == (
            "moonwake chat -w '/a b' --agent gardener --session 'my taxes'"
        )
        agent = await host.supervisor.agent("assistant", "taxes")
        assert way_back(agent, Path("/a"), Path("/a")) == "moonwake chat --session taxes"
