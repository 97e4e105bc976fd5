"""Runs a program with bounded memory and a bounded end.

Laws: however much it prints, only a head and a tail are kept; when `run_process` returns or raises, the whole
process group has been killed; a process that left the group and still holds the pipe delays the return by
`DRAIN` seconds at most. Works alike on asyncio and trio.

Why not `anyio.open_process`: on trio it forks in a worker thread that ends after ten idle seconds, and the
kernel's "die with your parent", which the sandbox relies on, means the parent *thread*. On asyncio, waiting for
a process also waits, on some versions, for its pipes, which a grandchild may hold for ever. So the fork happens
here, in the thread of the event loop (it takes milliseconds), and the pipe is our own.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

#: Seconds to wait for a pipe that somebody outside the group still holds.
DRAIN = 0.5
_REAP = 5.0  # seconds to wait for the end of a process that was killed
_CHUNK = 1 << 16
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. `code` is negative for a signal, None if it did not end even when killed.

    `head` and `tail` are what was kept of `total` bytes of output. `held`: somebody outside the process group
    still holds the pipe.
    """

    head: bytes
    tail: bytes
    total: int
    code: int | None
    timed_out: bool
    held: bool


class Tape:
    """The first `head` and the last `tail` bytes of a stream, in memory of that order."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())

    def kept(self) -> tuple[bytes, bytes]:
        tail = b"".join(self._tail)
        return bytes(self._head), tail[max(0, len(tail) - self._tail_limit) :]


async def run_process(
    command: Sequence[str],
    *,
    folder: str,
    environment: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109 - an end by time is a result here, not an exception
    head: int,
    tail: int,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run `command` in `folder` with stdin empty and stderr in stdout.

    `timeout` is in seconds; `head` and `tail` are the bytes of output that are kept. Raises
    `OSError` if it cannot be started.
    """
    reading, writing = os.pipe()
    try:
        try:
            process = _start(command, folder, environment, writing, pass_fds)
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        tape = Tape(head, tail)
        held = False
        try:
            with anyio.move_on_after(timeout) as limit:
                held = await _read_to_end(process, reading, tape)
        finally:
            await _end(process)
            _read_rest(reading, tape)
    finally:
        os.close(reading)
    first, last = tape.kept()
    timed_out = limit.cancelled_caught
    return Finished(first, last, tape.total, process.returncode, timed_out, held)


def _start(
    command: Sequence[str], folder: str, environment: Mapping[str, str], output: int, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    )


async def _read_to_end(process: subprocess.Popen[bytes], reading: int, tape: Tape) -> bool:
    """Read until the program ended and its pipe is closed; True if the pipe was still held after `DRAIN`."""
    closed = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_read, reading, tape, closed)
        await _exited(process)
        _kill_group(process)  # what the command left behind in its group ends with it
        with anyio.move_on_after(DRAIN) as drain:
            await closed.wait()
        group.cancel_scope.cancel()
    return drain.cancelled_caught


async def _read(reading: int, tape: Tape, closed: anyio.Event) -> None:
    while True:
        await anyio.wait_readable(reading)
        data = os.read(reading, _CHUNK)
        if not data:
            closed.set()
            return
        tape.feed(data)


def _read_rest(reading: int, tape: Tape) -> None:
    """What lies in the pipe already; bounded, as somebody may still be writing."""
    with suppress(BlockingIOError):
        for _ in range(16):
            if not (data := os.read(reading, _CHUNK)):
                return
            tape.feed(data)


async def _exited(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has ended, where possible without reaping it: its id then stays ours for `killpg`."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or a container that forbids it
        while process.poll() is None:  # noqa: ASYNC110 - nothing here could set an event
            await anyio.sleep(_POLL)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill and reap, also while being cancelled; gives up on a process that the kernel does not let go."""
    if process.returncode is None:
        _kill_group(process)
        with anyio.move_on_after(_REAP, shield=True):
            await _exited(process)
        process.poll()
