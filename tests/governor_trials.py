"""A recorded conversation, fed message by message to a governor: every prefix is a request, held against the laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from governors.budget import Budget
from governors.decisions import Cut, DropImages, Stub
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, Messages, ToolSpec
from governors.pipeline import govern
from governors.report import Governed
from governors.tokens import ByteCounter
from governors.wire import WIRES, Abilities, Encoder

COUNTER = ByteCounter()
MODEL = "a-model"


@dataclass(frozen=True, slots=True)
class Trial:
    """A conversation, the wire to send it on, and the room for it (bytes)."""

    name: str
    wire: str
    room: int
    messages: Messages


@dataclass(slots=True)
class Found:
    requests: int = 0
    overflows: int = 0
    edits: int = 0
    violations: list[str] = field(default_factory=list)


def trial_of(trial: Trial) -> Found:
    """What every prefix of the conversation gives: laws 1 (legal), 3 (nothing moves) and 5 (idempotent)."""
    found = Found()
    found.violations += _feed(trial, found)
    return found


def _feed(trial: Trial, found: Found) -> Iterator[str]:
    abilities, tools = Abilities(images=True), _tools(trial.messages)
    budget = Budget(trial.room + 10, 10, margin=0)
    governor = Governor(budget, None, COUNTER, abilities, tools=tools)
    before: Governed | None = None
    encoder, sent = _encoder(trial.wire, tools, abilities), 0
    for number, message in enumerate(trial.messages, 1):
        try:
            governed = governor.step((message,))
        except ContextOverflow:
            found.overflows += 1
            continue
        found.requests += 1
        edits = [each for each in governed.decisions if isinstance(each, Stub | DropImages | Cut)]
        moved = edits or (before is not None and any(map(_differ, before.messages, governed.messages)))
        if moved:
            found.edits += 1
            if not edits and not found.overflows:
                yield f"law 3, after {number}: a message moved that no decision explains"
            encoder, sent = _encoder(trial.wire, tools, abilities), 0
        blocks, prefix = encoder.blocks, encoder.prefix
        encoder.append(islice(governed.messages, sent, None))
        sent = len(governed.messages)
        if encoder.prefix_at(blocks) != prefix:
            yield f"law 3, after {number}: bytes moved that no decision explains"
        asks = not isinstance(governed.messages[-1], AssistantMessage) if sent else False
        if asks:
            for violation in encoder.violations():
                if violation.severity != "$":
                    yield f"law 1, after {number}: {violation}"
        again = tuple(governed.messages)
        whole = govern(again, budget=budget, counter=COUNTER, abilities=abilities, tools=tools)
        if whole.messages is not again or whole.decisions:
            yield f"law 5, after {number}: {whole.decisions}"
        before = governed


def _encoder(wire: str, tools: list[ToolSpec], abilities: Abilities) -> Encoder:
    return Encoder(WIRES[wire], system="", tools=tools, abilities=abilities, model=MODEL, max_output=10)


def _differ(one: Message, other: Message) -> bool:
    return one is not other


def _tools(messages: Messages) -> list[ToolSpec]:
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    names = {call.name for reply in replies for call in reply.calls if call.name.strip()}
    return [ToolSpec(name, "", {"type": "object"}, bulky=True) for name in sorted(names)]
