"""What docs/sessions.md shows is so: its picture, its program, its commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import pytest

from runtime import Conversation
from runtime.channels.commands import COMMANDS
from runtime.channels.tree_acts import TREE_ACTS
from tests.channels.test_talk import sitting
from tests.channels.test_tree_commands import number_of, type_
from tests.shell import shell_in

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")


async def test_the_picture_is_what_tree_shows(tmp_path: Path) -> None:
    """Line by line, but for the numbers, which each conversation has of its own."""
    script = ("Tomatoes everywhere.", "A bed of each.", "In May.", "Bush beans.", "From March on.")
    async with sitting(tmp_path, *script) as (talk, audience):
        await type_(talk, "plan the garden for me", "/retry", "and what about beans?", "which ones?", "/undo 2")
        await type_(talk, "and what about peas?")
        await type_(talk, f"/label {number_of(talk, 'and what about peas?')} the good one", "/pin")
        await type_(talk, "/tree")
        shown = audience.texts[-2].removeprefix("tree: ")
    picture = PAGE.split("```\n")[1].rstrip("\n")
    assert re.sub(r" *#\d+", "#", shown) == re.sub(r" *#\d+", "#", picture)


async def test_the_program_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shell = shell_in(tmp_path)
    done = await anyio.run_process(
        [sys.executable, "-W", "error", "-c", program], cwd=shell.home, env=shell.environ, check=False
    )
    assert done.stderr.decode() == ""
    assert done.stdout.decode().splitlines()[0].endswith("What shall I plant? 1")


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(/[a-z]+)[ `]", PAGE))))
def test_the_commands_are_some(command: str) -> None:
    assert command in COMMANDS


def test_every_command_of_the_tree_and_every_method_is_told() -> None:
    told = {*re.findall(r"`(/[a-z]+)", PAGE)}
    assert {*TREE_ACTS, "/show", "/pin", "/unpin", "/label", "/note", "/omit", "/restore", "/redact"} <= told
    methods = {name for name in vars(Conversation) if not name.startswith("_")} - {"open", "send", "ask", "stop"}
    assert all(re.search(rf"`{name}[(`]", PAGE) for name in methods), methods
