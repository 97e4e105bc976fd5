"""What each kind of message looks like on the Responses wire, and how foreign payloads are read from it."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.wire import WIRES
from governors.wire.base import Abilities, CannotDecode

WIRE = WIRES["openai_responses"]
SEES = Abilities(images=True)
PICTURE = Image("image/png", "AA==")
SHOWN = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="}
HI = UserMessage((Text("hi"),))
GREETING = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}


def items(*messages: Message, abilities: Abilities = SEES, model: str | None = "m") -> list[Any]:
    encoded: list[Any] = WIRE.encode(messages, system="", tools=(), abilities=abilities, model=model)["input"]
    return encoded


def reply(*parts: AssistantPart, model: str = "m", wire: str = "openai_responses") -> AssistantMessage:
    return AssistantMessage(parts, "stop", model, wire)


def reasoning(encrypted: str, *summary: str) -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "summary": texts, "encrypted_content": encrypted}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def called(identity: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": identity, "name": "t", "arguments": "{}"}


def output(result: ToolResult) -> Any:
    return items(HI, reply(ToolCall("a", "t")), result)[-1]["output"]


def test_a_step_is_items_in_the_replys_own_order() -> None:
    """Reasoning stands before what followed it; outputs come after, in call order; nothing has an id."""
    parts = (Thinking("", "r1"), ToolCall("a", "t"), Thinking("so", "r2"), Text("look"), ToolCall("b", "t"))
    results = (ToolResult("a", "t", (Text("x"),)), ToolResult("b", "t", (Text("y"), PICTURE)))
    assert items(HI, reply(*parts), *results) == [
        GREETING,
        reasoning("r1"),
        called("a"),
        reasoning("r2", "so"),
        said("look"),
        called("b"),
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "y"}, SHOWN]},
    ]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((Thinking("hm", "r"),), []),
        ((Thinking("hm", "r"), Text(" ")), []),
        ((Text("x"), Thinking("hm", "r")), [said("x")]),
        ((Thinking("hm", "r"), ToolCall("a", "t", "{", complete=False), Text("x")), [said("x")]),
        ((Thinking("hm"), Text("x")), [said("x")]),
        ((Thinking("one"), Thinking("two", "r"), Text("x")), [reasoning("r", "one", "two"), said("x")]),
        ((Thinking("one"), Text("x"), Thinking("", "r"), Text("y")), [said("x"), reasoning("r"), said("y")]),
        ((Thinking("\ud83d", "r"), Text("x")), [said("x")]),
        ((Thinking("", "\ud83d"), Text("x")), [said("x")]),
    ],
)
def test_fault_28_reasoning_never_goes_without_the_item_that_followed_it(
    parts: tuple[AssistantPart, ...], expected: list[Any]
) -> None:
    """At the end, before a call that is not sent, unsigned or unclean: it is left out; a summary stays whole."""
    assert items(HI, reply(*parts))[1:] == expected


def test_reasoning_goes_back_only_to_the_model_that_gave_it() -> None:
    """Another model's or another wire's is left out (C7)."""
    parts = (Thinking("", "r"), Text("x"))
    assert len(items(reply(*parts))) == len(items(reply(*parts, model="other"), model=None)) == 2
    assert len(items(reply(*parts, model="other"))) == len(items(reply(*parts, wire="anthropic"))) == 1


@pytest.mark.parametrize(
    ("content", "is_error", "stand_in", "expected"),
    [
        ((Text("boom"),), True, False, "error: boom"),
        ((Text("boom"),), False, False, "boom"),
        ((Text("Error: boom"),), True, False, "Error: boom"),
        ((Text("outcome unknown"),), True, True, "outcome unknown"),
        ((Text(" "),), True, False, "error: (no output)"),
        ((Text("a"), Text("b")), False, False, "a\n\nb"),
        ((PICTURE,), True, False, [{"type": "input_text", "text": "error:"}, SHOWN]),
        ((Text("error"), PICTURE), True, False, [{"type": "input_text", "text": "error"}, SHOWN]),
    ],
)
def test_an_output_is_one_text_or_a_list_with_images(
    content: tuple[Any, ...], is_error: bool, stand_in: bool, expected: Any
) -> None:
    """The protocol has no flag for errors: the text is marked, once, and a stand-in says it itself."""
    assert output(ToolResult("a", "t", content, is_error, stand_in)) == expected


def test_a_system_patch_is_a_developer_message_where_the_host_takes_one_anywhere() -> None:
    """Elsewhere it is a tagged message of the user's; an empty one is always tagged."""
    patch = SystemPatch("Be brief.")
    tagged = "<system-update>\nBe brief.\n</system-update>"
    for abilities, role, text in (
        (Abilities(), "user", tagged),
        (Abilities(system_anywhere=True), "system", "Be brief."),
        (Abilities(system_anywhere=True, developer_role=True), "developer", "Be brief."),
    ):
        (item,) = items(patch, abilities=abilities)
        assert (item["role"], item["content"][0]["text"]) == (role, text)
    assert (
        "<system-update>" in items(SystemPatch(" "), abilities=Abilities(system_anywhere=True))[0]["content"][0]["text"]
    )


def body(thinking: str | None = None, max_output: int = 99) -> dict[str, Any]:
    parts = WIRE.encode((HI,), system="s", tools=[ToolSpec("t", "d", {})], abilities=Abilities())
    return WIRE.body(parts, model="m", max_output=max_output, abilities=Abilities(), thinking=thinking)


def test_nothing_is_stored_and_reasoning_comes_encrypted() -> None:
    """The fields stand in one order; models that do not reason are not asked for reasoning; 16 tokens at least."""
    plain = body("high", max_output=3)
    assert list(plain) == ["model", "max_output_tokens", "store", "instructions", "tools", "input"]
    assert (plain["max_output_tokens"], plain["store"], plain["instructions"]) == (16, False, "s")
    assert plain["tools"][0] | {"parameters": None} == {
        "type": "function",
        "name": "t",
        "description": "d",
        "parameters": None,
        "strict": False,
    }
    able = Abilities(thinking="effort")
    thinks = WIRE.body({"input": [GREETING]}, model="m", max_output=99, abilities=able, thinking="high")
    assert thinks["include"] == ["reasoning.encrypted_content"] and thinks["reasoning"] == {"effort": "high"}
    assert "instructions" not in thinks and "tools" not in thinks
    assert "reasoning" not in WIRE.body({"input": []}, model="m", max_output=99, abilities=able)


def test_the_cache_key_is_of_what_stands_before_the_items() -> None:
    """Equal instructions, tools and format give equal keys, whatever the conversation."""
    one, same = WIRE.mark_cache(body()), WIRE.mark_cache({**body(), "input": []})
    assert one["prompt_cache_key"] == same["prompt_cache_key"] and list(one)[-1] == "input"
    formatted = WIRE.mark_cache({**body(), "text": {"format": {"type": "json_object"}}})
    assert formatted["prompt_cache_key"] != one["prompt_cache_key"]
    long = WIRE.mark_cache(body(), ttl="12h")
    assert long["prompt_cache_options"] == {"ttl": "12h"} and "prompt_cache_options" not in one
    assert "input" not in WIRE.mark_cache({})
    assert WIRE.prefix_hash({"input": "hi"}) == WIRE.prefix_hash({"input": [{"role": "user", "content": "hi"}]})


def test_foreign_payloads_are_read_as_they_stand() -> None:
    """Short forms, faulty calls, refusals, several summaries and outputs keep their order and their faults."""
    read = WIRE.decode(
        {
            "model": "m",
            "input": [
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": "hi"},
                {"type": "reasoning", "summary": [{"text": "one"}, {"text": "two"}, 7], "encrypted_content": "r"},
                {"type": "reasoning", "summary": "odd"},
                {"type": "function_call", "arguments": None},
                {"type": "function_call", "call_id": "b", "name": "t", "arguments": {"a": 1}},
                {
                    "type": "function_call_output",
                    "call_id": "b",
                    "output": [{"type": "input_text", "text": "x"}, SHOWN],
                },
                {"type": "function_call_output", "name": "other"},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "output_text"}]},
                {"role": "system", "content": [{"type": "text", "text": "now"}]},
            ],
        }
    )
    thought = (Thinking("one"), Thinking("two", "r"), Thinking(""))
    calls = (ToolCall("", "", "null", complete=False), ToolCall("b", "t", '{"a": 1}'))
    assert read.system == "be kind"
    assert read.messages == (
        HI,
        AssistantMessage((*thought, *calls), "tool_use", "m", "openai_responses"),
        ToolResult("b", "t", (Text("x"), PICTURE)),
        ToolResult("", "other", ()),
        AssistantMessage((Text("no"), Text("")), "stop", "m", "openai_responses"),
        SystemPatch("now"),
    )
    assert WIRE.decode({"instructions": "s", "input": "hi"}).messages == (HI,)
    kept = WIRE.decode({"instructions": "s", "input": [{"role": "system", "content": "now"}]})
    assert (kept.system, kept.messages) == ("s", (SystemPatch("now"),))


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([7], "input[0]"),
        ([{"type": "web_search_call"}], "input[0]"),
        ([{"role": "tool", "content": "x"}], "input[0].role"),
        ([{"role": "user", "content": 7}], "input[0].content"),
        ([{"role": "user", "content": [7]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_file"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}], "input[0].content[0]"),
        ([{"role": "system", "content": [SHOWN]}], "input[0].content"),
        ([{"role": "assistant", "content": [SHOWN]}], "input[0].content"),
    ],
)
def test_what_has_no_place_in_the_model_is_refused_by_name(given: list[Any], place: str) -> None:
    """Nothing is dropped in silence: the error says where it stands."""
    with pytest.raises(CannotDecode) as refusal:
        WIRE.decode(given)
    assert str(refusal.value).startswith(place)
