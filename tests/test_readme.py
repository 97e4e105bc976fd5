"""What README.md shows is so: its programs run, its commands exist."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import anyio
import pytest

from runtime import Call, Reply
from tests.channels.test_screen import Hold, sitting
from tests.servers import chat_text
from tests.shell import served, shell_in

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PICTURE = README.split("```\n")[1]
COMMANDS = sorted({line.strip() for line in re.findall(r"^    (?:.*\| )?(moonwake [^#\n]*)", README, re.MULTILINE)})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The programs choose their own."""
    return "asyncio"


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
async def test_a_program_runs_as_it_stands(tmp_path: Path, number: int) -> None:
    """Against a model on loopback where it names none."""
    shell = shell_in(tmp_path)
    async with served(shell, chat_text("Yes, take one.")):
        program = [sys.executable, "-W", "error", "-c", PROGRAMS[number]]
        done = await anyio.run_process(program, cwd=shell.home, env=shell.environ, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")


def test_there_are_programs_and_commands() -> None:
    """Else the tests here would hold of nothing."""
    assert len(PROGRAMS) == 3
    assert len(COMMANDS) >= 9


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_is_one(tmp_path: Path, command: str) -> None:
    """With these options; --help keeps it from being carried out."""
    shell = shell_in(tmp_path)
    done = await shell(*shlex.split(command)[1:], "--help")
    assert done.code == 0, done.err
    assert "Usage: moonwake" in done.out


def shape(text: str) -> str:
    """`text` without what differs from one time to the next: ids, numbers, where it is, how the model was chosen."""
    text = re.sub(r"\([^)]*\) · \S+/garden · new session \w+", "(WHY) · GARDEN · new session ID", text)
    return re.sub(r"<?\d[\d.]*k?", "0", text)


async def test_the_picture_is_what_the_screen_shows(tmp_path: Path) -> None:
    """Line by line, from the same words of the model."""
    garden = tmp_path / "garden"
    (garden / "notes").mkdir(parents=True)
    (garden / "notes" / "beds.md").write_text("# Beds\n\nbed 3: beans, sown on the 4th\nSunday: the pump leaks\n")
    (garden / "shopping.md").write_text("nails, twine\n")
    hold = Hold()
    script = (
        Reply(calls=[Call("list_dir", {"path": "."}), Call("read_file", {"path": "notes/beds.md"})]),
        "Two things cannot wait:\n\n- **Beans**: bed 3 was sown on the 4th; thin them before Thursday.\n"
        "- **The pump**: your note of Sunday says that it leaks at the valve.",
        Reply("I look at the list.", calls=[Call("read_file", {"path": "shopping.md"})], hold=hold),
        "Nails and twine.",
    )
    model = {"id": "claude-sonnet-5-5", "provider": "anthropic", "window": 1_000_000}
    async with sitting(garden, *script, columns=240, **model) as here:
        here.type("what needs doing this week?\r")
        await here.paper.until("leaks at the valve.")
        here.type("what do I have to buy?\r")
        await hold.reached.wait()
        here.type("and is it dear?\r")
        await here.paper.until("joins after this step: and is it dear?")
        await here.paper.until("Ctrl-C stops")
        hold.go.set()
        await here.paper.until("Nails and twine.")
        here.type("/quit\r")
    drawn = shape(here.paper.drawn)
    lines = [line.removesuffix("▌").rstrip() for line in PICTURE.splitlines() if line.strip()]
    assert len(lines) == 12
    for line in lines:
        assert shape(line) in drawn
