"""Hypothesis strategies for conversations.

A legal history is what the repairs leave: results straight after their reply, in call order, ids unique and legal
everywhere, no empty content, no unfinished reply. It holds text, images, thinking, several calls in a reply, errors,
stand-ins, system patches, and input that steered into a turn.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

from governors.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Messages,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)

#: Who may have written a reply: (wire, model).
AUTHORS = [
    ("anthropic", "claude-a"),
    ("anthropic", "claude-b"),
    ("openai_chat", "gpt-a"),
    ("openai_responses", "gpt-a"),
    (None, None),
]
TOOLS = ["read_file", "exec", "grep", "mcp.search files"]

#: Text that says something: never empty, never only white space, never a lone surrogate.
texts = st.one_of(
    st.sampled_from(["hello", "error: no", "日本語", "<|endoftext|>", "a\n\nb ", "🙂", "(empty message)"]),
    st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip())),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)

images = st.builds(
    Image,
    st.sampled_from(["image/png", "image/jpeg", "image/webp", "image/tiff"]),
    st.binary(min_size=1, max_size=6).map(lambda raw: base64.b64encode(raw).decode()),
    st.sampled_from([None, 100, 2_000, 2_001]),
    st.sampled_from([None, 100]),
)

documents = st.builds(
    Document,
    st.sampled_from(["application/pdf", "application/pdf", "application/msword"]),
    st.sampled_from(["JVBERi0=", "JVBERi0=", "JVBERi0xLjcK" * 20, ""]),
    st.sampled_from(["report.pdf", "", "a [b].pdf\n"]) | texts,
    st.none() | st.integers(0, 300),
    st.none() | st.just("") | texts,
)
user_parts = st.lists(st.one_of(texts.map(Text), texts.map(Text), images, documents), min_size=1, max_size=3).map(tuple)
user_messages = st.builds(UserMessage, user_parts)
patches = st.builds(SystemPatch, texts)
thinking_parts = st.one_of(
    st.builds(
        Thinking, st.text(max_size=8), st.one_of(st.none(), st.just(""), st.text("abc=", min_size=1, max_size=8))
    ),
    st.builds(Thinking, st.just(""), st.text("abc=", min_size=1, max_size=8), st.just(True)),
)
tool_specs = st.lists(
    st.builds(
        ToolSpec,
        st.sampled_from(["exec", "grep", "read_file"]),
        st.one_of(st.just(""), texts),
        st.sampled_from(
            [
                {},
                {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
                {"properties": {"x": {"type": "array", "items": {"type": "string"}}}, "required": ["x"]},
                {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}},
            ]
        ),
    ),
    max_size=3,
    unique_by=lambda spec: spec.name,
).map(lambda specs: sorted(specs, key=lambda spec: spec.name))


@st.composite
def argument_texts(draw: st.DrawFn) -> str:
    """JSON text of an object as models write it: escaped or not, tight or spaced."""
    value = draw(st.dictionaries(st.text(max_size=6), json_values, max_size=3))
    return json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))


@st.composite
def replies(draw: st.DrawFn, calls: int, ids: list[str]) -> AssistantMessage:
    """A reply with `calls` calls, whose ids are taken off `ids`. Without calls it says something."""
    wire, model = draw(st.sampled_from(AUTHORS))
    parts: list[Any] = draw(st.lists(thinking_parts, max_size=2))
    if not calls or draw(st.booleans()):
        phase = draw(st.sampled_from([None, None, "commentary"]))
        parts += [Text(text, phase) for text in draw(st.lists(texts, min_size=0 if calls else 1, max_size=2))]
        parts += draw(st.lists(thinking_parts, max_size=1))
    for _ in range(calls):
        signature = draw(st.sampled_from([None, None, "sig=="]))
        parts.append(ToolCall(ids.pop(0), draw(st.sampled_from(TOOLS)), draw(argument_texts()), True, signature))
        parts += draw(st.lists(thinking_parts, max_size=1))
    return AssistantMessage(tuple(parts), "tool_use" if calls else "stop", model, wire)


@st.composite
def results(draw: st.DrawFn, call: ToolCall) -> ToolResult:
    stand_in = draw(st.booleans()) and draw(st.booleans())
    return ToolResult(call.id, call.name, draw(user_parts), stand_in or draw(st.booleans()), stand_in)


@st.composite
def units(draw: st.DrawFn, ids: list[str]) -> list[Message]:
    """What is sent in one piece: a user's message, a patch, a closing reply, or a reply with all its results."""
    kind = draw(st.sampled_from(["user", "step", "step", "reply", "patch"]))
    if kind == "user":
        return [draw(user_messages)]
    if kind == "patch":
        return [draw(patches)]
    reply = draw(replies(draw(st.integers(1, 3)) if kind == "step" else 0, ids))
    return [reply, *(draw(results(call)) for call in reply.calls)]


@st.composite
def unit_lists(draw: st.DrawFn, max_size: int = 8) -> list[list[Message]]:
    """A legal history as the pieces it is sent in. May start with anything and end with anything."""
    ids = [f"call{number:05d}" for number in range(3 * max_size)]  # nine letters and digits: legal everywhere
    return [draw(units(ids)) for _ in range(draw(st.integers(0, max_size)))]


@st.composite
def histories(draw: st.DrawFn, max_size: int = 8) -> Messages:
    """A legal history that asks for a reply: it ends with a user's message, a patch or a step's results."""
    pieces = draw(unit_lists(max_size))
    messages = tuple(message for piece in pieces for message in piece)
    if not messages or isinstance(messages[-1], AssistantMessage):
        messages += (draw(user_messages),)
    return messages
