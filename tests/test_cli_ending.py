"""How `moonwake run` and `moonwake chat` end: with an answer, without one, by a signal."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path
from subprocess import DEVNULL

import anyio
import pytest

from governors.messages import Usage
from runtime.conversing import no_answer
from runtime.events import TurnFinished
from runtime.session.entries import MessageRecord, OutcomeRecord
from tests.servers import Connection, Handler, Seen, chat_text
from tests.shell import Shell, served, shell_in


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """What is tested is another process; it does not see what this one runs on."""
    return "asyncio"


@pytest.fixture
def moonwake(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


@pytest.mark.parametrize(
    ("reply", "code", "out", "says"),
    [
        (chat_text(""), 1, "", "empty answer"),
        (chat_text("", finish="content_filter"), 1, "", "refused"),
        (chat_text("", finish="length"), 1, "", "output limit"),
        (chat_text("half a sen", finish="length"), 0, "half a sen\n", "cut off at the model's output limit"),
    ],
    ids=["empty", "refused", "length without a word", "length"],
)
async def test_exit_code_0_means_that_there_is_an_answer(
    moonwake: Shell, reply: Handler, code: int, out: str, says: str
) -> None:
    async with served(moonwake, reply):
        done = await moonwake("run", "hi")
    assert (done.code, done.out) == (code, out)
    assert says in done.err.splitlines()[-1]


@pytest.mark.parametrize("stop", ["refused", "deferred", "aborted", "error"])
def test_a_turn_that_ended_so_has_no_answer(stop: str) -> None:
    """Whatever text came before."""
    turn = TurnFinished(text="some", stop=stop, steps=1, usage=Usage(), cost=None, seconds=1.0)  # type: ignore[arg-type]  # a StopReason by its text
    assert no_answer(turn)


async def test_an_answer_on_a_terminal_is_cleaned_and_in_a_pipe_is_exact(moonwake: Shell) -> None:
    """What reads a pipe is a program and gets what the model said; a terminal would obey it."""
    evil = "a\x1b[31mb\x1b]0;title\x07c"
    async with served(moonwake, chat_text(evil)):
        assert (await moonwake("run", "hi")).out == f"{evil}\n"
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "runtime.cli", "run", "hi"]
        await anyio.run_process(command, stdout=theirs, cwd=moonwake.home, env=moonwake.environ)
        os.close(theirs)
        assert os.read(ours, 65_536) == b"abc\r\n"
        os.close(ours)


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        (("run", "--json", "--session", "s", "hi"), signal.SIGTERM, 143),
        (("run", "--json", "--session", "s", "hi"), signal.SIGHUP, 129),
        (("run", "--json", "--session", "s", "hi"), signal.SIGINT, 130),
        (("chat", "--session", "s", "hi"), signal.SIGTERM, 143),
    ],
    ids=["run-TERM", "run-HUP", "run-INT", "chat-TERM"],
)
async def test_a_signal_stops_the_turn_and_what_was_said_is_kept(
    moonwake: Shell, command: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    async def half(_: Seen, connection: Connection) -> None:
        await connection.start()
        await connection.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "half an ans"}}]})
        await connection.hang()

    async with served(moonwake, half):
        whole = [sys.executable, "-m", "runtime.cli", *command]
        async with await anyio.open_process(whole, stdin=DEVNULL, cwd=moonwake.home, env=moonwake.environ) as process:
            assert process.stdout is not None and process.stderr is not None
            with anyio.fail_after(30):
                out = b""
                while b"half an ans" not in out:
                    out += await process.stdout.receive()
                process.send_signal(number)
                assert await process.wait() == code
                err = b"".join([piece async for piece in process.stderr])
    assert b"Traceback" not in err and b"fault" not in err
    records = moonwake.recorded("s")
    assert [record.stop for record in records if isinstance(record, OutcomeRecord)] == ["aborted"]
    (reply,) = [each for each in records if isinstance(each, MessageRecord) and each.role == "assistant"]
    assert "half an ans" in str(reply.content)


async def test_a_signal_ends_a_conversation_that_waits_for_a_line(moonwake: Shell) -> None:
    """Nothing can interrupt the thread that reads it, so nothing may wait for that thread."""
    async with served(moonwake, chat_text("one")):
        whole = [sys.executable, "-m", "runtime.cli", "chat", "hi"]
        async with await anyio.open_process(whole, cwd=moonwake.home, env=moonwake.environ) as process:
            assert process.stdout is not None
            with anyio.fail_after(30):
                out = b""
                while b"one\n" not in out:
                    out += await process.stdout.receive()
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 143
