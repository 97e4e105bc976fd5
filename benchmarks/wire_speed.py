"""What a request with one new message costs, from the whole list and from an `Encoder`, in one run.

    python benchmarks/wire_speed.py [--sizes 50 1000 5000] [--rounds 40]

The conversation is tool-heavy: a user's message, then steps of a reply with thinking and a call, and its result of
about 500 characters. For every wire and size, medians in microseconds:

    whole    encode, body, mark_cache, check, prefix_hash and json.dumps of the whole list, from what messages keep
    step     append one new message to an `Encoder`, check the request, take its prefix hash
    bytes    the finished body: the join of the bytes that stand, and the marks

Target: `step` at most 50 us at 5,000 messages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from governors.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, ToolSpec, UserMessage
from governors.wire import WIRES, Abilities, Encoder, Wire

TARGET = 50.0  # microseconds
TOOLS = [ToolSpec(name, "Does a thing. " * 20, {"properties": {"path": {"type": "string"}}}) for name in "abcdef"]
SYSTEM = "You are helpful. " * 200


def conversation(wire: str) -> Iterator[Message]:
    """Messages without end: one of the user's, then ten steps."""
    number = 0
    while True:
        yield UserMessage((Text(f"Please do the thing number {number}."),))
        for _ in range(10):
            number += 1
            arguments = json.dumps({"path": f"/project/file_{number}.py"})
            parts = (Thinking("Let me look.", f"signature{number}" * 8), ToolCall(f"call{number}", "a", arguments))
            yield AssistantMessage((*parts,), "tool_use", "model", wire)
            yield ToolResult(f"call{number}", "a", (Text(f"line {number} of the file\n" * 25),))


def whole(wire: Wire, messages: tuple[Message, ...], abilities: Abilities) -> None:
    parts = wire.encode(messages, system=SYSTEM, tools=TOOLS, abilities=abilities, model="model")
    body = wire.mark_cache(wire.body(parts, model="model", max_output=4_096, abilities=abilities))
    assert not wire.check(body, abilities)
    wire.prefix_hash(body)
    json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def timed(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def measure(wire: Wire, size: int, rounds: int) -> dict[str, float]:
    abilities = Abilities(thinking="adaptive" if wire.name == "anthropic" else "effort")
    stream = conversation(wire.name)
    messages = tuple(next(stream) for _ in range(size))
    while not isinstance(messages[-1], ToolResult):
        messages += (next(stream),)
    encoder = Encoder(wire, system=SYSTEM, tools=TOOLS, abilities=abilities, model="model", max_output=4_096)
    encoder.append(messages)
    encoder.violations()

    def step(message: Message) -> None:
        encoder.append([message])
        encoder.violations()
        assert encoder.prefix

    later = [next(stream) for _ in range(rounds)]
    steps = [timed(partial(step, message)) for message in later]
    joins = [timed(encoder.to_bytes) for _ in range(rounds)]
    wholes = [timed(partial(whole, wire, messages, abilities)) for _ in range(5)]
    return {
        "whole": statistics.median(wholes),
        "step": statistics.median(steps),
        "bytes": statistics.median(joins),
        "body_kilobytes": len(encoder.to_bytes()) / 1_000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 1_000, 5_000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [
        {"wire": name, "messages": size, **measure(wire, size, options.rounds)}
        for name, wire in WIRES.items()
        for size in options.sizes
    ]
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{'wire':18} {'messages':>8} {'whole us':>10} {'step us':>9} {'bytes us':>9} {'body KB':>9}")
        for row in found:
            figures = f"{row['whole']:10.0f} {row['step']:9.1f} {row['bytes']:9.1f} {row['body_kilobytes']:9.0f}"
            print(f"{row['wire']:18} {row['messages']:8} {figures}")
    slow = [row for row in found if row["messages"] == max(options.sizes) and row["step"] > TARGET]
    if slow:
        sys.exit(f"over {TARGET:.0f} us a step: " + ", ".join(f"{row['wire']} at {row['messages']}" for row in slow))


if __name__ == "__main__":
    main()
