"""The whole terminal conversation: keys in, drawing out, in one process and in a real pseudo-terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import anyio
import anyio.lowlevel
import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output.vt100 import Vt100_Output

from governors.messages import Text
from runtime import Reply, tool
from runtime.channels.converse import converse
from runtime.channels.screen import Devices
from runtime.channels.stray import LinesAbove
from runtime.providers.scripted import Call, Script
from runtime.session.entries import MessageRecord, ResultRecord
from runtime.session.opening import read_log
from tests.agents import Talk as Scene
from tests.agents import talk as opened

Kind = TypeVar("Kind")

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_=>])")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The screen is prompt_toolkit's, which runs on asyncio only."""
    return "asyncio"


class Paper(io.StringIO):
    """What was drawn; `until` waits for words in it, from where the last wait ended."""

    def __init__(self) -> None:
        super().__init__()
        self._news = anyio.Event()
        self._seen = 0

    def flush(self) -> None:
        self._news.set()

    @property
    def drawn(self) -> str:
        return _SEQUENCES.sub("", self.getvalue())

    async def until(self, words: str) -> None:
        with anyio.fail_after(10):
            while (found := self.drawn.find(words, self._seen)) < 0:
                self._news = anyio.Event()
                await self._news.wait()
        self._seen = found + len(words)


class Sitting:
    def __init__(self, scene: Scene, keys: PipeInput, paper: Paper) -> None:
        self.scene, self.keys, self.paper = scene, keys, paper
        self.code: int | None = None
        self.left = anyio.Event()

    def records(self, kind: type[Kind]) -> list[Kind]:
        """What stands in the log, also after the session was closed."""
        session = self.scene.agent.session
        path = self.scene.runtime.supervisor.store.path(session.agent, session.id)
        return [entry.record for entry in read_log(path).entries if isinstance(entry.record, kind)]

    def type(self, text: str) -> None:
        self.keys.send_text(text)


class Hold:
    """Keeps a reply from ending until `go`; `reached` tells that it is being kept."""

    def __init__(self) -> None:
        self.reached, self.go = anyio.Event(), anyio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.go.wait()


@asynccontextmanager
async def sitting(folder: Path, *script: Script, columns: int = 80, **options: object) -> AsyncIterator[Sitting]:
    """A conversation on paper; leaving waits until the person has left it."""
    with create_pipe_input() as keys:
        paper = Paper()
        display = Vt100_Output(paper, lambda: Size(rows=24, columns=columns), term="xterm", enable_cpr=False)
        async with opened(folder, script, **options) as scene, anyio.create_task_group() as group:  # type: ignore[arg-type]  # options of `talk`
            here = Sitting(scene, keys, paper)

            async def run() -> None:
                here.code = await converse(scene.runtime, scene.agent, Devices(keys, display))
                here.left.set()

            group.start_soon(run)
            await paper.until("/help")
            yield here
            with anyio.fail_after(10):
                await here.left.wait()


async def test_say_something_and_leave(tmp_path: Path) -> None:
    """The message, the answer, the cost in the status line, and the way back at the end."""
    async with sitting(tmp_path, "Hello **you**.\n\nSecond paragraph.") as here:
        here.type("hi\r")
        await here.paper.until("› hi")
        await here.paper.until("Hello you.")
        await here.paper.until("Second paragraph.")
        await here.paper.until("· $0.0")
        here.type("/quit\r")
    assert here.code == 0
    back = f"moonwake chat -w {tmp_path} --session {here.scene.agent.session.id}"
    assert back in here.paper.drawn.replace("\r\n", "\n").replace("\n", " ")


async def test_ctrl_c_stops_the_turn_and_keeps_what_was_finished(tmp_path: Path) -> None:
    """The prompt is usable meanwhile: what was typed is held, and can be sent."""
    hold = Hold()
    script = (Reply("Looking.", calls=[Call("list_dir", {})]), Reply("Half an ans", hold=hold), "Answer to both.")
    async with sitting(tmp_path, *script) as here:
        here.type("go\r")
        await hold.reached.wait()
        await here.paper.until("✓ list_dir")
        here.type("and this\r")
        await here.paper.until("joins after this step: and this")
        here.type("\x03")
        await here.paper.until("Stopped. What was finished (1 step) is kept.")
        await here.paper.until("held: and this")
        here.type("/send\r")
        await here.paper.until("› and this")
        await here.paper.until("Answer to both.")
        here.type("\x04")
    assert here.code == 0
    assert len(here.records(ResultRecord)) == 1
    assert [record.stop for record in here.records(MessageRecord) if record.role == "assistant"] == [
        "tool_use",
        "aborted",
        "stop",
    ]


async def test_a_message_of_several_lines_and_a_paste(tmp_path: Path) -> None:
    """Alt-Enter, Ctrl-J and pasted line ends stay in one message."""
    async with sitting(tmp_path, "ok one", "ok two") as here:
        here.type("a\x1b\rb\nc\r")
        await here.paper.until("ok one")
        here.type("\x1b[200~x\r\ny\nz\x1b[201~")
        here.type("\r")
        await here.paper.until("ok two")
        here.type("/exit\r")
    users = [record for record in here.records(MessageRecord) if record.role == "user"]
    assert [record.content[0].text for record in users] == ["a\nb\nc", "x\ny\nz"]  # type: ignore[union-attr]  # texts


async def test_ctrl_c_clears_then_warns_then_leaves(tmp_path: Path) -> None:
    """Nothing typed is sent by it."""
    async with sitting(tmp_path) as here:
        here.type("half typed")
        await here.paper.until("half typed")
        here.type("\x03")
        here.type("\x03")
        await here.paper.until("Ctrl-C again")
        here.type("\x03")
    assert here.code == 0
    assert here.scene.model.requests == []


async def test_a_terminal_that_goes_away_ends_the_conversation(tmp_path: Path) -> None:
    """Without an error; the running turn is stopped and recorded."""
    hold = Hold()
    async with sitting(tmp_path, Reply("half", hold=hold)) as here:
        here.type("go\r")
        await hold.reached.wait()
        here.keys.close()
    assert here.code == 0
    assert [record.stop for record in here.records(MessageRecord) if record.role == "assistant"] == ["aborted"]


async def test_commands_are_hinted_completed_and_corrected(tmp_path: Path) -> None:
    """A slash shows what there is, Tab completes, a slip names the nearest."""
    async with sitting(tmp_path) as here:
        here.type("/to")
        await here.paper.until("what takes up the model's window")
        here.type("\t\r")
        await here.paper.until("system prompt")
        here.type("/qiut\r")
        await here.paper.until("Did you mean /quit?")
        here.type("/quit\r")
    assert here.scene.model.requests == []


async def test_a_command_typed_after_an_undo_takes_the_place_of_the_text_that_it_gave(tmp_path: Path) -> None:
    """A slash begins a command, not more of the message; Up brings the message back, and other keys go on with it."""
    async with sitting(tmp_path, "one", "two", "three") as here:
        here.type("plant beans\r")
        await here.paper.until("one")
        here.type("/undo\r")
        await here.paper.until("Took back 1 turn")
        here.type("/label x\r")
        await here.paper.until("nothing was said yet on this branch")
        await here.paper.until("200k")  # drawn anew, with the history at hand
        here.type("\x1b[A\x1b[A and/or peas\r")
        await here.paper.until("two")
        here.type("/quit\r")
    said = [record.content for record in here.records(MessageRecord) if record.role == "user"]
    assert said == [(Text("plant beans"),), (Text("plant beans and/or peas"),)]


async def test_what_a_tool_prints_appears_above_the_prompt(tmp_path: Path) -> None:
    """Cleaned, as whole lines, wherever it was printed from."""

    @tool
    def noisy() -> str:
        """Print something."""
        print("printed \x1b[2Jby a tool")
        return "done"

    async with sitting(tmp_path, Call("noisy", {}), "finished", tools=[noisy]) as here:
        here.type("go\r")
        await here.paper.until("printed by a tool\r\n")
        await here.paper.until("finished")
        here.type("/quit\r")
    assert "\x1b[2J" not in here.paper.getvalue()


async def test_what_was_typed_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    """The history of input lies in the workspace, readable by nobody else."""
    async with sitting(tmp_path, "ok") as here:
        here.type("remember me\r")
        await here.paper.until("ok")
        here.type("/quit\r")
    history = here.scene.runtime.workspace.input_history
    assert "+remember me" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


@pytest.mark.parametrize("columns", [20, 40])
async def test_a_narrow_terminal(tmp_path: Path, columns: int) -> None:
    """Long code and words are drawn, and the conversation goes on."""
    text = f"```py\n{'x = 1  # ' * 20}\n```\n\n{'w' * 100}\n\nend"
    async with sitting(tmp_path, text, columns=columns) as here:
        here.type("go\r")
        await here.paper.until("end")
        here.type("/quit\r")
    assert here.code == 0


def test_lines_above_come_whole_from_any_thread() -> None:
    """Pieces of a line are put together; the last one comes at the end."""
    lines: list[str] = []
    above = LinesAbove(lines.extend, lambda call: call())
    for piece in ("a", "b\nc\x1b[1", "md\n", "rest"):
        above.write(piece)
    assert (lines, above.rest()) == (["ab", "cd"], ["rest"])


PROGRAM = """
    import os
    import sys
    import anyio
    from runtime import Reply, Runtime, Scripted
    from runtime.channels.terminal import chat

    async def main():
        script = ["Hello from the script.", Reply("This is held", hold=anyio.sleep_forever)]
        model = Scripted(script).chosen()
        async with Runtime.open(sys.argv[1], model=model, settings={"tools.exec": "off"}) as runtime:
            return await chat(runtime, agent="assistant", session=None, resume=False)

    os._exit(anyio.run(main))  # as the command does: output to a terminal that is gone may be left in buffers
"""


@contextmanager
def in_a_terminal(folder: Path, errors: BinaryIO | None = None) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The conversation as a process of its own, on a pseudo-terminal; gives our end of it. `errors` takes stderr."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(folder)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if errors is None else errors,
        env=environ,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield ours, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        with suppress(OSError):  # closed already
            os.close(ours)


def read_until(terminal: int, words: str, seen: str = "") -> str:
    """Everything from the terminal until `words` came."""
    deadline = time.monotonic() + 30
    while words not in _SEQUENCES.sub("", seen):
        waited = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert waited[0], f"{words!r} did not come; there was: {seen!r}"
        seen += os.read(terminal, 65_536).decode("utf-8", "replace")
    return seen


def test_in_a_real_pseudo_terminal(tmp_path: Path) -> None:
    """Say something, see the answer, stop a held turn with Ctrl-C, leave; no traceback, exit code 0."""
    with in_a_terminal(tmp_path) as (terminal, process):
        read_until(terminal, "window 200k")
        os.write(terminal, b"hi\r")
        read_until(terminal, "Hello from the script.")
        os.write(terminal, b"again\r")
        read_until(terminal, "This is held")
        os.write(terminal, b"\x03")
        read_until(terminal, "Stopped.")
        os.write(terminal, b"/quit\r")
        last = read_until(terminal, "To go on: moonwake chat")
        assert process.wait(timeout=20) == 0
    assert "Traceback" not in last


@pytest.mark.parametrize("running", [False, True])
def test_a_terminal_that_vanishes_is_a_hang_up(tmp_path: Path, running: bool) -> None:
    """Also where no signal tells of it: exit code 129, what runs is stopped and recorded, nothing is called a fault."""
    with (tmp_path / "stderr").open("wb") as errors, in_a_terminal(tmp_path / "here", errors) as (terminal, process):
        read_until(terminal, "window 200k")
        if running:
            os.write(terminal, b"hi\r")
            read_until(terminal, "Hello from the script.")
            os.write(terminal, b"again\r")
            read_until(terminal, "This is held")
        os.close(terminal)
        assert process.wait(timeout=20) == 129
    assert (tmp_path / "stderr").read_bytes() == b""
    written = [path.read_text() for path in tmp_path.glob("here/.moonwake/sessions/*/*.jsonl")]
    assert ['"stop":"aborted"' in text for text in written] == [True] * running
