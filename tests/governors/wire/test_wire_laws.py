"""Laws that hold on every wire, over random legal histories."""

from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.messages import (
    AssistantMessage,
    Messages,
    SystemPatch,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.repair import repair
from governors.wire import WIRES
from governors.wire.base import Abilities
from tests.strategies import histories, texts, tool_specs, unit_lists

from .wire_cases import CASES, MODELS

cases = st.sampled_from(CASES)
models = st.sampled_from(MODELS)
systems = st.one_of(st.just(""), texts)
levels = st.sampled_from([None, "off", "low", "medium", "high", "max"])


def flat(units: list[Messages]) -> Messages:
    return tuple(message for unit in units for message in unit)


@settings(deadline=None)
@given(histories(), cases, models, systems, tool_specs, levels)
def test_legal_histories_are_encoded_to_legal_requests(
    messages: Messages,
    case: tuple[str, Abilities],
    model: str | None,
    system: str,
    tools: list[ToolSpec],
    thinking: str | None,
) -> None:
    """No rule is broken by what a repaired history is encoded to, alone, in a body, or with cache marks."""
    name, abilities = case
    wire = WIRES[name]
    parts = wire.encode(messages, system=system, tools=tools, abilities=abilities, model=model)
    body = wire.body(parts, model=model or "m", max_output=4096, abilities=abilities, thinking=thinking)
    for payload in (parts, body, wire.mark_cache(body)):
        assert wire.check(payload, abilities) == ()
        json.dumps(payload, allow_nan=False).encode()


@settings(deadline=None)
@given(st.data(), unit_lists(), cases, models, systems)
def test_a_longer_history_extends_the_request_of_a_shorter_one(
    data: st.DataObject, units: list[Messages], case: tuple[str, Abilities], model: str | None, system: str
) -> None:
    """Appending messages never changes what was encoded before them, block by block, whoever writes next."""
    name, abilities = case
    wire = WIRES[name]
    cut = data.draw(st.integers(0, len(units)))
    short, long = (
        wire.encode(flat(part), system=system, tools=(), abilities=abilities, model=model)
        for part in (units[:cut], units)
    )
    before, after = wire.prefix_blocks(short), wire.prefix_blocks(long)
    assert after[: len(before)] == before
    part = wire.stepwise.part
    if not abilities.strict_alternation:
        assert long[part][: len(short[part])] == short[part]
    if json.dumps(short) != json.dumps(long):
        assert wire.prefix_hash(short) != wire.prefix_hash(long)


@settings(deadline=None)
@given(unit_lists(), cases, models, systems)
def test_encoding_is_the_same_from_memory_and_anew(
    units: list[Messages], case: tuple[str, Abilities], model: str | None, system: str
) -> None:
    """What is kept with messages from other wires, models and abilities never leaks into an encoding."""
    name, abilities = case
    messages = flat(units)
    fresh = copy.deepcopy(messages)
    for other, others in CASES:
        for author in MODELS:
            WIRES[other].encode(messages, system=system, tools=(), abilities=others, model=author)
    encode = WIRES[name].encode
    kept = encode(messages, system=system, tools=(), abilities=abilities, model=model)
    anew = encode(fresh, system=system, tools=(), abilities=abilities, model=model)
    assert json.dumps(kept) == json.dumps(anew)


@settings(deadline=None)
@given(unit_lists(), cases, models, systems)
def test_decoding_gives_back_what_was_encoded(
    units: list[Messages], case: tuple[str, Abilities], model: str | None, system: str
) -> None:
    """Decode, then encode, is the same payload, byte for byte, from the parts and from a marked body."""
    name, abilities = case
    wire = WIRES[name]
    if name == "openai_responses" and not system and units and isinstance(units[0][0], SystemPatch):
        system = "s"  # without one, a patch that leads is read as the instructions
    parts = wire.encode(flat(units), system=system, tools=(), abilities=abilities, model=model)
    body = wire.body(parts, model=model or "m", max_output=9, abilities=abilities)
    for payload, author in ((parts, None), (body, model or "m"), (wire.mark_cache(body), model or "m")):
        read = wire.decode(payload)
        again = wire.encode(read.messages, system=read.system, tools=(), abilities=abilities, model=author)
        assert json.dumps(again) == json.dumps(parts)


@settings(deadline=None)
@given(histories(), cases)
def test_what_was_encoded_is_nothing_to_repair(messages: Messages, case: tuple[str, Abilities]) -> None:
    """A legal history, encoded and decoded, comes through the repairs as the same object."""
    name, abilities = case
    wire = WIRES[name]
    read = wire.decode(wire.encode(messages, system="", tools=(), abilities=abilities)).messages
    assert repair(read, id_pattern=abilities.id_pattern) is read


@settings(deadline=None)
@given(histories(), cases, systems, tool_specs)
def test_cache_marks_change_nothing_but_themselves(
    messages: Messages, case: tuple[str, Abilities], system: str, tools: list[ToolSpec]
) -> None:
    """Marking leaves the body as it was, is done once, and is no part of the prefix."""
    name, abilities = case
    wire = WIRES[name]
    parts = wire.encode(messages, system=system, tools=tools, abilities=abilities)
    body = wire.body(parts, model="m", max_output=9, abilities=abilities)
    before = json.dumps(body)
    marked = wire.mark_cache(body)
    assert json.dumps(body) == before
    assert wire.mark_cache(marked) is marked
    assert wire.prefix_blocks(marked) == wire.prefix_blocks(body)
    assert json.dumps(wire.encode(messages, system=system, tools=tools, abilities=abilities)) == json.dumps(parts)


keys = st.sampled_from(
    re.findall(
        r"\w+",
        """system tools messages role content type text id name input tool_use_id is_error thinking signature data
        input call_id output summary encrypted_content store previous_response_id max_output_tokens reasoning effort
        prompt_cache_breakpoint compaction max_tokens tool_name extra_content
        cache_control ttl tool_calls tool_call_id function arguments reasoning_content tool_choice budget_tokens
        max_tokens temperature defer_loading clear_at input_schema source""",
    )
)
words = st.sampled_from(
    re.findall(
        r"\w+",
        """user assistant system developer tool text thinking redacted_thinking tool_use tool_result tool_reference
        message function_call function_call_output compaction compaction_trigger input_text input_image
        image enabled adaptive ephemeral any 1h function image_url""",
    )
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(st.characters(), max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=30,
)
turns = st.lists(
    st.fixed_dictionaries(
        {
            "role": words,
            "content": anything
            | st.lists(
                st.fixed_dictionaries(
                    {"type": words},
                    optional={
                        "id": words,
                        "content": anything,
                        "text": anything,
                        "input": anything,
                        "tool_use_id": words,
                    },
                )
            ),
        },
        optional={"tool_calls": anything, "tool_call_id": anything, "clear_at": anything},
    ),
    max_size=4,
)
payloads = anything | st.fixed_dictionaries(
    {"messages": anything | turns, "input": anything | turns},
    optional={
        "system": anything,
        "tools": anything,
        "thinking": anything,
        "tool_choice": anything,
        "cache_control": anything,
        "max_tokens": anything,
    },
)


@settings(deadline=None)
@given(payloads, cases)
def test_checking_never_raises(payload: object, case: tuple[str, Abilities]) -> None:
    """Any JSON at all gets an answer, and what is no request gets violations."""
    name, abilities = case
    violations = WIRES[name].check(payload, abilities)
    if not isinstance(payload, dict) or not payload.get(WIRES[name].stepwise.part):
        assert violations
    assert all(violation.rule and violation.where and violation.severity in ("E", "S", "$") for violation in violations)


@settings(deadline=None)
@given(payloads, cases)
def test_prefix_and_marks_take_any_body(payload: object, case: tuple[str, Abilities]) -> None:
    """A body of any shape with lists in their places can be hashed and marked, or comes back as it is."""
    if isinstance(payload, dict) and all(
        isinstance(payload.get(key) or [], list) for key in ("tools", "messages", "input")
    ):
        wire = WIRES[case[0]]
        assert len(wire.prefix_hash(payload)) == (64 if wire.prefix_blocks(payload) else 0)
        wire.mark_cache(payload)


@pytest.mark.parametrize("name", WIRES)
def test_a_step_grows_into_no_other(name: str) -> None:
    """A step with one replaced result is encoded anew, though its first result is the same object."""
    reply = AssistantMessage((ToolCall("a", "x"), ToolCall("b", "x")))
    first, second = ToolResult("a", "x", (Text("one"),)), ToolResult("b", "x", (Text("two"),))
    start = (UserMessage((Text("go"),)), reply, first)
    encoded = [
        json.dumps(WIRES[name].encode((*start, last), system="", tools=(), abilities=Abilities()))
        for last in (second, ToolResult("b", "x", (Text("stub"),)), second)
    ]
    assert encoded[0] == encoded[2]
    assert "stub" in encoded[1] and "two" not in encoded[1]
