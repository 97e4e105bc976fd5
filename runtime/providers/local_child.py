"""Starting and ending the child process that serves a local model (its other half is `local_server`).

Law: whoever gets a `Child` ends it with `end`; a start that fails or is cancelled leaves no process behind.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.abc

from runtime.errors import ModelUnavailable

from .local_server import MISSING, Settings

#: Run as a file, not with `-m`, and with `-P`: then neither a folder called `runtime` where the user stands nor the
#: modules beside the script can take the place of what the child imports.
SERVER: tuple[str, ...] = (sys.executable, "-P", str(Path(__file__).with_name("local_server.py")))

_LOG_LINES = 5
_LONGEST_ANSWER = 65_536  # bytes


class Child:
    """A running server: where it answers, the key it wants, and its log."""

    def __init__(self, process: anyio.abc.Process, log: IO[bytes], key: str) -> None:
        self.process = process
        self.key = key
        self.url = ""
        self._log = log

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def gone(self, within: float) -> bool:
        """Whether the process ended, given `within` seconds for that."""
        with anyio.move_on_after(within):
            await self.process.wait()
        return not self.running

    async def end(self) -> None:
        """Kill the process (it has nothing to save) and wait for it, even when cancelled."""
        with anyio.CancelScope(shield=True):
            if self.running:
                self.process.kill()
            await self.process.wait()
            await self.process.aclose()
        self._log.close()

    def how_it_ended(self) -> str:
        code = self.process.returncode
        if code is None:
            return "is still running"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def last_lines(self) -> str:
        """The end of its log."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 4096))
        text = self._log.read().decode("utf-8", "replace")
        return "\n".join([line for line in text.splitlines() if line.strip()][-_LOG_LINES:])


async def start_child(
    model: Path,
    *,
    window: int,
    threads: int,
    sampling: Mapping[str, float],
    within: float,
    command: Sequence[str] = SERVER,
) -> Child:
    """Start a server for `model` and wait until it listens, at most `within` seconds.

    Raises `ModelUnavailable` where it does not: the package is missing, it crashed, it took too long.
    """
    key = secrets.token_urlsafe(24)
    settings: Settings = {
        "model": str(model),
        "key": key,
        "window": window,
        "threads": threads,
        "parent": os.getpid(),
        "sampling": dict(sampling),
    }
    try:
        log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
    except OSError as error:
        raise ModelUnavailable(f"the local model has nowhere to write its log: {error}") from error
    try:
        # A session of its own: Ctrl-C and Ctrl-Z in the terminal are not for the server.
        process = await anyio.open_process(list(command), stderr=log, start_new_session=True)
    except OSError as error:
        log.close()
        raise ModelUnavailable(f"the local model's server could not be started ({command[0]}): {error}") from error
    except BaseException:
        log.close()
        raise
    child = Child(process, log, key)
    try:
        child.url = await _first_answer(child, settings, model, within)
    except BaseException:  # also cancellation: nobody else knows of the process yet
        await child.end()
        raise
    return child


async def _first_answer(child: Child, settings: Settings, model: Path, within: float) -> str:
    """The URL that the child reports."""
    answer: dict[str, Any] = {}
    with anyio.move_on_after(within) as waiting:
        answer = _parsed(await _exchange(child.process, json.dumps(settings).encode() + b"\n"))
        if "url" not in answer:
            await child.process.wait()
    if "url" in answer:
        return str(answer["url"])
    if answer.get("error") == MISSING:
        raise ModelUnavailable(
            f"the local model needs the package xllamacpp ({answer.get('text')}). "
            "Install it with `pip install 'moonwake[local]'`"
        )
    if waiting.cancelled_caught:
        why = f"was not ready after {within:g} seconds"
    else:
        why = child.how_it_ended()
    log = child.last_lines() or str(answer.get("text", "")) or "(empty)"
    raise ModelUnavailable(
        f"the local model {model} could not be started: its server {why}. Is the file whole, and is there memory "
        f"for it? Last lines of its log:\n{log}"
    )


async def _exchange(process: anyio.abc.Process, settings: bytes) -> bytes:
    """Hand over the settings and read the first line, or as much of it as comes."""
    assert process.stdin is not None and process.stdout is not None  # both were asked for as pipes
    line = b""
    try:
        await process.stdin.send(settings)
        while b"\n" not in line and len(line) < _LONGEST_ANSWER:
            line += await process.stdout.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        pass  # it is ending: its exit code and its log say why
    return line


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
