"""An `Encoder`, message by message, gives what the wire gives for the whole list."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Message, Messages, Text, ToolCall, ToolResult, ToolSpec, UserMessage
from governors.wire import WIRES, Encoder, encode_bytes
from governors.wire.base import Abilities
from governors.wire.encoded import Encoded, dump_bytes
from governors.wire.protocol import Wire
from tests.strategies import histories, images, patches, replies, texts, tool_specs, unit_lists, user_messages

from .wire_cases import CASES, MODELS

HI = UserMessage((Text("hi"),))
levels = st.sampled_from([None, "off", "low", "max"])


@st.composite
def faulty(draw: st.DrawFn) -> Messages:
    """Messages that no repair has seen: results without calls, calls without results, ids twice, nothing at all."""
    ids = st.sampled_from(["a", "b", "c c", ""])
    found = st.builds(ToolResult, ids, st.just("t"), st.tuples(texts.map(Text) | images) | st.just(()), st.booleans())
    call = st.builds(ToolCall, ids, st.sampled_from(["t", ""]), st.sampled_from(["{}", "[]"]), st.booleans())
    calling = st.builds(
        lambda calls: AssistantMessage(tuple(calls), "tool_use"), st.lists(call, min_size=1, max_size=3)
    )
    plain = replies(0, [])
    return tuple(draw(st.lists(st.one_of(user_messages, patches, plain, calling, found, found), max_size=9)))


def whole(wire: Wire, messages: Messages, lead: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    parts = wire.encode(messages, **lead, abilities=rest["abilities"], model=rest["model"])
    return wire.body(parts, **rest)


@settings(deadline=None)
@given(
    st.data(),
    histories(10) | faulty(),
    st.sampled_from(CASES),
    st.sampled_from(MODELS[1:]),
    st.one_of(st.just(""), texts),
    tool_specs,
    levels,
)
def test_an_encoder_gives_what_the_wire_gives_for_the_whole_list(
    data: st.DataObject,
    messages: Messages,
    case: tuple[str, Abilities],
    model: str,
    system: str,
    tools: list[ToolSpec],
    thinking: str | None,
) -> None:
    """Bytes, prefix, blocks and violations are equal, wherever the messages are cut, also in the middle of a step."""
    wire, abilities = WIRES[case[0]], case[1]
    lead: dict[str, Any] = {"system": system, "tools": tools}
    rest: dict[str, Any] = {"model": model, "max_output": 3_000, "abilities": abilities, "thinking": thinking}
    encoder = Encoder(wire, **lead, **rest)
    left: list[Message] = list(messages)
    given_so_far = 0
    while True:
        body = whole(wire, messages[:given_so_far], lead, rest)
        marked = wire.mark_cache(body)
        assert encoder.to_bytes() == dump_bytes(marked)
        assert json.loads(encoder.to_bytes()) == encoder.body() == marked
        assert (encoder.prefix, encoder.blocks) == (wire.prefix_hash(body), len(wire.prefix_blocks(body)))
        assert encoder.violations() == wire.check(body, abilities)
        assert wire.check(marked, abilities) == wire.check(body, abilities)
        if given_so_far == len(messages):
            break
        step = data.draw(st.integers(1, 4))
        encoder.append(left[given_so_far : given_so_far + step])
        given_so_far = min(given_so_far + step, len(messages))
    assert encode_bytes(copy.deepcopy(messages), wire=wire, **lead, **rest) == encoder.to_bytes()


@settings(max_examples=50, deadline=None)
@given(unit_lists(6), st.sampled_from(CASES))
def test_the_prefix_is_known_at_every_block(units: list[list[Message]], case: tuple[str, Abilities]) -> None:
    """The hash over the first blocks is what the shorter request's was; beyond the last there is none."""
    encoder = Encoder(WIRES[case[0]], system="s", tools=(), abilities=case[1], model="m", max_output=99)
    seen = {0: "", encoder.blocks: encoder.prefix}
    for unit in units:
        encoder.append(unit)
        seen[encoder.blocks] = encoder.prefix
    assert {blocks: encoder.prefix_at(blocks) for blocks in seen} == seen
    with pytest.raises(IndexError):
        encoder.prefix_at(encoder.blocks + 1)


@pytest.mark.parametrize("name", WIRES)
def test_a_long_conversation_is_marked_as_the_whole_list_is(name: str) -> None:
    """Also where marks reach back further than an encoder first looks."""
    wire = WIRES[name]
    lead: dict[str, Any] = {"system": "s", "tools": [ToolSpec("t", "d", {})]}
    rest: dict[str, Any] = {"model": "m", "max_output": 99, "abilities": Abilities()}
    many = UserMessage(tuple(Text(f"{number}") for number in range(7)))
    call = AssistantMessage(tuple(ToolCall(f"{number}", "t") for number in range(30)), "tool_use")
    step = tuple(ToolResult(f"{number}", "t", (Text("x"),)) for number in range(30))
    encoder = Encoder(wire, **lead, **rest)
    messages: Messages = ()
    for piece in ((many,) * 20, (call, *step), (HI,) * 200):
        encoder.append(piece)
        messages += piece
        assert encoder.to_bytes() == dump_bytes(wire.mark_cache(whole(wire, messages, lead, rest)))


def test_each_message_is_written_once() -> None:
    """The bytes of a message are the same object in every later request."""
    wire = WIRES["anthropic"]
    encoder = Encoder(wire, system="", tools=(), abilities=Abilities(), model="m", max_output=9)
    encoder.append([HI])
    first = encoder.body()["messages"][0]
    encoder.append([HI] * 100)
    kept = wire.encode((HI,), system="", tools=(), abilities=Abilities())["messages"][0]
    assert (
        isinstance(kept, Encoded) and kept.raw is kept.raw and first["content"][0].items() >= kept["content"][0].items()
    )
    assert encoder.body()["messages"][0] is kept


def test_what_cannot_be_sent_is_no_bytes() -> None:
    """A model name with a lone surrogate is refused by the checker, and raises when it is written."""
    encoder = Encoder(WIRES["anthropic"], system="", tools=(), abilities=Abilities(), model="\udc00", max_output=9)
    encoder.append([HI])
    assert {violation.rule for violation in WIRES["anthropic"].check(encoder.body(), Abilities())} == {"C1"}
    with pytest.raises(ValueError, match="surrogates not allowed"):
        encoder.to_bytes()
    with pytest.raises(ValueError, match="huge"):
        Encoder(
            WIRES["openai_chat"],
            system="",
            tools=(),
            abilities=Abilities(),
            model="m",
            max_output=9,
            thinking="huge",
        )


@pytest.mark.parametrize("name", WIRES)
def test_a_fork_of_a_check_keeps_to_itself(name: str) -> None:
    """What one copy is fed with does not reach the other."""
    way = WIRES[name].stepwise
    encode = WIRES[name].encode
    call = AssistantMessage((ToolCall("a", "t"),), "tool_use")
    items = encode((HI, call, ToolResult("a", "t", (Text("x"),))), system="", tools=(), abilities=Abilities())[way.part]
    rules = way.rules({}, Abilities())
    for item in items[:2]:
        rules.feed(item)
    for _ in range(2):
        forked = rules.fork()
        forked.feed(items[2])
        assert forked.violations() == ()
    assert rules.violations() != ()


def test_the_head_follows_how_the_messages_end() -> None:
    """A budget for thinking is left out while a step is open whose reply has none, and comes back after it."""
    abilities = Abilities(thinking="budget")
    rest: dict[str, Any] = {"model": "m", "max_output": 9_000, "abilities": abilities, "thinking": "low"}
    encoder = Encoder(WIRES["anthropic"], system="s", tools=(), **rest)
    call = AssistantMessage((ToolCall("a", "t"),), "tool_use")
    for messages, thinks in (([HI], True), ([call, ToolResult("a", "t", (Text("x"),))], False), ([HI], True)):
        encoder.append(messages)
        assert (b'"thinking":' in encoder.to_bytes()) is thinks
        assert encoder.violations() == ()


@pytest.mark.parametrize(("name", "ttl"), [("anthropic", "1h"), ("anthropic", "5m"), ("openai_responses", "12h")])
def test_a_longer_life_is_asked_for_by_the_marks(name: str, ttl: str) -> None:
    """Bytes and body have the lifetime that is asked for, one after another, and are legal."""
    wire = WIRES[name]
    lead: dict[str, Any] = {"system": "s", "tools": [ToolSpec("t", "d", {})]}
    rest: dict[str, Any] = {"model": "m", "max_output": 99, "abilities": Abilities()}
    encoder = Encoder(wire, **lead, **rest)
    encoder.append([HI] * 70)
    body = whole(wire, (HI,) * 70, lead, rest)
    for each in (None, ttl, None):
        marked = wire.mark_cache(body, each)
        assert encoder.to_bytes(each) == dump_bytes(marked) and encoder.body(each) == marked
        assert wire.check(marked, Abilities()) == ()
        assert (f'"ttl":"{ttl}"'.encode() in encoder.to_bytes(each)) is (each is not None and ttl != "5m")
