"""Session files of other programs, imported: what became of every line, and whether every prefix is a legal request.

    python benchmarks/import_traces.py FOLDER_OR_FILE... [--processes 2] [--every N] [--report]

Each file is read as `moonwake sessions import` reads it. Its entries are encoded and decoded, and the branch to every
entry is projected as for a request, which is held against the rules of every wire (`governors/wire`, `$` aside). With
`--every N` only each Nth prefix of a long session is checked, and the last. `--report` prints the reports too.

Prints a line a file, and ends with 1 when a line is unexplained, an entry is out of order, or a request is not legal.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path[:0] = [str(Path(__file__).parents[1])]

from runtime.errors import MoonwakeError
from runtime.session.entries import HeadRecord, MessageRecord
from runtime.session.import_ import Read, look_at, read_file
from tests.session.import_.prefixes import KINDS, WIRES, as_on_disk, tips, wrong


@dataclass(slots=True)
class Outcome:
    name: str
    format: str = ""
    lines: int = 0
    carried: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    entries: int = 0
    branches: int = 0
    heads: int = 0
    tokens: int = 0
    requests: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    report: str = ""


def outcome_of(path: Path, every: int) -> Outcome:
    """What came of one file."""
    done, began = Outcome(path.name), time.perf_counter()
    try:
        read, report = read_file(look_at(path))
    except MoonwakeError as error:
        done.violations.append(f"cannot be imported: {error}")
        return done
    done.seconds = time.perf_counter() - began
    done.format, done.lines, done.carried, done.report = report.format, report.lines, len(report.carried), report.text()
    done.reasons.update({reason: len(lines) for reason, lines in report.reasons.items()})
    done.violations += [f"line {number} is unexplained" for number in report.unexplained]
    done.sessions = len(read)
    for each in read:
        _measure(each, every, done)
    return done


def _measure(read: Read, every: int, done: Outcome) -> None:
    entries = as_on_disk(read.entries)
    shown = tips(entries)
    done.entries += len(entries)
    done.branches += len({entry.id for entry in shown} - {entry.parent for entry in shown})
    done.heads += sum(isinstance(entry.record, HeadRecord) for entry in entries)
    for entry in entries:
        if isinstance(entry.record, MessageRecord) and entry.record.usage is not None:
            done.tokens += entry.record.usage.total
    done.requests += (len(shown) // every + bool(len(shown) % every)) * len(WIRES) * len(KINDS)
    done.violations += [f"{read.title[:30]!r}, {each}" for each in wrong(entries, every)]


def files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.rglob("*") if each.name.endswith((".jsonl", ".jsonl.gz", ".json")))
        found += inside if path.is_dir() else [path]
    return found


def show(done: Outcome, report: bool) -> None:
    print(
        f"{done.name} ({done.format}): {done.lines:,} lines, {done.carried:,} carried; {done.sessions:,} sessions, "
        f"{done.entries:,} entries, {done.branches:,} branches, {done.heads} heads, {done.tokens:,} tokens of usage; "
        f"{done.requests:,} requests, {len(done.violations)} violations; read in {done.seconds:.2f} s",
        flush=True,
    )
    for reason, lines in done.reasons.most_common():
        print(f"    {lines:,} left: {reason}")
    for violation in done.violations[:10]:
        print(f"    WRONG {violation}")
    if report:
        print(done.report)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    wrong = requests = 0
    paths = [path for path in files(options.paths) if not path.name.startswith("coding-sessions")]  # sizes, no text
    with ProcessPoolExecutor(options.processes) as pool:
        for done in pool.map(outcome_of, paths, [options.every] * len(paths)):
            show(done, options.report)
            wrong += len(done.violations)
            requests += done.requests
    print(f"{len(paths):,} files, {requests:,} requests, {wrong:,} violations")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
