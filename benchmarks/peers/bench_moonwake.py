"""Moonwake's governors: `Governor.step` for a conversation that grows, `govern()` for a whole list.

In `Governor.step` cases a governor has the history already; each timed call brings what is new, and the reply carries
its usage, as replies do. "counts known": the new messages were counted before. In the others, counting is in the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from timing import MARGIN, MAX_OUTPUT, Bench

from governors import WIRES, Abilities, Budget, Governor, TiktokenCounter, govern, load_vocabulary
from governors.messages import AssistantMessage, Message, ToolSpec, Usage

MODEL = "model"
WIRE = WIRES["openai_chat"]
COUNTER = TiktokenCounter()
ROOM = Budget(1_000_000_000, 1)
LONG_ENOUGH = 300  # steps, for the usual window to fill up and force an edit


def tools_of(dicts: Sequence[dict[str, Any]]) -> tuple[ToolSpec, ...]:
    functions = [tool["function"] for tool in dicts]
    return tuple(ToolSpec(f["name"], f["description"], f["parameters"], bulky=True) for f in functions)


def decoded(dicts: Sequence[dict[str, Any]]) -> tuple[Message, ...]:
    return tuple(WIRE.decode(dicts, model=MODEL).messages)


def counted(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same, with their counts kept in them."""
    govern(messages, budget=ROOM, counter=COUNTER, model=MODEL)
    return tuple(messages)


class Session:
    """A governor that holds the history, and what comes after."""

    def __init__(self, found: dict[str, Any], window: int, history: Sequence[Message], known: bool) -> None:
        self._known = known
        system, tools = found["system"], tools_of(found["tools"])
        self._governor = Governor(
            Budget(window, MAX_OUTPUT, MARGIN), counter=COUNTER, system=system, tools=tools, model=MODEL
        )
        self._size = self._governor.step(history).report.after

    def steps(self, later: Sequence[Sequence[dict[str, Any]]]) -> Iterator[tuple[Message, ...]]:
        for pair in later:
            reply, *rest = (message for message in decoded(pair))
            if isinstance(reply, AssistantMessage):
                usage = Usage(plain=int(self._size * 0.9), output=60)
                reply = replace(reply, usage=usage)
            yield counted((reply, *rest)) if self._known else (reply, *rest)

    def step(self, new: tuple[Message, ...]) -> int:
        governed = self._governor.step(new)
        self._size = governed.report.after
        return len(governed.messages)


def measure_steps(bench: Bench, window: int, history: Sequence[Message]) -> None:
    found = bench.found
    users = [[user] for user in found["users"]]
    cases = (
        ("Governor.step, one new message, counts known", users, True),
        ("Governor.step, one new message", users, False),
        ("Governor.step, reply + result, counts known", found["later"], True),
        ("Governor.step, reply + result", found["later"], False),
    )
    for case, later, known in cases:
        session = Session(found, window, history, known)
        steps = session.steps(later)
        bench.measure(case, window, lambda steps=steps: next(steps), session.step, most=LONG_ENOUGH)


def measure_lists(bench: Bench, window: int, history: Sequence[Message]) -> None:
    found = bench.found
    options: dict[str, Any] = {
        "budget": Budget(window, MAX_OUTPUT, MARGIN),
        "counter": COUNTER,
        "system": found["system"],
        "tools": tools_of(found["tools"]),
        "model": MODEL,
    }
    decisions = govern(history, **options).decisions

    def known(messages: Sequence[Message]) -> int:
        return len(govern(messages, decisions=decisions, **options).messages)

    def unknown(messages: Sequence[Message]) -> int:
        return len(govern(messages, **options).messages)

    def whole(dicts: Sequence[dict[str, Any]]) -> int:
        governed = govern(decoded(dicts), **options)
        WIRE.encode(governed.messages, system=found["system"], tools=options["tools"], abilities=Abilities())
        return len(governed.messages)

    grown = Grown(history, found["later"])
    bench.measure("govern(), counts known", window, grown.counted, known)
    bench.measure("govern(), first time", window, lambda: decoded(found["messages"]), unknown)
    bench.measure("dicts in, dicts out, nothing known", window, lambda: found["messages"], whole)


class Grown:
    """The history, longer by a reply and its result at each call."""

    def __init__(self, history: Sequence[Message], later: Sequence[Sequence[dict[str, Any]]]) -> None:
        self._messages, self._later, self._next = list(history), later, count()

    def counted(self) -> list[Message]:
        self._messages += counted(decoded(self._later[next(self._next)]))
        return list(self._messages)


def main() -> None:
    bench = Bench("moonwake", ["tiktoken"])
    load_vocabulary()
    history = counted(decoded(bench.found["messages"]))
    for window in bench.windows:
        measure_steps(bench, window, history)
        measure_lists(bench, window, history)
    bench.close()


if __name__ == "__main__":
    main()
