"""A session that is read from its tail goes on as one that is read whole: the same requests, byte for byte."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from governors.messages import Text
from runtime import Call, Reply, tool
from runtime.session.entries import HeadRecord, InboxRecord, MessageRecord, PinRecord, RedactRecord, SettingRecord
from tests.agents import Talk, talk
from tests.agents_again import bytes_of

WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
WINDOW = 9_000


@tool(read_only=True)
def lines(count: int) -> str:
    """Give many lines.

    Args:
        count: How many.
    """
    return "\n".join(f"line {number} of the long output" for number in range(count))


def number(it: Talk, text: str) -> int:
    """The first message of the user that says `text`."""
    return next(
        entry.id
        for entry in it.agent.session.tree.entries
        if isinstance(entry.record, MessageRecord) and text in str(entry.record.content)
    )


def without_a_clock(it: Talk) -> None:
    it.agent.equipment = replace(it.agent.equipment, context=lambda sender: "noon", now=lambda: 0.0)


async def lived(workspace: Path, wire: str, more: Callable[[Talk], Any]) -> None:
    """A conversation with heads, longer than what is read from a tail at once; `more` happens after its first turn."""
    script: list[Any] = []
    for turn in range(40):
        script += [Reply("thinking " * 150, [Call("lines", {"count": 130})]), f"answer {turn}. Shall I go on?"]
    async with talk(workspace, script, tools=[lines], wire=wire, window=WINDOW, session="s") as it:
        without_a_clock(it)
        await it.say("question 0: my name is Ada")
        await more(it)
        for turn in range(1, 36):
            await it.say(f"question {turn}")
        assert len(it.records(HeadRecord)) > 2


async def next_bodies(workspace: Path, wire: str, *, whole: bool) -> list[bytes]:
    """What the next turns send, resumed from the tail, or with all of the tree read before."""
    script: list[Any] = [Reply("", [Call("lines", {"count": 150})]), "well.", *["fine."] * 8]
    async with talk(workspace, script, tools=[lines], wire=wire, window=WINDOW, session="s") as it:
        without_a_clock(it)
        assert not it.agent.session.tree.complete
        if whole:
            await it.agent.session.whole()
        for turn in range(9):
            await it.say(f"and then, the {turn}th time? " + "word " * 600)
        assert it.agent.session.tree.complete == whole
        return [bytes_of(body) for body in it.bodies]


async def assert_both_ways_are_the_same(workspace: Path, wire: str) -> list[bytes]:
    kept = shutil.copytree(workspace, workspace.with_name("kept"))
    tail = await next_bodies(workspace, wire, whole=False)
    shutil.rmtree(workspace)
    kept.rename(workspace)
    assert await next_bodies(workspace, wire, whole=True) == tail
    return tail


@WIRES
async def test_the_next_requests_are_those_of_the_whole_tree(tmp_path: Path, wire: str) -> None:
    """Pins, redactions, waiting input and another branch beside it, and cuts of their own."""

    async def more(it: Talk) -> None:
        session = it.agent.session
        await session.append(PinRecord(target=number(it, "my name is Ada")))
        await it.say("a turn that is left")
        await it.agent.branches.undo()
        await it.say("a secret")
        await it.say("kept")
        await session.append(RedactRecord(target=number(it, "a secret")), PinRecord(target=number(it, "kept")))
        await session.append(PinRecord(target=number(it, "kept"), on=False))
        await session.append(InboxRecord(state="held", content=(Text("later"),)))

    await lived(tmp_path / "a", wire, more)
    bodies = await assert_both_ways_are_the_same(tmp_path / "a", wire)
    assert b"my name is Ada" in bodies[-1] and b"a secret" not in bodies[-1]


async def test_what_was_learned_on_another_branch_is_known_after_a_resume_from_the_tail(tmp_path: Path) -> None:
    """An overflow's lesson is older than the tail and on a branch that was left: heads carry it."""

    async def more(it: Talk) -> None:
        await it.say("another branch")
        learned = {"window": WINDOW, "factor": 1.3}
        await it.agent.session.append(SettingRecord(name="fit:scripted/scripted", value=learned))
        await it.agent.branches.undo()

    await lived(tmp_path / "a", "openai_chat", more)
    async with talk(tmp_path / "a", session="s") as it:
        assert it.agent.session.tree.first > number_of_setting(it)
        assert it.agent.room.standing().settings["fit:scripted/scripted"]["factor"] == 1.3
    await assert_both_ways_are_the_same(tmp_path / "a", "openai_chat")


def number_of_setting(it: Talk) -> int:
    return next(entry.id for entry in it.on_disk() if isinstance(entry.record, SettingRecord))
