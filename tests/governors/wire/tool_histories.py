"""Conversations in which the system prompt and the tools change, as they grow request by request."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from governors.messages import AssistantMessage, Message, Messages, SystemPatch, Text, ToolChange, ToolSpec, UserMessage
from governors.wire import WIRES
from governors.wire.base import Abilities
from tests.strategies import texts, units

NAMES = ["exec", "grep", "mcp_read", "read_file", "web_fetch"]
SCHEMAS = [
    {},
    {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
    {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}},
]


@dataclass(frozen=True)
class Told:
    """What a conversation is made of: the tools at its start, and its pieces, each with the array of tools that a wire
    without inline tools has after it."""

    baseline: tuple[ToolSpec, ...]
    pieces: tuple[tuple[Messages, tuple[ToolSpec, ...]], ...]

    def messages(self, pieces: int) -> Messages:
        return tuple(message for piece, _ in self.pieces[:pieces] for message in piece)

    def array(self, pieces: int, wire: str, abilities: Abilities) -> tuple[ToolSpec, ...]:
        if WIRES[wire].inline_tools(abilities) or not pieces:
            return self.baseline
        return self.pieces[pieces - 1][1]

    def requests(self) -> list[int]:
        """How many pieces each request holds: those after which a reply can be asked for."""
        return [
            count
            for count in range(1, len(self.pieces) + 1)
            if (shown := self.messages(count)) and not isinstance(shown[-1], AssistantMessage)
        ]


class _Tools:
    """What is defined and what is on."""

    def __init__(self, baseline: tuple[ToolSpec, ...]) -> None:
        self.array = list(baseline)
        self.on = {tool.name for tool in baseline}

    def change(self, draw: st.DrawFn) -> ToolChange:
        added, changed, back, removed = [], [], [], []
        defined = {tool.name: tool for tool in self.array}
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)):
            spec = ToolSpec(name, draw(st.one_of(st.just(""), texts)), draw(st.sampled_from(SCHEMAS)))
            if name not in defined:
                added.append(spec)
            elif draw(st.booleans()):
                changed += [spec] if spec != defined[name] else []
            elif name in self.on:
                removed.append(name)
            else:
                back.append(name)
        for spec in (*added, *changed):
            self.array = [spec if tool.name == spec.name else tool for tool in self.array]
            self.array += [spec] if spec.name not in defined else []
        self.on = (self.on | {tool.name for tool in (*added, *changed)} | set(back)) - set(removed)
        return ToolChange(tuple(added), tuple(changed), tuple(back), tuple(removed))


@st.composite
def told(draw: st.DrawFn, max_size: int = 7) -> Told:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    baseline = tuple(ToolSpec(name, "d", draw(st.sampled_from(SCHEMAS))) for name in sorted(names))
    tools, ids = _Tools(baseline), [f"call{number:05d}" for number in range(3 * max_size)]
    pieces: list[tuple[Messages, tuple[ToolSpec, ...]]] = [((UserMessage((Text("go"),)),), baseline)]
    for _ in range(draw(st.integers(0, max_size))):
        piece: list[Message] = draw(units(ids))
        if draw(st.booleans()):
            change = tools.change(draw)
            piece = [SystemPatch("\n\n".join(filter(None, [draw(texts), change.text])), tools=change or None)]
        pieces.append((tuple(piece), tuple(tools.array)))
    return Told(baseline, tuple(pieces))
