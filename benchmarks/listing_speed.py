"""How long listing and searching take among many sessions, and what it costs to keep the index.

    python benchmarks/listing_speed.py [--sessions 10000] [--turns 6]

Builds the sessions in a temporary folder by writing their bytes.
Prints, in milliseconds, on the clock and of the processor (other work on the machine does not slow that down): building
the index from nothing; a list and a search from the index, the check of every file's stamp included, in a process that
has the index open (best of 9) and in a fresh one (opening included); taking in one session that changed; and a list
without an index, from the folder alone.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text, Usage
from runtime.session.entries import (
    Entry,
    Header,
    LabelRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    Record,
    RequestRecord,
)
from runtime.session.format.codec import encode_batch, encode_header
from runtime.session.index.folder import Folder
from runtime.session.index.index import SessionIndex
from runtime.session.index.listing import Filter, iso
from runtime.session.index.mirror import Mirror
from runtime.session.index.schema import open_stand_in

_BEGAN = 1_780_000_000_000  # milliseconds since 1970
_WORDS = ["".join(random.Random(number).choices("aeioubdfgklmnprst", k=2 + number % 8)) for number in range(4_000)] + [
    "Straße",
    "Müller",
    "会议",
    "明天",
    "🙂",
]


def text(chance: random.Random, words: int) -> str:
    """Words as languages have them: few are common, many are rare."""
    return " ".join(_WORDS[min(int(chance.paretovariate(0.6)) - 1, len(_WORDS) - 1)] for _ in range(words))


def records(chance: random.Random, turns: int) -> list[Record]:
    found: list[Record] = []
    for turn in range(turns):
        found.append(MessageRecord(role="user", content=(Text(text(chance, 20)),)))
        found.append(
            RequestRecord(
                purpose="turn",
                provider="anthropic",
                model=f"claude-{chance.choice('abc')}",
                wire="anthropic",
                prefix="9f2c",
                forecast=400,
                budget=190_000,
                blocks=turn,
            )
        )
        usage = Usage(plain=400, output=90)
        found.append(OutcomeRecord(request=len(found), stop="stop", usage=usage, cost=0.001 * chance.randint(1, 90)))
        found.append(MessageRecord(role="assistant", content=(Text(text(chance, 90)),), stop="stop"))
    if chance.random() < 0.02:
        found.append(PinRecord())
    if chance.random() < 0.05:
        found.append(LabelRecord(text=chance.choice(["work", "home"])))
    return found


def session(number: int, turns: int) -> tuple[Header, bytes]:
    chance = random.Random(number)
    moment = _BEGAN + number * 600_000
    channel = chance.choice(["terminal", "telegram", "library"])
    identity = str(UUID(int=(moment << 80) | chance.getrandbits(80)))
    header = Header(id=identity, agent="assistant", created=iso(moment), channel=channel)
    batches = b"".join(
        encode_batch([Entry(place, place - 1 or None, iso(moment + place * 1_000), record)])
        for place, record in enumerate(records(chance, turns), start=1)
    )
    return header, encode_header(header) + batches


def build(folder: Path, sessions: int, turns: int) -> int:
    """Write the sessions; how many bytes they have."""
    place = folder / "assistant"
    place.mkdir(parents=True)
    size = 0
    for number in range(sessions):
        header, data = session(number, turns)
        (place / f"{header.id}.jsonl").write_bytes(data)
        size += len(data)
    return size


def timed(label: str, work: Callable[[], object], times: int = 1) -> None:
    """The best of some times, and what the processor spent on each."""
    processor = time.process_time()
    best = min(_seconds(work) for _ in range(times))
    processor = (time.process_time() - processor) / times
    print(f"{label:<58}{best * 1_000:>12,.1f} ms{processor * 1_000:>12,.1f} ms")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(folder: Path) -> None:
    path = folder.parent / "index.sqlite"
    index = SessionIndex(folder, path)
    timed("the index from nothing", lambda: index.list(patience=None))
    print(f"{'its size':<58}{sum(each.stat().st_size for each in path.parent.glob('index.sqlite*')) / 1e6:>12,.1f} MB")
    mirror = index._mirror
    assert mirror is not None
    timed("  of which: looking at every file's stamp", lambda: mirror.catch_up(), 9)
    questions: dict[str, Callable[[SessionIndex], object]] = {
        "list, the first 50": lambda each: each.list(Filter(limit=50)),
        "list, the first 50 with a tag": lambda each: each.list(Filter(limit=50, tag="work")),
        "list, 50 by channel, model and cost": lambda each: each.list(
            Filter(limit=50, channel="telegram", model="claude-b", min_cost=0.1)
        ),
        "search, a common word": lambda each: each.search(_WORDS[0], Filter(), 20),
        "search, a rare word": lambda each: each.search(_WORDS[3_000], Filter(), 20),
        "search, two words and a phrase": lambda each: each.search(
            f'{_WORDS[5]} "{_WORDS[1]} {_WORDS[2]}"', Filter(), 20
        ),
        "search, the beginning of a word": lambda each: each.search(_WORDS[40][:3], Filter(), 20),
        "search, Chinese": lambda each: each.search("会议", Filter(), 20),
        "search, a common word in pinned sessions": lambda each: each.search(_WORDS[0], Filter(pinned=True), 20),
    }
    for label, question in questions.items():
        timed(label, lambda question=question: question(index), 9)  # type: ignore[misc]  # mypy: lambdas with defaults

    def fresh(question: Callable[[SessionIndex], object]) -> None:
        other = SessionIndex(folder, path, full_text=True)
        question(other)
        other.close()

    for label in ("list, the first 50", "search, a rare word"):
        timed(f"{label}, index opened for it", lambda label=label: fresh(questions[label]), 9)  # type: ignore[misc]
    changing = next((folder / "assistant").glob("*.jsonl"))

    def change() -> None:
        entry = Entry(10**6, None, iso(_BEGAN), MessageRecord(role="user", content=(Text("news"),)))
        with changing.open("ab") as file:
            file.write(encode_batch([entry]))
        index.take_in([changing])

    timed("taking in one session that changed", change)
    index.close()
    timed("a list without an index, from the folder", lambda: without(folder))


def without(folder: Path) -> None:
    mirror = Mirror(open_stand_in(full_text=True), Folder(folder), full_text=True)
    mirror.catch_up()
    mirror.sessions(Filter(limit=50))
    mirror.connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moonwake-listing-") as name:
        folder = Path(name) / "sessions"
        began = time.perf_counter()
        size = build(folder, options.sessions, options.turns)
        print(f"{options.sessions:,} sessions, {size / 1e6:,.1f} MB, written in {time.perf_counter() - began:,.1f} s")
        os.sync()
        measure(folder)


if __name__ == "__main__":
    main()
