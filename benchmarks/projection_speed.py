"""What reading the log costs at each step of a conversation: projecting, and preparing a request.

    python benchmarks/projection_speed.py [--sizes 100 1000 10000] [--rounds 200] [--json]

The log is tool-heavy: a user's message, then ten steps of request, outcome, reply with a call, intent and result. Every
size is a count of entries on the branch, without a head. Medians in microseconds per appended entry or step:

    entry     `LiveProjection.project` after one more entry, of each kind in turn
    standing  `LiveStanding.read` after one more entry
    step      `prepare` of a whole request after one more step (five entries), counted by bytes
    first     `LiveProjection.project` of the whole branch, in milliseconds
    prepare   the first `prepare` of the whole branch, in milliseconds, with counts and encoded forms to be made
    again     `prepare` after an edit: everything is put together anew, in milliseconds

Targets: at 10,000 entries `entry` at most 100 us beside the copy of the messages' pointers (`copy`), `step` at most
5 ms.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from governors.messages import Text, ToolCall, Usage
from governors.tokens import ByteCounter
from runtime.agent.drafts import Drafts
from runtime.agent.fit import known_fit
from runtime.agent.prepare import Prepared, Situation, prepare
from runtime.providers.scripted import Scripted
from runtime.session.entries import (
    EditRecord,
    IntentRecord,
    MessageRecord,
    OutcomeRecord,
    Record,
    RequestRecord,
    ResultRecord,
    SystemRecord,
)
from runtime.session.placing import place
from runtime.session.tree import Tree
from runtime.session.view.live import LiveProjection, LiveStanding

ENTRY, STEP = 100.0, 5_000.0  # the targets, in microseconds
AT = "2026-11-30T18:00:00.000Z"


class Log:
    """A tree that grows by a tool-heavy conversation without end."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.turn = 0
        self._coming = self._conversation()

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.add(next(self._coming))

    def add(self, record: Record) -> None:
        (entry,) = place(self.tree, (record,), AT)
        self.tree.add(entry)

    def end_step(self) -> None:
        """Grow until a request may be made: after a result or a user's message."""
        while True:
            record = next(self._coming)
            self.add(record)
            if isinstance(record, ResultRecord):
                return

    def _conversation(self) -> Iterator[Record]:
        yield SystemRecord(sections={"identity": "You are Moonwake. " * 50})
        number, prompt = 0, 1_000
        while True:
            self.turn = self.tree.next_id
            yield MessageRecord(role="user", content=(Text(f"Please do the thing number {number}."),))
            for _ in range(10):
                number, prompt = number + 1, prompt + 700
                request = self.tree.next_id
                yield _request(prompt)
                usage = Usage(plain=prompt, output=40)
                yield OutcomeRecord(request=request, stop="tool_use", usage=usage, cost=0.001)
                reply = self.tree.next_id
                call = ToolCall(f"call{number}", "exec", json.dumps({"path": f"/project/file_{number}.py"}))
                yield MessageRecord(
                    role="assistant",
                    content=(Text("Let me look."), call),
                    stop="tool_use",
                    model="scripted",
                    usage=usage,
                )
                yield IntentRecord(call=(reply, 0), tool="exec")
                text = f"line {number} of the file\n" * 25
                yield ResultRecord(call=(reply, 0), tool="exec", content=(Text(text),), seconds=0.1)


def _request(prompt: int) -> RequestRecord:
    return RequestRecord(
        purpose="turn",
        provider="scripted",
        model="scripted",
        wire="anthropic",
        prefix="",
        forecast=prompt,
        budget=10**8,
        blocks=0,
    )


def timed(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def measure(size: int, rounds: int) -> dict[str, float]:
    log, live, standing = Log(), LiveProjection(), LiveStanding()
    log.grow(size)
    found = {"first": timed(lambda: live.project(log.tree.branch())) / 1_000}
    standing.read(log.tree)
    entries, copies, held = [], [], []
    for _ in range(rounds):
        log.grow(1)
        entries.append(timed(lambda: live.project(log.tree.branch(), log.tree.redacted)))
        held.append(timed(lambda: standing.read(log.tree)))
        messages = list(live.project(log.tree.branch(), log.tree.redacted).messages)
        copies.append(timed(lambda messages=messages: tuple(messages)))
    found |= {"entry": statistics.median(entries), "copy": statistics.median(copies)}
    found |= {"standing": statistics.median(held)}
    return found | measure_steps(size, min(rounds, 50))


def measure_steps(size: int, rounds: int) -> dict[str, float]:
    log, standing = Log(), LiveStanding()
    log.grow(size)
    log.end_step()
    model = Scripted().chosen(window=10**8)
    drafts = Drafts(ByteCounter())

    def request() -> Prepared:
        situation = Situation(
            (), log.tree.branch(), log.turn, model, known_fit(model, {}), drafts, standing=standing.read(log.tree)
        )
        outcome = prepare(situation).outcome
        assert isinstance(outcome, Prepared)
        return outcome

    first = timed(request) / 1_000
    steps = []
    for _ in range(rounds):
        log.end_step()
        steps.append(timed(request))
    target = next(e.id for e in log.tree.branch() if isinstance(e.record, ResultRecord))
    log.add(EditRecord(action="replace", target=target, cause="test", content=(Text("[stub]"),)))
    again = timed(request) / 1_000
    return {"step": statistics.median(steps), "prepare": first, "again": again}


def main() -> int:
    options = argparse.ArgumentParser(description="What reading the log costs at each step.")
    options.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    gc.freeze()
    found = {size: measure(size, given.rounds) for size in given.sizes}
    if given.json:
        print(json.dumps(found))
    else:
        names = ("entry", "copy", "standing", "step", "first", "prepare", "again")
        print(f"{'entries':>8}" + "".join(f"{name:>10}" for name in names))
        for size, row in found.items():
            print(f"{size:>8,}" + "".join(f"{row[name]:>10.1f}" for name in names))
    largest = found[max(found)]
    met = largest["entry"] - largest["copy"] <= ENTRY and largest["step"] <= STEP
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
