"""What a durable append costs: beside a bare write and fdatasync, and for many sessions at once.

    python benchmarks/append_speed.py [--folder FOLDER] [--appends 2000] [--sessions 64] [--rounds 20]

First a session alone: each append is followed by a bare write and fdatasync of the same bytes to a file beside it, so
that both meet the same disk at the same time. Then many sessions at once: round after round each appends once; the
syncs are counted where the session asks the disk for them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text
from runtime.session.entries import Header, MessageRecord, Record
from runtime.session.opening import create_log
from runtime.session.session import Session
from runtime.session.tree import Tree
from runtime.session.writing.disk import REAL_DISK

_BACKENDS = ("asyncio", "trio")


class CountingDisk:
    """The real disk; `syncs` counts how often it was waited for."""

    def __init__(self) -> None:
        self.syncs = 0

    def write(self, descriptor: int, data: bytes, /) -> int:
        return REAL_DISK.write(descriptor, data)

    def sync(self, descriptor: int, /) -> None:
        self.syncs += 1
        REAL_DISK.sync(descriptor)

    def cut(self, descriptor: int, length: int, /) -> None:
        REAL_DISK.cut(descriptor, length)


def message(size: int) -> Record:
    """A user's message of `size` characters."""
    return MessageRecord(role="user", content=(Text(("It rained é; the beds are wet. " * (size // 31 + 1))[:size]),))


def new_session(folder: Path, name: str, disk: CountingDisk) -> Session:
    header = Header(id=name, agent="bench", created="2026-11-30T18:00:00.000Z")
    log = create_log(folder / f"{name}.jsonl", header, disk)
    log.synced = log.length
    return Session(header, log, Tree(), lambda: "2026-11-30T18:00:00.000Z")


def quantile(times: Sequence[float], share: float) -> float:
    """In microseconds."""
    return sorted(times)[int(share * (len(times) - 1))] * 1e6


async def alone(folder: Path, count: int, size: int) -> None:
    session = new_session(folder, f"alone-{size}-{time.monotonic_ns()}", CountingDisk())
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    appended, written = [], []
    for number in range(count):
        length = session.path.stat().st_size
        began = time.perf_counter()
        await session.append(message(size))
        between = time.perf_counter()
        with session.path.open("rb") as file:
            file.seek(length)
            data = file.read()
        again = time.perf_counter()
        os.write(bare, data)
        getattr(os, "fdatasync", os.fsync)(bare)
        ended = time.perf_counter()
        if number >= count // 10:  # the first ones build what later ones find
            appended.append(between - began)
            written.append(ended - again)
    os.close(bare)
    await session.close()
    told = [f"{size:>7,} characters"]
    for share, name in ((0.5, "median"), (0.99, "p99")):
        ours, theirs = quantile(appended, share), quantile(written, share)
        told.append(f"{name} {ours:,.0f} us, bare {theirs:,.0f} us ({ours / theirs:.2f}x)")
    print("; ".join(told))


async def at_once(folder: Path, count: int, rounds: int) -> None:
    disk = CountingDisk()
    sessions = [new_session(folder, f"{number}-{time.monotonic_ns()}", disk) for number in range(count)]
    disk.syncs = 0
    began = time.perf_counter()
    for _ in range(rounds):
        async with anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(session.append, message(400))
    wall, acknowledged = time.perf_counter() - began, disk.syncs
    for session in sessions:
        await session.close()
    appends = count * rounds
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND)
    began = time.perf_counter()
    for _ in range(appends):
        os.write(bare, b"x" * 500)
        getattr(os, "fdatasync", os.fsync)(bare)
    one_each = time.perf_counter() - began
    print(
        f"{count} sessions at once, {appends:,} appends: {wall * 1e3:,.0f} ms, {acknowledged / appends:.3f} syncs an "
        f"append ({disk.syncs / appends:.3f} with what closing syncs); a bare write and fdatasync each: "
        f"{one_each * 1e3:,.0f} ms"
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    arguments.add_argument("--appends", type=int, default=2_000)
    arguments.add_argument("--sessions", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=20)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for backend in _BACKENDS:
            print(f"{backend}:")
            for size in (100, 2_000, 10_000):
                anyio.run(alone, Path(name), given.appends, size, backend=backend)
            anyio.run(at_once, Path(name), given.sessions, given.rounds, backend=backend)
    return 0


if __name__ == "__main__":
    sys.exit(main())
