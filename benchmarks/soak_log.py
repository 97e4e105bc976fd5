"""Kill processes that write sessions at random moments, and count what is lost of what they acknowledged.

    python benchmarks/soak_log.py --seeds 0:1000 [--locks 200]

Each seed is one child, which appends batches of one to five messages and tells of each that is on disk; the parent
kills it with SIGKILL at a moment drawn from the seed. The kinds take turns:

- `alone`: one session.
- `many`: eight sessions at once, whose appends share syncs through the journal.
- `power`: the same, and what was not synced is gone from the files, or partly gone, or zeros.
- `refusing`: one session or eight, on a disk that is full, broken, or takes half a write every now and then.

Then every session must open, hold every acknowledged message with its content, and take another. After that, pairs of
processes open the same session at the same moment, with a third that reads: whoever gets in must write undisturbed.
The exit code is 1 when anything was lost, did not open, or was interleaved.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text
from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import Entry, Header, MessageRecord
from runtime.session.opening import create_log, open_log, read_log
from runtime.session.session import Session
from runtime.session.tree import Tree
from runtime.session.writing.commit import COMMITTER
from runtime.session.writing.disk import REAL_DISK, Disk

KINDS = ("alone", "many", "power", "refusing")
_MANY = 8
_LONGEST_LIFE = 0.12  # seconds between the first acknowledgement and the kill


def text_of(seed: int, tag: str) -> str:
    """What the message `tag` says: from a few bytes to some pages, so that writes cross blocks."""
    return f"{tag} é🙂 " * random.Random(f"{seed}/{tag}").choice([1, 1, 10, 1_000])


def message(seed: int, tag: str) -> MessageRecord:
    return MessageRecord(role="user", content=(Text(text_of(seed, tag)),))


class TellingDisk:
    """The real disk. Tells `pipe` how much of which file is synced, before anyone else hears of it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def write(self, descriptor: int, data: bytes, /) -> int:
        return REAL_DISK.write(descriptor, data)

    def sync(self, descriptor: int, /) -> None:
        size = os.fstat(descriptor).st_size
        REAL_DISK.sync(descriptor)
        self._tell(descriptor, size)

    def cut(self, descriptor: int, length: int, /) -> None:
        REAL_DISK.cut(descriptor, length)
        self._tell(descriptor, length)

    def _tell(self, descriptor: int, size: int) -> None:
        os.write(self._pipe, f"synced {os.fstat(descriptor).st_ino} {size}\n".encode())


class RefusingDisk(TellingDisk):
    """Refuses now and then, in phases of a few operations."""

    def __init__(self, pipe: int, seed: int) -> None:
        super().__init__(pipe)
        self._chance = random.Random(f"refusing {seed}")
        self._left = 0
        self._refuses = False

    def write(self, descriptor: int, data: bytes, /) -> int:
        if self._bad():
            if self._chance.random() < 0.5:
                return REAL_DISK.write(descriptor, data[: self._chance.randrange(len(data))])
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(descriptor, data)

    def sync(self, descriptor: int, /) -> None:
        if self._bad():
            raise OSError(errno.EIO, "Input/output error")
        super().sync(descriptor)

    def cut(self, descriptor: int, length: int, /) -> None:
        if self._bad():
            raise OSError(errno.EROFS, "Read-only file system")
        super().cut(descriptor, length)

    def _bad(self) -> bool:
        if self._left == 0:
            self._left, self._refuses = self._chance.randint(1, 12), not self._refuses
        self._left -= 1
        return self._refuses and self._chance.random() < 0.7


class Acknowledging:
    """Tells `pipe` of each message of a session once it is on disk, however much later that is."""

    def __init__(self, session: Session, pipe: int) -> None:
        self._session = session
        self._pipe = pipe
        self._owed: list[tuple[int, str]] = []

    def add(self, entries: tuple[Entry, ...], tags: list[str]) -> None:
        self._owed += zip((entry.id for entry in entries), tags, strict=True)
        saved = [each for each in self._owed if self._session.is_saved(each[0])]
        self._owed = [each for each in self._owed if each not in saved]
        name = self._session.path.name
        if saved:
            os.write(self._pipe, "".join(f"saved {name} {number} {tag}\n" for number, tag in saved).encode())


async def write_for_ever(paths: list[Path], seed: int, pipe: int, disk: Disk) -> None:
    """The child: one task a session, or two, append and acknowledge until killed."""

    async def append(session: Session, told: Acknowledging, name: str) -> None:
        sizes = random.Random(f"{seed} {name}")
        number = 0
        while True:
            tags = [f"{name}.{number + each}" for each in range(sizes.randint(1, 5))]
            number += len(tags)
            told.add(await session.append(*(message(seed, tag) for tag in tags)), tags)
            if sizes.random() < 0.2:
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for place, path in enumerate(paths):
            log, reading = open_log(path, disk)
            session = Session(reading.header, log, Tree(reading.entries), lambda: "")
            told = Acknowledging(session, pipe)
            for task in range(1 + seed // 8 % 2):
                group.start_soon(append, session, told, f"{place}-{task}")


@dataclass
class Told:
    """What a child told before it was killed: the messages that are on disk, and how much of which file is synced."""

    saved: dict[str, dict[int, str]] = field(default_factory=dict)
    synced: dict[int, int] = field(default_factory=dict)

    def hear(self, line: str) -> None:
        match line.split():
            case ["saved", name, number, tag]:
                self.saved.setdefault(name, {})[int(number)] = tag
            case ["synced", inode, size]:
                self.synced[int(inode)] = int(size)


def in_child(run: Callable[[], object]) -> int:
    """The process id of a child that does `run` and ends."""
    child = os.fork()
    if child:
        return child
    try:
        run()
        os._exit(0)
    finally:
        os._exit(1)


def killed(paths: list[Path], seed: int, refusing: bool) -> Told:
    """Let a child write to `paths` and kill it."""
    for path in paths:
        create_log(path, Header(id=path.stem, agent="soak", created="")).close()
    reading, writing = os.pipe()

    def run() -> None:
        COMMITTER.full = random.Random(f"full {seed}").choice([50_000, 4 * 2**20])
        COMMITTER.quiet = random.Random(f"quiet {seed}").choice([0.0, 0.001, 1.0])
        disk = RefusingDisk(writing, seed) if refusing else TellingDisk(writing)
        anyio.run(write_for_ever, paths, seed, writing, disk, backend="trio" if seed // len(KINDS) % 2 else "asyncio")

    child = in_child(run)
    os.close(writing)
    told = Told({}, {path.stat().st_ino: path.stat().st_size for path in paths})
    with os.fdopen(reading, "rb") as pipe:
        for line in pipe:
            told.hear(line.decode())
            if told.saved:
                break
        end = time.monotonic() + random.Random(-seed - 1).uniform(0, _LONGEST_LIFE)
        rest = b""
        os.set_blocking(reading, False)
        while time.monotonic() < end:
            rest += pipe.read() or b""
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        os.set_blocking(reading, True)
        rest += pipe.read()
        os.waitpid(child, 0)
    if not told.saved:
        raise SystemExit(f"seed {seed}: the child ended before it acknowledged anything")
    for whole in rest.split(b"\n")[:-1]:
        told.hear(whole.decode())
    return told


def lose_power(folder: Path, seed: int, told: Told) -> None:
    """Take from every file what was not synced: all of it, some of it, or its content but not its length."""
    chance = random.Random(f"power {seed}")
    files = [*folder.glob("*.jsonl"), *folder.glob(".journals/*.journal")]
    for path in files:
        size = path.stat().st_size
        synced = min(size, told.synced.get(path.stat().st_ino, 0))
        with path.open("r+b") as file:
            match chance.choice(["all", "some", "zeros"]):
                case "all":
                    file.truncate(synced)
                case "some":
                    file.truncate(chance.randint(synced, size))
                case _:
                    file.seek(synced)
                    file.write(bytes(size - synced))


def check(path: Path, seed: int, saved: dict[int, str]) -> tuple[int, bool]:
    """How many acknowledged messages are missing, and whether a tail was torn. Raises when the session won't open."""
    log, reading = open_log(path)
    found = {entry.id: entry.record for entry in reading.entries}
    lost = sum(found.get(number) != message(seed, tag) for number, tag in saved.items())
    newest = max(found, default=0) + 1
    log.append((Entry(newest, newest - 1 or None, "", message(seed, "after")),))
    log.close()
    log, again = open_log(path)
    log.close()
    if [entry.id for entry in again.entries] != [*found, newest]:
        lost += 1
    return lost, reading.torn is not None


def kill_round(folder: Path, seed: int, count: Counter[str]) -> None:
    kind = KINDS[seed % len(KINDS)]
    several = kind in ("many", "power") or (kind == "refusing" and seed % 8 > 4)
    folder.mkdir()
    paths = [folder / f"{number}.jsonl" for number in range(_MANY if several else 1)]
    told = killed(paths, seed, refusing=kind == "refusing")
    count["journals"] += any(each.stat().st_size for each in folder.glob(".journals/*.journal"))
    if kind == "power":
        lose_power(folder, seed, told)
    for path in paths:
        saved = told.saved.get(path.name, {})
        count["acknowledged"] += len(saved)
        try:
            lost, torn = check(path, seed, saved)
        except SessionError as error:
            count["unopened"] += 1
            print(f"seed {seed} ({kind}): {error}")
            continue
        count["lost"] += lost
        count["torn"] += torn
        if lost:
            print(f"seed {seed} ({kind}): {lost} of {len(saved)} acknowledged messages lost in {path.name}")
    count["stray"] += len(list(folder.glob(".journals/*.journal")))
    count[kind] += 1


def write_a_few(path: Path, name: str, start: int) -> None:
    """Open, append five batches, close; or be refused."""
    os.read(start, 1)
    try:
        log, reading = open_log(path)
    except SessionLocked:
        os._exit(3)
    number = max((entry.id for entry in reading.entries), default=0)
    for each in range(5):
        batch = [Entry(number + 1, number or None, "", message(0, f"{name}.{each}"))]
        batch.append(Entry(number + 2, number + 1, "", message(0, f"{name}.{each}+")))
        log.append(batch)
        number += 2
    log.close()


def read_meanwhile(path: Path, start: int) -> None:
    """Read again and again: what is there must be whole, and only grow."""
    os.read(start, 1)
    length = 0
    for _ in range(10):
        reading = read_log(path)
        if reading.broken or len(reading.entries) < length:
            os._exit(4)
        length = len(reading.entries)


def lock_try(path: Path, number: int) -> tuple[bool, int]:
    """Whether two writers at once spoilt anything, and how many of them were refused."""
    if not path.exists():
        create_log(path, Header(id=path.stem, agent="soak", created="")).close()
    before = len(read_log(path).entries)
    reading, writing = os.pipe()
    names = [f"{number}a", f"{number}b"]
    children = [in_child(lambda name=name: write_a_few(path, name, reading)) for name in names]  # type: ignore[misc]  # mypy wants no default here
    children.append(in_child(lambda: read_meanwhile(path, reading)))
    os.write(writing, b"go!")
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.close(reading)
    os.close(writing)
    after = read_log(path)
    texts = [entry.record.content[0] for entry in after.entries[before:] if isinstance(entry.record, MessageRecord)]
    owners = [part.text.split(".")[0] for part in texts if isinstance(part, Text)]
    runs = [owner for place, owner in enumerate(owners) if place == 0 or owners[place - 1] != owner]
    wrote = [name for name, code in zip(names, codes, strict=False) if code == 0]
    whole = sorted(runs) == wrote and len(owners) == 10 * len(wrote) and not after.broken and after.torn is None
    return not (whole and wrote and codes[2] == 0 and all(code in (0, 3) for code in codes)), codes.count(3)


def seeds_of(text: str) -> Iterator[int]:
    first, last = (int(each) for each in text.split(":"))
    yield from range(first, last)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--seeds", default="0:20", help="FIRST:LAST, without LAST")
    arguments.add_argument("--locks", type=int, default=200, help="how often two processes open one session at once")
    given = arguments.parse_args()
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds_of(given.seeds):
            kill_round(Path(name) / str(seed), seed, count)
        tries = [lock_try(Path(name) / "locks.jsonl", number) for number in range(given.locks)]
    spoilt, refused = sum(bad for bad, _ in tries), sum(each for _, each in tries)
    kills = sum(count[kind] for kind in KINDS)
    print(f"{kills} kills ({', '.join(f'{count[kind]} {kind}' for kind in KINDS)}), {count['journals']} left a journal")
    print(
        f"{count['acknowledged']:,} messages acknowledged, {count['lost']} lost, {count['unopened']} sessions did not "
        f"open, {count['torn']} torn tails set aside, {count['stray']} journals left over"
    )
    print(f"{given.locks} times two processes opened one session: {refused} were refused, {spoilt} interleavings")
    return 1 if count["lost"] or count["unopened"] or spoilt else 0


if __name__ == "__main__":
    sys.exit(main())
