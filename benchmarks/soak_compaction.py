"""Kill processes that make room in a session at random moments: each must be before or after, never between.

    python benchmarks/soak_compaction.py [--seeds 0:200]

One seed is one child: it talks with a scripted model on a small window, room is made again and again (before turns,
inside them, by hand), and it tells each summary, reply and message that is promised to be on disk. The parent kills it
with SIGKILL at a moment drawn from the seed: of even ones any, of odd ones while room is made or just after. Then the
session is opened again: every head stands in one batch with its receipt, nothing promised is missing, and the
conversation goes on within its window.
The exit code is 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import anyio

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.soak_log import in_child, seeds_of
from governors.tokens import load_vocabulary
from runtime.events import CompactionFinished, CompactionStarted, TurnFinished
from runtime.session.entries import CompactionRecord, HeadRecord, RequestRecord
from runtime.session.opening import read_log
from tests.agents import acknowledged, of, talk
from tests.long_runs import Mind, look, words

_LONGEST_LIFE = 1.5  # seconds between the first promise and the kill, for even seeds
_ROOM = 0.06  # seconds between the beginning of a compaction and the kill, for odd seeds
_WINDOW = 9_000
_ON = {"compaction.strategy": "summary"}
_NAME = "killed"
_BEGUN = b"compaction_started"


async def live_on(workspace: Path, seed: int, pipe: int) -> None:
    """The child: talk, and tell what is promised, until killed."""
    random = Random(f"life {seed}")
    mind = Mind(random)
    async with talk(
        workspace,
        otherwise=mind.answer,
        settings=_ON,
        window=_WINDOW,
        tools=[look],
        session=_NAME,
        prefix_law=False,
        wire="openai_chat" if seed % 2 else "anthropic",
    ) as it:
        number = 0
        while True:
            number += 1
            mind.turn()
            async for event in it.agent.send(f"Turn {number}. {words(random, random.choice([20, 200]))}"):
                if isinstance(event, CompactionStarted):
                    os.write(pipe, f"{json.dumps([event.type, None])}\n".encode())
                made = event.entry if isinstance(event, CompactionFinished) else acknowledged(event)
                if made is not None and getattr(event, "saved", True):
                    os.write(pipe, f"{json.dumps([event.type, made])}\n".encode())
            if random.random() < 0.2:
                receipt = await it.agent.compactions.by_hand()
                if receipt.entry is not None:
                    os.write(pipe, f"{json.dumps(['by hand', receipt.entry])}\n".encode())
            it.model.requests.clear()


def killed(workspace: Path, seed: int) -> list[list[object]]:
    """Let a child live in `workspace` and kill it; what it had promised."""
    reading, writing = os.pipe()
    backend = "trio" if seed // 2 % 2 else "asyncio"
    child = in_child(lambda: anyio.run(live_on, workspace, seed, writing, backend=backend))
    os.close(writing)
    told = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while (_BEGUN if seed % 2 else b"\n") not in told:
            if not (more := pipe.read(65_536)):
                raise SystemExit(f"seed {seed}: the child ended by itself")
            told += more
        end = time.monotonic() + Random(f"death {seed}").uniform(0, _ROOM if seed % 2 else _LONGEST_LIFE)
        os.set_blocking(reading, False)
        while time.monotonic() < end:
            told += pipe.read(65_536) or b""
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        os.set_blocking(reading, True)
        while more := pipe.read(65_536):
            told += more
        os.waitpid(child, 0)
    return [json.loads(line) for line in told.split(b"\n")[:-1]]


async def wrong_with(workspace: Path, log: Path, promised: list[list[object]], count: Counter[str]) -> list[str]:
    """What is wrong with the session that the child left."""
    found: list[str] = []
    entries = read_log(log).entries
    lost = {number for _, number in promised if number is not None} - {entry.id for entry in entries}
    if lost:
        found.append(f"promised entries are missing: {sorted(lost, key=str)}")
    mind = Mind(Random(0))
    async with talk(
        workspace, otherwise=mind.answer, settings=_ON, window=_WINDOW, tools=[look], session=_NAME, prefix_law=False
    ) as it:
        for text in ("Go on.", "And now? " + words(Random(1), 200)):
            (end,) = of(TurnFinished, await it.say(text))
            if end.error is not None:
                found.append(f"it does not go on: {end.error}")
        after = it.on_disk()
    for head, receipt in pairwise(after):
        if isinstance(head.record, HeadRecord) and head.record.cause == "compaction":
            count["compactions"] += 1
            if not isinstance(receipt.record, CompactionRecord) or receipt.parent != head.id:
                found.append(f"head {head.id} has no receipt after it")
    if entries and isinstance(entries[-1].record, HeadRecord):
        found.append("it lies between a head and its receipt")
    asked = [entry.record for entry in entries if isinstance(entry.record, RequestRecord)]
    if asked and asked[-1].purpose == "compaction" and not isinstance(entries[-1].record, CompactionRecord):
        count["killed while room was made"] += 1
    requests = [entry.record for entry in after if isinstance(entry.record, RequestRecord)]
    found += [f"over budget: {each.forecast} of {each.budget}" for each in requests if each.forecast > each.budget]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", default="0:200", help="FIRST:LAST, without LAST")
    given = parser.parse_args(arguments)
    count: Counter[str] = Counter()
    wrong = 0
    load_vocabulary()  # once, not in each child
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # nothing goes to where the user keeps theirs
        for seed in seeds_of(given.seeds):
            workspace = Path(folder, str(seed))
            promised = killed(workspace, seed)
            (log,) = workspace.rglob(f"{_NAME}.jsonl")
            count["kills"] += 1
            count["promises"] += len(promised)
            for each in anyio.run(wrong_with, workspace, log, promised, count):
                print(f"seed {seed}: {each}")
                wrong += 1
    print(", ".join(f"{value:,} {name}" for name, value in count.items()), f"- {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
