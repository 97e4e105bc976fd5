"""Holds the prompts of a replay against the rules of a wire. Only traces with text can be held against them."""

from __future__ import annotations

from collections.abc import Iterable

from governors.messages import AssistantMessage, Message, ToolResult, ToolSpec
from governors.microcompact import stub
from governors.repair import repair
from governors.wire import WIRES, Abilities

from .simulate import Check, Prompt
from .trace import Trace

WIRE = "anthropic"  # its rules about order and pairing are the strictest


def checker(trace: Trace, wire: str = WIRE) -> Check | None:
    """A function that counts the rules that a prompt breaks on `wire`, after repairs; None for a trace without text."""
    if not trace.has_text:
        return None
    chosen, abilities, tools = WIRES[wire], Abilities(), tuple(_tools(trace))

    def check(prompt: Prompt) -> int:
        messages = repair(tuple(prompt.messages(_as_line)), id_pattern=abilities.id_pattern)
        parts = chosen.encode(messages, system="", tools=tools, abilities=abilities)
        return len(chosen.check(parts, abilities))

    return check


def _as_line(message: Message) -> Message:
    return stub(message) if isinstance(message, ToolResult) else message


def _tools(trace: Trace) -> Iterable[ToolSpec]:
    """Bare descriptions of the tools that were called: a request with calls has to offer them."""
    names = {
        call.name
        for each in trace.calls
        for item in each.items
        if isinstance(item.message, AssistantMessage)
        for call in item.message.calls
    }
    return (ToolSpec(name, "", {"type": "object"}) for name in sorted(names) if name)
