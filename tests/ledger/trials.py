"""Trials of the ledger over processes: workers that reserve, settle and are killed at any statement, and the laws.

A worker writes down what it is about to do and what it was told, so that after any number of kills it is known between
which bounds the file's totals must lie. Run as a program it is such a worker: PATH CAP SEED CALLS KILL_AT.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from governors.messages import Usage
from runtime.ledger import Caps, Reservation, SpendingLimit, SpendLedger
from tests.ledger.books import WHO, assert_sound, day_total, ledger, totals

ROOT = Path(__file__).parents[2]
TASKS = 3  # in each worker


def write(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def kill_at(statement: int) -> None:
    """Let this process die by SIGKILL when SQLite begins the statement of that number."""
    left = [statement]

    def count(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def watched(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(count)
        return connection

    vars(sqlite3)["connect"] = watched  # the edge of this process


async def work(path: Path, cap: float, seed: int, calls: int) -> None:
    """Spend as chance has it, in cents and parts of them, in several tasks."""
    chance = random.Random(seed)
    book = ledger(path, Caps(day=cap, month=2 * cap, turn=cap / 2))

    async def spend(task: int) -> None:
        for number in range(calls):
            most = chance.randint(0, 3_000_000) * 10  # billionths
            who = replace(WHO, turn=chance.randint(1, 3), session=f"s{task}")
            write("t", seed, task, number, most)
            try:
                taken = await book.reserve(who, "m", most / 1e9)
            except SpendingLimit:
                write("n", seed, task, number)
                continue
            write("r", seed, task, number)
            await finish(book, chance, taken, most, (seed, task, number))

    async with anyio.create_task_group() as group:
        for task in range(TASKS):
            group.start_soon(spend, task)
    await book.close()


async def finish(
    book: SpendLedger, chance: random.Random, taken: Reservation, most: int, name: tuple[int, int, int]
) -> None:
    """Settle at less, at nothing, at what nobody knows, or by a report that cannot be true; now and then not at all."""
    what = chance.random()
    if what < 0.1:
        return
    cost = chance.randint(0, most)
    told = most if what < 0.3 else cost
    report = None if what < 0.2 else (most / 1e9 + 1 if what < 0.3 else cost / 1e9)
    write("b", *name, told)
    await book.settle(taken, report, Usage(plain=7))
    write("s", *name)


def worker(path: Path, cap: float, seed: int, calls: int, kill: int = 0) -> subprocess.Popen[bytes]:
    arguments = [str(path), str(cap), str(seed), str(calls), str(kill)]
    return subprocess.Popen([sys.executable, "-m", "tests.ledger.trials", *arguments], stdout=subprocess.PIPE, cwd=ROOT)


def assert_between(path: Path, lines: Iterator[list[str]]) -> None:
    """The day's totals are what the workers were told, give or take what they were not told any more."""
    calls: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for kind, *rest in lines:
        calls[tuple(rest[:3])][kind] = int(rest[3]) if len(rest) > 3 else 0
    spent, held = day_total(path)
    least_spent = most_spent = least_held = most_held = 0
    for said in calls.values():
        if "n" in said:
            continue
        if "s" in said:
            least_spent, most_spent = least_spent + said["b"], most_spent + said["b"]
        elif "b" in said:  # begun: either way
            most_spent, most_held = most_spent + said["b"], most_held + said["t"]
        elif "r" in said:
            least_held, most_held = least_held + said["t"], most_held + said["t"]
        else:
            most_held += said["t"]
    assert least_spent <= spent <= most_spent
    assert least_held <= held <= most_held


def assert_under(path: Path, cap: float) -> None:
    """No account is past its cap by anything."""
    caps = {"day": cap, "month": 2 * cap, "turn": cap / 2}
    for (scope, key), (spent, held) in totals(path).items():
        if scope in caps:
            assert spent + held <= round(caps[scope] * 1e9), f"{scope} {key!r}: {spent} + {held}"


def trial(folder: Path, seed: int, processes: int = 3, calls: int = 12) -> None:
    """Several workers on one file, some of them killed, and others after them. Raises `AssertionError`."""
    chance = random.Random(seed)
    path, cap = folder / f"ledger{seed}.sqlite", chance.choice([0.05, 0.5, 5.0])
    lines: list[list[str]] = []
    for wave in range(2):
        kills = [chance.choice([0, chance.randint(5, 400)]) for _ in range(processes)]
        running = [
            worker(path, cap, 1_000 * seed + 10 * wave + number, calls, kill) for number, kill in enumerate(kills)
        ]
        for each, kill in zip(running, kills, strict=True):
            out, _ = each.communicate(timeout=120)
            assert each.returncode == 0 or (kill and each.returncode == -signal.SIGKILL), each.returncode
            lines += (line.split() for line in out.decode().splitlines())
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert_under(path, cap)
        if path.exists() and totals(path):
            assert_sound(path)
            assert_between(path, iter(lines))


if __name__ == "__main__":
    file, most, first, count, kill = sys.argv[1:]
    if int(kill):
        kill_at(int(kill))
    anyio.run(work, Path(file), float(most), int(first), int(count))
