"""What hosts differ in is data: limits of images, schemas, levels of thinking, signatures."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, ToolSpec, UserMessage
from governors.wire import WIRES
from governors.wire.base import Abilities
from governors.wire.references import MOST_WRITTEN, has_references, inlined

HI = UserMessage((Text("hi"),))
LIMITED = Abilities(images=True, max_image_pixels=2_000, max_image_bytes=8)


def texts(name: str, image: Image, abilities: Abilities = LIMITED) -> str:
    parts = WIRES[name].encode((UserMessage((image,)),), system="", tools=(), abilities=abilities)
    return str(parts[WIRES[name].stepwise.part][0]["content"])


@pytest.mark.parametrize("name", WIRES)
def test_an_image_over_a_limit_becomes_a_constant_text(name: str) -> None:
    """The longer side and the base64 text are limited; the text says what was there, and no limit."""
    left_out = "[image left out, as it is too large: image/png, "
    assert left_out + "2001 x 5 pixels, 4 bytes]" in texts(name, Image("image/png", "AAAA", 2_001, 5))
    assert left_out + "12 bytes]" in texts(name, Image("image/png", "A" * 12))
    assert left_out + "4 bytes]" in texts(name, Image("image/png", "AAAA", None, 2_001))
    for fits in (Image("image/png", "A" * 8, 2_000, 2_000), Image("image/png", "AAAA", None, None)):
        assert fits.data in texts(name, fits) and "left out" not in texts(name, fits)
        assert "takes no image/png" in texts(name, fits, Abilities(images=False))


@pytest.mark.parametrize("name", WIRES)
def test_an_image_in_a_result_has_the_same_limits(name: str) -> None:
    """Also in an error, where images move elsewhere; and another limit is another encoding of the same message."""
    wire = WIRES[name]
    result = ToolResult("a", "t", (Text("x"), Image("image/png", "A" * 12)), is_error=True)
    messages = (HI, AssistantMessage((ToolCall("a", "t"),), "tool_use"), result)
    for abilities, shown in ((LIMITED, False), (Abilities(images=True), True), (LIMITED, False)):
        parts = wire.encode(messages, system="", tools=(), abilities=abilities)
        assert ("A" * 12 in str(parts)) is shown
        assert wire.check(parts, abilities) == ()


def test_references_are_written_out() -> None:
    """Definitions take the place of what names them; a definition in itself, or of nothing, allows any value."""
    schema = {
        "$defs": {"X": {"type": "string"}, "Tree": {"properties": {"left": {"$ref": "#/$defs/Tree"}}}, "a/b": True},
        "definitions": {"Y": {"$ref": "#/$defs/X"}},
        "properties": {
            "x": {"$ref": "#/$defs/X", "description": "kept"},
            "y": {"anyOf": [{"$ref": "#/definitions/Y"}, {"type": "null"}]},
            "tree": {"$ref": "#/$defs/Tree"},
            "odd": {"$ref": "https://example.com/schema"},
            "none": {"$ref": "#/$defs/X/type/deeper"},
            "true": {"$ref": "#/$defs/a~1b"},
            "$ref": {"type": "string"},
            "$defs": {"type": "object"},
        },
    }
    assert inlined(schema) == {
        "properties": {
            "x": {"type": "string", "description": "kept"},
            "y": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tree": {"properties": {"left": {}}},
            "odd": {},
            "none": {},
            "true": {},
            "$ref": {"type": "string"},
            "$defs": {"type": "object"},
        }
    }
    assert has_references(schema) and not has_references(inlined(schema))
    assert not has_references({"properties": {"$ref": {"type": "string"}}})


def test_definitions_that_multiply_end() -> None:
    """Thirty definitions that name the next one twice are not a billion."""
    definitions: dict[str, Any] = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(30)
    }
    written = str(inlined({"$ref": "#/$defs/d0", "$defs": definitions}))
    assert written.count("anyOf") <= MOST_WRITTEN and not has_references(written)


@pytest.mark.parametrize("name", WIRES)
def test_schemas_are_inlined_where_the_host_follows_no_reference(name: str) -> None:
    """Elsewhere they stay as the tool gave them."""
    tool = ToolSpec("t", "d", {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}})
    for follows in (True, False):
        abilities = Abilities(schema_references=follows)
        parts = WIRES[name].encode((HI,), system="", tools=[tool], abilities=abilities)
        assert ("$defs" in str(parts["tools"])) is follows


@pytest.mark.parametrize(
    ("efforts", "level", "word"),
    [
        (("none", "low", "high"), "off", "none"),
        (("low", "high"), "off", None),
        (("low", "high", "max"), "medium", "high"),
        (("low", "high"), "max", "high"),
        (("minimal", "low"), "low", "low"),
        (("high", "xhigh"), "low", "high"),
        ((), "low", None),
        (["low"], "low", "low"),
    ],
)
def test_a_level_becomes_the_nearest_word_that_the_model_takes(efforts: Any, level: str, word: str | None) -> None:
    """Up before down; off is said where it can be, and is the least that there is on the Responses wire."""
    abilities = Abilities(thinking="effort", efforts=efforts)
    chat = WIRES["openai_chat"].body({"messages": []}, model="m", max_output=9, abilities=abilities, thinking=level)
    assert chat.get("reasoning_effort") == word
    other = WIRES["openai_responses"].body({"input": []}, model="m", max_output=9, abilities=abilities, thinking=level)
    least = next(iter(efforts), None) if level == "off" else word
    assert other.get("reasoning", {}).get("effort") == least
    assert hash(abilities) == hash(Abilities(thinking="effort", efforts=tuple(efforts)))


@pytest.mark.parametrize(
    ("able", "level", "fields"),
    [
        ({}, "off", {"thinking": {"type": "disabled"}}),
        ({}, "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ({"efforts": ()}, "low", {"thinking": {"type": "enabled"}}),
        ({"keeps_thinking": True}, "off", {"thinking": {"type": "disabled"}}),
        (
            {"keeps_thinking": True, "efforts": ("high",)},
            "low",
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "high"},
        ),
    ],
)
def test_hosts_with_a_thinking_field(able: dict[str, Any], level: str, fields: dict[str, Any]) -> None:
    """Thinking is switched there, and replayed reasoning kept where it would else be thrown away."""
    abilities = Abilities(thinking="effort", thinking_field=True, **able)
    body = WIRES["openai_chat"].body({"messages": []}, model="m", max_output=9, abilities=abilities, thinking=level)
    assert {key: body[key] for key in ("thinking", "reasoning_effort") if key in body} == fields
    assert WIRES["openai_chat"].check({**body, "messages": [{"role": "user", "content": "x"}]}, abilities) == ()


def signatures(reply: AssistantMessage) -> list[Any]:
    wire = WIRES["openai_chat"]
    parts = wire.encode((HI, reply), system="", tools=(), abilities=Abilities(call_signatures=True), model="m")
    return [call.get("extra_content") for call in parts["messages"][1]["tool_calls"]]


def test_a_calls_signature_goes_back_to_the_model_that_gave_it() -> None:
    """The first call of a reply always has one: its own, or the word that stands for none (G2)."""
    signed, bare = ToolCall("a", "t", signature="s"), ToolCall("b", "t")

    def extra(signature: str) -> dict[str, Any]:
        return {"google": {"thought_signature": signature}}

    ours: dict[str, Any] = {"model": "m", "wire": "openai_chat"}
    none = extra("skip_thought_signature_validator")
    assert signatures(AssistantMessage((signed, bare), **ours)) == [extra("s"), None]
    assert signatures(AssistantMessage((bare, signed), **ours)) == [none, extra("s")]
    assert signatures(AssistantMessage((signed, bare))) == [none, None]
    assert signatures(AssistantMessage((ToolCall("a", "t", signature="\udc00"),), **ours)) == [none]
    encoded = WIRES["openai_chat"].encode((HI, AssistantMessage((signed,))), system="", tools=(), abilities=Abilities())
    assert "extra_content" not in str(encoded)


def test_a_calls_signature_is_read_back() -> None:
    """The word that stands for none is none; what is no signature is none."""
    for extra, signature in (
        ({"google": {"thought_signature": "s"}}, "s"),
        ({"google": {"thought_signature": "skip_thought_signature_validator"}}, None),
        ({"google": {"thought_signature": 7}}, None),
        ({"google": 7}, None),
        (7, None),
    ):
        call = {"id": "a", "function": {"name": "t", "arguments": "{}"}, "extra_content": extra}
        read = WIRES["openai_chat"].decode([{"role": "assistant", "tool_calls": [call]}]).messages[0]
        assert isinstance(read, AssistantMessage) and read.calls[0].signature == signature


def test_thinking_without_signature_goes_where_there_are_none() -> None:
    """Such a host gets its own thinking back, and none that is signed: that came from elsewhere."""
    abilities = Abilities(unsigned_thinking=True)
    parts = (Thinking("mine"), Thinking("", None), Thinking("signed", "s"), Thinking("\udc00"), Text("x"))
    reply = AssistantMessage(parts, "stop", "m", "anthropic")
    encoded = WIRES["anthropic"].encode((HI, reply), system="", tools=(), abilities=abilities, model="m")
    assert encoded["messages"][1]["content"][:-1] == [{"type": "thinking", "thinking": "mine"}]
    assert WIRES["anthropic"].encode((HI, reply), system="", tools=(), abilities=Abilities(), model="m")["messages"][1][
        "content"
    ][0] == {"type": "thinking", "thinking": "signed", "signature": "s"}


def test_a_schema_that_is_too_deep_ends_in_null() -> None:
    """JSON parsers give up at some depth; what lies below it is not sent."""
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"items": deep}
    parts = WIRES["anthropic"].encode((HI,), system="", tools=[ToolSpec("t", "d", deep)], abilities=Abilities())
    assert str(parts["tools"]).count("items") == 101 and "None" in str(parts["tools"])
    assert WIRES["anthropic"].check(parts, Abilities()) == ()


def test_marks_on_blocks_in_a_result_are_no_part_of_the_prefix() -> None:
    """A mark may stand on a block inside a result; the prefix is the same without it."""

    def body(**mark: Any) -> dict[str, Any]:
        inner = [{"type": "text", "text": "x", **mark}, "odd"]
        result = {"type": "tool_result", "tool_use_id": "a", "content": inner, **mark}
        return {"messages": [{"role": "user", "content": [result]}]}

    wire = WIRES["anthropic"]
    marked = body(cache_control={"type": "ephemeral"})
    assert wire.prefix_blocks(marked) == wire.prefix_blocks(body())
    assert wire.mark_cache(marked) is marked


def test_content_that_is_null_is_read_as_none() -> None:
    """A result and a message without content keep their places; text after a label that no image follows stays."""
    call = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "is_error": True}
    label = {"type": "text", "text": "[image from t, call a]"}
    read = WIRES["anthropic"].decode(
        [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, label, label]},
            {"role": "user", "content": None},
        ]
    )
    assert read.messages[1:] == (
        ToolResult("a", "t", (), is_error=True),
        UserMessage((Text(label["text"]), Text(label["text"]))),
        UserMessage(()),
    )
