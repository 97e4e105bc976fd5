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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path[:0] = [str(Path(__file__).parents[1])]

from governors.messages import AssistantMessage, Messages, Text, ToolSpec, UserMessage
from governors.repair import repair
from governors.wire import WIRES, Abilities, Encoder
from runtime.errors import MoonwakeError
from runtime.session.codec import decode_batch, encode_entry
from runtime.session.entries import OFF_BRANCH, Entry, HeadRecord, MessageRecord
from runtime.session.import_ import Read, look_at, read_file
from runtime.session.projection import project
from runtime.session.tree import Tree

KINDS = (Abilities(), Abilities(images=True, system_anywhere=True))


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
    entries = decode_batch(b"".join(map(encode_entry, read.entries)))
    tree = Tree(entries)
    done.entries += len(entries)
    parents = {entry.parent for entry in entries if not isinstance(entry.record, OFF_BRANCH)}
    done.branches += sum(not isinstance(e.record, OFF_BRANCH) and e.id not in parents for e in entries)
    done.heads += sum(isinstance(entry.record, HeadRecord) for entry in entries)
    for entry in entries:
        if isinstance(entry.record, MessageRecord) and entry.record.usage is not None:
            done.tokens += entry.record.usage.total
        if entry.parent is not None and (entry.parent >= entry.id or entry.parent not in tree):
            done.violations.append(f"entry {entry.id} hangs on {entry.parent}")
    shown = [entry for entry in entries if not isinstance(entry.record, OFF_BRANCH)]
    for number, entry in enumerate(shown, 1):
        if number % every == 0 or number == len(shown):
            for violation in violations(tree.branch_to(entry.id), done):
                done.violations.append(f"{read.title[:30]!r}, the branch to entry {entry.id}: {violation}")


def violations(branch: Sequence[Entry], done: Outcome) -> Iterator[str]:
    """The rules that a request with this branch breaks, on every wire. What ends with a reply is no request: the user's
    next message is added."""
    messages = project(branch).messages
    if not messages or isinstance(messages[-1], AssistantMessage):
        messages = (*messages, UserMessage((Text("Go on."),)))
    tools = _tools(messages)
    for wire, rules in WIRES.items():
        for abilities in KINDS:
            repaired = repair(messages, id_pattern=abilities.id_pattern)
            encoder = Encoder(rules, system="Ours.", tools=tools, abilities=abilities, model="a-model", max_output=1000)
            encoder.append(repaired)
            done.requests += 1
            yield from (f"{wire}: {each}" for each in encoder.violations() if each.severity != "$")


def _tools(messages: Messages) -> tuple[ToolSpec, ...]:
    names = {call.name for each in messages if isinstance(each, AssistantMessage) for call in each.calls}
    return tuple(ToolSpec(name, "", {"type": "object"}) for name in sorted(names) if name.strip())


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
