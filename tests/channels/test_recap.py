"""Taking a conversation up again: what was said last, how it ended, what waits."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from runtime import Call, Reply
from runtime.agent.aside import AsideFailed
from runtime.channels.opening import TOOLS_OFF, opening_lines, short_path
from runtime.channels.recap import folded, interrupted, recap, used_tokens
from runtime.session.view.spending import spent
from tests.agents import talk


async def test_the_last_exchanges_are_shown_folded(tmp_path: Path) -> None:
    """The newest three, their tool calls counted, long texts cut, errors told."""
    long = "\n".join(f"line {number}" for number in range(10))
    script = ["one", "two", Reply("let me see", calls=[Call("list_dir", {})]), long, Reply(error="overloaded")]
    async with talk(tmp_path, script) as scene:
        for text in ("first", "second", "third", "fourth"):
            await scene.say(text)
        branch = scene.agent.session.branch()
        assert [line.text for line in recap(branch)] == [
            "… 1 earlier exchange",
            "› second",
            "  two",
            "› third",
            "  (1 tool call)",
            "  line 0\n  line 1\n  line 2\n  line 3\n  … 6 more lines",
            "› fourth",
            "  ✗ the scripted model failed (overloaded)",
        ]
        assert not interrupted(branch)
        assert used_tokens(branch) > 0
        assert spent(scene.agent.session.tree.entries)


async def test_a_stopped_turn_and_held_input_are_told(tmp_path: Path) -> None:
    """The next start says what was cut short, and what can be done with what waits."""
    reached = anyio.Event()

    async def hold() -> None:
        reached.set()
        await anyio.sleep_forever()

    async with talk(tmp_path, [Reply("half", hold=hold)], session="s") as scene, anyio.create_task_group() as group:
        group.start_soon(scene.say, "go")
        await reached.wait()
        group.start_soon(scene.say, "later")
        while not scene.agent.waiting():
            await anyio.lowlevel.checkpoint()
        await scene.agent.stop()
    async with talk(tmp_path, session="s") as scene:
        lines = opening_lines(scene.agent, tmp_path, ["a note"], home=tmp_path.parent)
    texts = [line.text for line in lines]
    assert texts[0] == f"scripted/scripted (a script) · ~/{tmp_path.name} · session s · /help"
    assert texts[1:4] == ["a note", "› go", "  half"]
    assert "stopped or interrupted" in texts[4]
    assert "/send" in texts[5]


async def test_a_small_model_says_once_that_tools_are_off(tmp_path: Path) -> None:
    """And how to connect a better one."""
    async with talk(tmp_path, profile="tiny") as scene:
        texts = [line.text for line in opening_lines(scene.agent, tmp_path, [])]
    assert texts[1:] == [TOOLS_OFF]


def test_folding_cleans() -> None:
    """What is shown again is cleaned again."""
    assert folded("a\x1b[2J\n\n\nb") == "a\n  b"


def test_paths_under_home_are_short() -> None:
    """Others are whole."""
    assert short_path(Path("/home/u/x"), Path("/home/u")) == "~/x"
    assert short_path(Path("/home/u"), Path("/home/u")) == "~"
    assert short_path(Path("/srv"), Path("/home/u")) == "/srv"


async def test_what_was_redacted_is_not_recapped(tmp_path: Path) -> None:
    """Neither in the last exchanges nor when the session is opened again."""
    async with talk(tmp_path, ["One."]) as scene:
        await scene.say("the password is hunter2")
        await scene.agent.marks.redact(1)
        texts = [line.text for line in opening_lines(scene.agent, tmp_path, ())]
        assert "› [redacted]" in texts
        assert "hunter2" not in str(texts)


async def test_a_question_beside_the_conversation_is_no_turn_of_it(tmp_path: Path) -> None:
    """A summary that failed tells nothing of how the last turn ended."""
    async with talk(tmp_path, ["One.", "Two.", Reply("", error="server")]) as scene:
        await scene.say("a")
        await scene.say("b")
        with pytest.raises(AsideFailed):
            await scene.agent.branches.switch(1, summarise=True)
        branch = scene.agent.session.branch()
        assert not interrupted(branch)
        assert not [line for line in recap(branch) if "✗" in line.text]
