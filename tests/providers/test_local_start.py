"""A server that does not come up: stand-in commands take the place of llama.cpp."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from runtime.providers.base import Finished, Problem, Request
from runtime.providers.local import Local
from runtime.providers.local_child import SERVER

from .local_files import write_gguf

CRASHES = "import sys; print('first'); sys.stdin.readline(); print('out of memory', file=sys.stderr); sys.exit(9)"
HANGS = "import pathlib, os, sys; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); sys.stdin.read()"
CHATTERS = "print('this is no JSON')"
DEAF = "import os; os.close(0); os.write(2, b'deaf')"


def local_with(tmp_path: Path, *command: str, start_timeout: float = 30.0) -> Local:
    return Local(write_gguf(tmp_path / "m.gguf"), command=command, start_timeout=start_timeout)


async def problem_of(local: Local) -> Problem:
    """The problem that a call ends with, which is its only event."""
    async with local.stream(Request.of(local.model_info(), {"messages": []})) as events:
        seen = [event async for event in events]
    await local.close()
    assert len(seen) == 1 and isinstance(seen[0], Finished)
    assert seen[0].message.stop == "error" and seen[0].problem is not None
    return seen[0].problem


async def test_a_missing_package_says_how_to_install_it(tmp_path: Path) -> None:
    """Without xllamacpp the real child answers, and the user reads what to type."""
    bare = (SERVER[0], "-S", *SERVER[1:])  # -S: no site-packages, so nothing but the standard library
    problem = await problem_of(local_with(tmp_path, *bare))
    assert "pip install 'moonwake[local]'" in problem.text


@pytest.mark.parametrize(
    ("script", "said"), [(CRASHES, "ended with code 9"), (CRASHES, "out of memory"), (DEAF, "deaf")]
)
async def test_a_crash_shows_the_end_of_the_log(tmp_path: Path, script: str, said: str) -> None:
    """How the server ended and its last lines are in the text."""
    problem = await problem_of(local_with(tmp_path, sys.executable, "-c", script))
    assert said in problem.text and str(tmp_path / "m.gguf") in problem.text


async def test_an_answer_that_is_no_json_is_a_failed_start(tmp_path: Path) -> None:
    """Noise on stdout is not taken for an address."""
    problem = await problem_of(local_with(tmp_path, sys.executable, "-c", CHATTERS))
    assert "could not be started" in problem.text and "ended with code 0" in problem.text


async def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    """No Python at the path that should have one."""
    problem = await problem_of(local_with(tmp_path, str(tmp_path / "python")))
    assert "could not be started" in problem.text


async def test_a_server_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    """The wait is bounded, and nothing is left running."""
    note = tmp_path / "pid"
    problem = await problem_of(local_with(tmp_path, sys.executable, "-c", HANGS, str(note), start_timeout=1.5))
    assert "not ready after 1.5 seconds" in problem.text
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


async def test_close_does_not_wait_for_a_slow_start(tmp_path: Path) -> None:
    """Closing while the model loads ends the child, and the waiting call ends with a problem."""
    note = tmp_path / "pid"
    local = local_with(tmp_path, sys.executable, "-c", HANGS, str(note), start_timeout=600)
    ends: list[Problem] = []

    async def call() -> None:
        ends.append(await problem_of(local))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            while not (note.exists() and note.read_text()):
                await anyio.lowlevel.checkpoint()
            await local.close()
    assert "was closed" in ends[0].text
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    """Whoever is cancelled while waiting for the model takes the child along."""
    note = tmp_path / "pid"
    local = local_with(tmp_path, sys.executable, "-c", HANGS, str(note), start_timeout=600)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(local.warm)
            while not (note.exists() and note.read_text()):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    await local.close()


async def test_a_file_that_is_no_model_is_a_problem_of_the_call(tmp_path: Path) -> None:
    """A file that went bad after it was chosen does not raise out of the stream."""
    good = Local(write_gguf(tmp_path / "good.gguf"))
    (tmp_path / "bad.gguf").write_text("hello, hello")
    bad = Local(tmp_path / "bad.gguf")
    await bad.warm()
    async with bad.stream(Request.of(good.model_info(), {"messages": []})) as events:
        (end,) = [event async for event in events]
    assert isinstance(end, Finished) and end.problem is not None
    assert "not a GGUF file" in end.problem.text
