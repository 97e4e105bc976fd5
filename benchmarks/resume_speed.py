"""How long it takes to open a session, with and without a head near its end, and what an open one keeps in memory.

    python benchmarks/resume_speed.py [--sizes 1000 10000 100000] [--runs 7] [--peer NAME=PYTHON]...

A session is made of turns as an agent writes them: a message, then steps of a request, its outcome and the reply, and
an intent and a result for each call; texts of 0.2 to 2 KB. Opening is all that a resume does: lock, read, check every
line, find the leaf, build the tree. `--peer nanobot=WORKDIR/nanobot/bin/python` (or `agents=...`, openai-agents)
measures another runtime's loader on the same conversation, in its own interpreter. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import StopReason, Text, ToolCall, ToolSpec, Usage
from runtime.session.entries import (
    Entry,
    Header,
    HeadRecord,
    IntentRecord,
    MessageRecord,
    OutcomeRecord,
    Record,
    RequestRecord,
    ResultRecord,
    SystemRecord,
)
from runtime.session.format.codec import encode_batch, encode_header
from runtime.session.opening import open_log
from runtime.session.placing import place
from runtime.session.tree import Tree
from runtime.session.view.projection import project

_KEPT = 400  # entries between a head's `from` and the end of the file
_AT = "2026-11-30T18:00:01.250Z"
_PEERS = Path(__file__).parent / "peers" / "bench_resume.py"
_TEXT = """the archive import fails twice because reader value branch path caller passes unchecked test keeps line
return None self.offset = data[place:] raise ValueError(f'{name}') # why not"""


class History:
    """A conversation that grows turn by turn, as the same texts in our log and in a peer's messages."""

    def __init__(self, seed: int = 1) -> None:
        self.tree = Tree()
        self.lines: list[bytes] = [encode_header(Header(id="bench", agent="assistant", created=_AT))]
        self.messages: list[dict[str, Any]] = []
        self._random = random.Random(seed)
        self._words = _TEXT.split()
        tools = tuple(
            ToolSpec(name, "Does what it says.", {"type": "object"}) for name in ("exec", "grep", "read_file")
        )
        self._write(SystemRecord(sections={"identity": self._text(4_000)}, tools_added=tools))

    def grow(self, size: int, *, head: bool) -> History:
        """Until there are `size` entries, with a head `_KEPT` entries before the end where one is wanted."""
        start = None
        while len(self.tree) < size:
            begun = self._turn()
            if head and start is None and len(self.tree) >= size - _KEPT:
                start = begun
                self._head(begun)
        return self

    def _turn(self) -> int:
        said = self._text(self._random.randint(200, 800))
        (message,) = self._write(
            MessageRecord(role="user", content=(Text(said),), context="<context>\nMonday, terminal\n</context>")
        )
        self.messages.append({"role": "user", "content": said})
        for _ in range(self._random.randint(1, 6)):
            self._step()
        self._reply(())
        return message.id

    def _step(self) -> None:
        number = len(self.messages)
        calls = tuple(
            ToolCall(f"call_{number}_{each}", "read_file", json.dumps({"path": self._text(30)}))
            for each in range(self._random.choice([1, 1, 1, 2]))
        )
        reply = self._reply(calls)
        for index, call in enumerate(calls):
            text = self._text(self._random.randint(200, 2_000))
            self._write(IntentRecord(call=(reply, index), tool=call.name, read_only=True))
            self._write(ResultRecord(call=(reply, index), tool=call.name, content=(Text(text),), seconds=0.012))
            self.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})

    def _reply(self, calls: tuple[ToolCall, ...]) -> int:
        text = self._text(self._random.randint(200, 1_200))
        usage = Usage(plain=312, cache_read=81_220, cache_write_5m=1_044, output=380)
        (request,) = self._write(
            RequestRecord(
                purpose="turn",
                provider="anthropic",
                model="claude-a",
                wire="anthropic",
                prefix="9f2c3f0a9c21be44",
                forecast=82_100,
                budget=190_000,
                blocks=211,
            )
        )
        stop: StopReason = "tool_use" if calls else "stop"
        _, reply = self._write(
            OutcomeRecord(request=request.id, stop=stop, usage=usage, cost=0.0214, seconds=3.1),
            MessageRecord(
                role="assistant",
                content=(Text(text), *calls),
                stop=stop,
                model="claude-a",
                wire="anthropic",
                usage=usage,
            ),
        )
        called = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        self.messages.append({"role": "assistant", "content": text, **({"tool_calls": called} if called else {})})
        return reply.id

    def _head(self, start: int) -> None:
        projection = project(self.tree.branch())
        self._write(
            HeadRecord(
                start=start,
                baseline=projection.state.baseline,
                cause="snip",
                generation=projection.generation + 1,
                open_calls=projection.open_calls(start),
                spent=12.5,
            )
        )

    def _write(self, *records: Record) -> tuple[Entry, ...]:
        entries = place(self.tree, records, _AT)
        self.lines.append(encode_batch(entries))
        for entry in entries:
            self.tree.add(entry)
        return entries

    def _text(self, size: int) -> str:
        words: list[str] = []
        length = 0
        while length < size:
            words.append(self._random.choice(self._words))
            length += len(words[-1]) + 1
        if self._random.random() < 0.1:  # one such letter, and Python keeps the text in four bytes a letter
            words.append("🙂 é")
        return " ".join(words)


def times(runs: int, act: Callable[[], Any]) -> str:
    """The shortest and the median of `runs` runs, wall and CPU, in milliseconds."""
    walls, used = [], []
    for _ in range(runs):
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        kept = act()
        walls.append((time.perf_counter() - wall) * 1e3)
        used.append((time.process_time() - cpu) * 1e3)
        del kept
    return f"{min(walls):9.1f} min {statistics.median(walls):9.1f} median   CPU {min(used):9.1f} min"


def opened(path: Path) -> Tree:
    """What a resume does, but for the event loop."""
    log, reading = open_log(path)
    tree = Tree(reading.entries, complete=reading.complete)
    log.close()
    return tree


def our_rows(folder: Path, sizes: list[int], runs: int) -> Iterator[str]:
    for size in sizes:
        for head in (False, True):
            path = folder / f"{size}-{head}.jsonl"
            path.write_bytes(b"".join(History().grow(size, head=head).lines))
            what = f"{size:>7,} entries, {'a head near the end' if head else 'no head':<19}"
            tree = opened(path)
            each = path.stat().st_size / size
            took = times(runs, partial(opened, path))
            yield f"{what} {took}   {each:5.0f} bytes an entry, {len(tree):,} read"
            yield f"{'':>7}          first projection    {times(1, partial(project, tree.branch()))}"


def memory_rows(folder: Path) -> Iterator[str]:
    """What sessions that are open and idle keep, each kind in a process of its own."""
    small = b"".join(History().grow(30, head=False).lines)
    for number in range(1_000):
        (folder / f"small-{number}.jsonl").write_bytes(small)
    for head in (False, True):
        (folder / f"large-{head}.jsonl").write_bytes(b"".join(History().grow(10_000, head=head).lines))
    for what, pattern in (
        ("1,000 sessions of 30 entries", "small-*"),
        ("1 session of 10,000 entries", "large-False*"),
        ("1 session of 10,000 entries, a head near the end", "large-True*"),
    ):
        told = [
            subprocess.run(
                [sys.executable, __file__, "--hold", str(folder / pattern), *tracing],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for tracing in ([], ["--trace"])
        ]
        yield f"{what}: {', '.join(told)}"


def hold(pattern: Path, trace: bool) -> str:
    """How much this process grows when it opens the sessions of `pattern` and keeps them."""
    paths = sorted(pattern.parent.glob(f"{pattern.name}.jsonl"))
    log, reading = open_log(paths[0])  # imports what is imported late, and makes what is made once
    Tree(reading.entries, complete=reading.complete)
    log.close()
    del reading
    gc.collect()
    resident = _resident()
    if trace:
        tracemalloc.start()
    kept = []
    for path in paths:
        log, reading = open_log(path)
        kept.append((log, Tree(reading.entries, complete=reading.complete)))
        del reading
    gc.collect()
    if not trace:
        return f"resident {(_resident() - resident) / len(kept) / 1024:,.0f} KiB each"
    traced = tracemalloc.get_traced_memory()[0] / len(kept)
    size = sum(path.stat().st_size for path in paths) / len(paths)
    return f"traced {traced / 1024:,.1f} KiB each, {traced / size:.2f} of the file"


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peer_rows(folder: Path, sizes: list[int], runs: int, peers: list[str]) -> Iterator[str]:
    for size in sizes:
        messages = folder / f"{size}.json"
        messages.write_text(json.dumps(History().grow(size, head=False).messages))
        for peer in peers:
            name, _, python = peer.partition("=")
            command = [python or sys.executable, str(_PEERS), name, str(messages), str(runs)]
            child = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
            told = child.stdout.strip() if child.returncode == 0 else child.stderr.strip().rsplit("\n", 1)[-1]
            yield f"{name}, the messages of {size:,} entries: {told}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--peer", action="append", default=[], help="NAME=PYTHON: agents or nanobot")
    arguments.add_argument("--no-memory", action="store_true")
    arguments.add_argument("--hold", type=Path, help=argparse.SUPPRESS)  # for the processes whose memory is measured
    arguments.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.hold is not None:
        print(hold(given.hold, given.trace))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [our_rows(folder, given.sizes, given.runs)]
        if not given.no_memory:
            rows.append(memory_rows(folder))
        rows.append(peer_rows(folder, given.sizes, given.runs, given.peer))
        for each in rows:
            for row in each:
                print(row, flush=True)


if __name__ == "__main__":
    main()
