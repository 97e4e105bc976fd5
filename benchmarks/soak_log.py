"""Kill a process that writes a session at random moments, and count what is lost of what it acknowledged.

    python benchmarks/soak_log.py --seeds 0:1000

Each seed is one session and one child: the child appends batches of one to five entries and prints the id of the
last entry of each once `append` has returned; the parent kills it with SIGKILL at a moment drawn from the seed. Then
the session must open, hold every acknowledged entry with its content, and take another append. The exit code is 1
when anything was lost.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text
from runtime.session.entries import Entry, Header, MessageRecord
from runtime.session.opening import create_log, open_log

_LONGEST_LIFE = 0.12  # seconds between the first acknowledgement and the kill


def text_of(seed: int, number: int) -> str:
    """What entry `number` says: from a few bytes to some pages, so that writes cross blocks."""
    return f"{number} é🙂 " * random.Random(f"{seed}/{number}").choice([1, 1, 10, 1_000])


def message(seed: int, number: int) -> Entry:
    return Entry(number, number - 1 or None, "", MessageRecord(role="user", content=(Text(text_of(seed, number)),)))


def write_for_ever(path: Path, seed: int, pipe: int) -> None:
    """The child: append and acknowledge until killed."""
    log, reading = open_log(path)
    sizes = random.Random(seed)
    number = len(reading.entries)
    while True:
        batch = tuple(message(seed, number + each) for each in range(1, sizes.randint(1, 5) + 1))
        log.append(batch)
        number = batch[-1].id
        os.write(pipe, f"{number}\n".encode())


def killed_session(path: Path, seed: int) -> int:
    """Let a child write to `path` and kill it. Returns the last id that it acknowledged."""
    create_log(path, Header(id=str(seed), agent="soak", created="")).close()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(path, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as acknowledged:
        first = acknowledged.readline()
        time.sleep(random.Random(-seed - 1).uniform(0, _LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told = first + acknowledged.read()
    whole = [line for line in told.splitlines(keepends=True) if line.endswith(b"\n")]
    if not whole:
        raise SystemExit("the child ended before it acknowledged anything")
    return int(whole[-1])


def check(path: Path, seed: int, acknowledged: int) -> tuple[int, bool]:
    """How many acknowledged entries are missing, and whether a tail was torn. Raises when the session won't open."""
    log, reading = open_log(path)
    found = {entry.id: entry for entry in reading.entries}
    lost = sum(found.get(number) != message(seed, number) for number in range(1, acknowledged + 1))
    newest = max(found, default=0) + 1
    log.append((message(seed, newest),))
    log.close()
    log, again = open_log(path)
    log.close()
    if [entry.id for entry in again.entries] != list(range(1, newest + 1)):
        lost += 1
    return lost, reading.torn is not None


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--seeds", default="0:20", help="FIRST:LAST, without LAST")
    given = arguments.parse_args()
    first, last = (int(each) for each in given.seeds.split(":"))
    total = lost = torn = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            path = Path(folder) / f"{seed}.jsonl"
            acknowledged = killed_session(path, seed)
            missing, cut = check(path, seed, acknowledged)
            total, lost, torn = total + acknowledged, lost + missing, torn + cut
            if missing:
                print(f"seed {seed}: {missing} of {acknowledged} acknowledged entries lost")
    print(f"{last - first} kills, {total:,} entries acknowledged, {lost} lost, {torn} torn tails set aside")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
