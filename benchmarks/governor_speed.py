"""What governing costs: a step with one new message, and a whole list, in one run.

    python benchmarks/governor_speed.py [--sizes 50 1000 5000] [--rounds 300] [--json]

The conversation is tool-heavy: a user's message, then ten steps of a reply with a call, and its result. Medians in
microseconds, counting included (by bytes, so that the counter itself costs next to nothing):

    user     `Governor.step` with a user's message
    step     `Governor.step` with a reply and its result
    govern   `govern` of the whole list, its counts known, in milliseconds

Targets: at 5,000 messages `user` and `step` at most 50 us and at most twice what they are at 50; `govern` at most 5 ms.
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

from governors.budget import Budget
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, Usage, UserMessage
from governors.pipeline import govern
from governors.tokens import ByteCounter

STEP, GROWTH, WHOLE = 50.0, 2.0, 5.0  # the targets: microseconds, times, milliseconds
BUDGET = Budget(100_000_000, 1_000)
MODEL = "model"


def conversation(number: int = 0) -> Iterator[tuple[Message, ...]]:
    """Without end: what a user says, then ten steps from the given one on, each with its usage."""
    prompt = 1_000 + 700 * number
    while True:
        yield (UserMessage((Text(f"Please do the thing number {number}."),)),)
        for _ in range(10):
            number, prompt = number + 1, prompt + 700
            call = ToolCall(f"call{number}", "exec", json.dumps({"path": f"/project/file_{number}.py"}))
            usage = Usage(plain=prompt, output=40)
            reply = AssistantMessage((Text("Let me look."), call), "tool_use", MODEL, usage=usage)
            yield reply, ToolResult(f"call{number}", "exec", (Text(f"line {number} of the file\n" * 25),))


def timed(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def measure(size: int, rounds: int) -> dict[str, float]:
    stream = conversation()
    messages: list[Message] = []
    while len(messages) < size:
        messages += next(stream)
    governors = [_fed(messages) for _ in range(max(1, rounds // 30))]  # each takes few, so that the size stays
    found: dict[str, list[float]] = {"user": [], "step": []}
    for governor in governors:
        more = conversation(size)
        for _ in range(33):
            batch = tuple(next(more))
            kind = "user" if isinstance(batch[0], UserMessage) else "step"
            found[kind].append(timed(lambda batch=batch, governor=governor: governor.step(batch)))  # type: ignore[misc] # bound
    whole = tuple(messages)
    govern(whole, budget=BUDGET, counter=ByteCounter(), model=MODEL)
    wholes = [timed(lambda: govern(whole, budget=BUDGET, counter=ByteCounter(), model=MODEL)) for _ in range(9)]
    return {**{kind: statistics.median(times) for kind, times in found.items()}, "govern": min(wholes) / 1_000}


def _fed(messages: list[Message]) -> Governor:
    governor = Governor(BUDGET, counter=ByteCounter(), model=MODEL)
    governor.step(messages)
    return governor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 1_000, 5_000])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    gc.freeze()
    found = [{"messages": size, **measure(size, options.rounds)} for size in options.sizes]
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{'messages':>8} {'user us':>9} {'step us':>9} {'govern ms':>10}")
        for row in found:
            print(f"{row['messages']:8} {row['user']:9.1f} {row['step']:9.1f} {row['govern']:10.2f}")
    least, most = found[0], found[-1]
    slow = [kind for kind in ("user", "step") if most[kind] > STEP or most[kind] > GROWTH * least[kind]]
    if slow or most["govern"] > WHOLE:
        sys.exit(f"over target: {', '.join(slow) or 'govern'}")


if __name__ == "__main__":
    main()
