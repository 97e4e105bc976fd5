"""What each kind of message looks like on each wire."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import (
    AssistantMessage,
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
from governors.wire.base import Abilities

ANTHROPIC, CHAT = WIRES["anthropic"], WIRES["openai_chat"]
SEES = Abilities(images=True)
PICTURE = Image("image/png", "AA==")
HI = UserMessage((Text("hi"),))
CALLS = AssistantMessage((Text("look"), ToolCall("a", "t", '{"b": 1, "a": 2}'), ToolCall("b", "t")))


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def anthropic(*messages: Message, abilities: Abilities = SEES, model: str | None = "m") -> list[Any]:
    encoded: list[Any] = ANTHROPIC.encode(messages, system="", tools=(), abilities=abilities, model=model)["messages"]
    return encoded


def chat(*messages: Message, abilities: Abilities = SEES, model: str | None = "m") -> list[Any]:
    encoded: list[Any] = CHAT.encode(messages, system="", tools=(), abilities=abilities, model=model)["messages"]
    return encoded


def test_anthropic_gathers_the_results_of_a_step() -> None:
    """One user message holds all results; an error's image comes after them and is announced; later text is apart."""
    results = (
        ToolResult("a", "t", (Text("boom"), PICTURE), is_error=True),
        ToolResult("b", "t", (Text("seen"), PICTURE)),
    )
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert anthropic(HI, CALLS, *results, HI) == [
        {"role": "user", "content": [text("hi")]},
        {
            "role": "assistant",
            "content": [
                text("look"),
                {"type": "tool_use", "id": "a", "name": "t", "input": {"b": 1, "a": 2}},
                {"type": "tool_use", "id": "b", "name": "t", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [text("boom"), text("[image/png: shown after the results]")],
                    "is_error": True,
                },
                {"type": "tool_result", "tool_use_id": "b", "content": [text("seen"), image]},
                text("[image from t, call a]"),
                image,
            ],
        },
        {"role": "user", "content": [text("hi")]},
    ]


def test_chat_sends_images_after_all_results_of_the_step() -> None:
    """A tool message holds text only; the pictures follow in one user message, each with its call."""
    results = (ToolResult("a", "t", (Text("boom"), PICTURE), is_error=True), ToolResult("b", "t", (PICTURE,)))
    uri = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert chat(CALLS, *results, HI)[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "error: boom\n\n[image/png: shown after the results]"},
        {"role": "tool", "tool_call_id": "b", "content": "[image/png: shown after the results]"},
        {"role": "user", "content": [text("[image from t, call a]"), uri, text("[image from t, call b]"), uri]},
        {"role": "user", "content": "hi"},
    ]


def test_images_become_constant_text_where_the_model_takes_none() -> None:
    """The text names the media type; a type that a protocol does not know is withheld too."""
    shown = UserMessage((PICTURE, Image("image/tiff", "AA==")))
    withheld = [text(f"[image left out: this model takes no image/{kind}]") for kind in ("png", "tiff")]
    assert anthropic(shown, abilities=Abilities())[0]["content"] == withheld
    assert anthropic(shown)[0]["content"][1] == withheld[1]
    assert chat(shown, abilities=Abilities())[0]["content"] == "\n\n".join(part["text"] for part in withheld)


@pytest.mark.parametrize(
    ("content", "is_error", "stand_in", "expected"),
    [
        ("boom", True, False, "error: boom"),
        ("boom", False, False, "boom"),
        ("Error: boom", True, False, "Error: boom"),
        ("outcome unknown", True, True, "outcome unknown"),
        (" ", True, False, "error: (no output)"),
    ],
)
def test_chat_says_in_the_text_what_is_an_error(content: str, is_error: bool, stand_in: bool, expected: str) -> None:
    """The protocol has no flag: the text is marked, once, and a stand-in says it itself."""
    result = ToolResult("a", "t", (Text(content),), is_error, stand_in)
    assert chat(HI, AssistantMessage((ToolCall("a", "t"),)), result)[-1]["content"] == expected


def test_thinking_goes_back_only_to_the_model_that_signed_it() -> None:
    """Another model, another wire, no signature or text that cannot be sent: the thinking is left out."""

    def kept(part: Thinking, wire: str | None, author: str | None, model: str | None = "m") -> bool:
        reply = AssistantMessage((part, Text("x")), wire=wire, model=author)
        return len(anthropic(HI, reply, model=model)[1]["content"]) == 2

    signed = Thinking("", "s")
    assert kept(signed, "anthropic", "m") and kept(Thinking("", "s", redacted=True), "anthropic", "m")
    assert kept(signed, "anthropic", "other", model=None)
    assert not kept(signed, "anthropic", "other")
    assert not kept(signed, "openai_chat", "m") and not kept(signed, None, None, model=None)
    assert not kept(Thinking("hm", ""), "anthropic", "m") and not kept(Thinking("hm"), "anthropic", "m")
    assert not kept(Thinking("\ud83d", "s"), "anthropic", "m")


def test_a_reply_of_thinking_alone_leaves_nothing() -> None:
    """It is left out whole, and thinking at the end of a reply is too, as the provider refuses both."""
    alone = AssistantMessage((Thinking("hm", "s"), Text(" ")), model="m", wire="anthropic")
    trailing = AssistantMessage((Text("x"), Thinking("hm", "s")), model="m", wire="anthropic")
    assert anthropic(HI, alone, HI, trailing) == [
        {"role": "user", "content": [text("hi")]},
        {"role": "user", "content": [text("hi")]},
        {"role": "assistant", "content": [text("x")]},
    ]
    assert chat(HI, alone) == [{"role": "user", "content": "hi"}]


def test_reasoning_is_replayed_with_calls_where_the_model_wants_it() -> None:
    """Every reply with calls carries the field: its own reasoning, or an empty text for a foreign one."""
    abilities = Abilities(replay_reasoning=True, null_content=False)
    parts = (Thinking("hm"), ToolCall("a", "t"))
    fields = {}
    for author in ("m", "other"):
        reply = AssistantMessage(parts, model=author, wire="openai_chat")
        fields[author] = chat(HI, reply, abilities=abilities)[1]
    assert fields["m"]["reasoning_content"] == "hm" and fields["m"]["content"] == ""
    assert fields["other"]["reasoning_content"] == ""
    without = AssistantMessage((Thinking("hm"), Text("x")), model="m", wire="openai_chat")
    assert chat(HI, without, abilities=abilities)[1] == {"role": "assistant", "content": "x"}
    assert "reasoning_content" not in chat(HI, AssistantMessage(parts, model="m", wire="openai_chat"))[1]


def test_a_system_patch_is_a_tagged_user_message_unless_the_wire_takes_system_anywhere() -> None:
    """Its form depends on abilities alone, and it is a message of its own."""
    patch = SystemPatch("Be brief.")
    tagged = "<system-update>\nBe brief.\n</system-update>"
    everywhere = Abilities(system_anywhere=True, system_after_user=True)
    assert anthropic(HI, patch, abilities=everywhere)[1] == {"role": "user", "content": [text(tagged)]}
    assert chat(HI, patch)[1] == {"role": "user", "content": tagged}
    assert chat(HI, patch, abilities=everywhere)[1] == {"role": "system", "content": "Be brief."}
    developer = Abilities(system_anywhere=True, developer_role=True)
    assert chat(HI, patch, abilities=developer)[1] == {"role": "developer", "content": "Be brief."}


@pytest.mark.parametrize(
    ("arguments", "as_object", "as_text"),
    [
        ('{"a": 1.50}', {"a": 1.5}, '{"a": 1.50}'),
        ("", {}, "{}"),
        ('{"a": ', {}, "{}"),
        ("[1]", {}, "{}"),
        ('{"a": NaN}', {}, "{}"),
        ('{"a": 1e999}', {}, "{}"),
        ('{"a": ' + "9" * 5000 + "}", {}, "{}"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", {}, "{}"),
        ('{"a": "\\ud99c"}', {"a": "\ufffd"}, '{"a": "\ufffd"}'),
        ('{"a": "\\ud83d\\ude42"}', {"a": "🙂"}, '{"a": "\\ud83d\\ude42"}'),
        ('{"a": "\ud83d"}', {"a": "\ufffd"}, '{"a": "\ufffd"}'),
    ],
)
def test_arguments_are_always_an_object_that_can_be_sent(
    arguments: str, as_object: dict[str, Any], as_text: str
) -> None:
    """What is no JSON object becomes `{}`; what is one stays as written, without lone surrogates."""
    messages = (HI, AssistantMessage((ToolCall("a", "t", arguments),)), ToolResult("a", "t", (Text("x"),)))
    assert anthropic(*messages)[1]["content"][0]["input"] == as_object
    assert chat(*messages)[1]["tool_calls"][0]["function"]["arguments"] == as_text
    for wire in WIRES.values():
        assert wire.check(wire.encode(messages, system="", tools=(), abilities=SEES), SEES) == ()


def test_what_no_repair_has_seen_is_encoded_without_raising() -> None:
    """Empty content, lone surrogates, calls cut off, invented names: shaped or left to the checker."""
    messages = (
        ToolResult("ghost\udc00", "", ()),
        UserMessage(()),
        UserMessage((Text(""), Text("\udc00"))),
        AssistantMessage(()),
        AssistantMessage(
            (ToolCall("a", "functions.read file", complete=True), ToolCall("b", "t", "{", complete=False))
        ),
        ToolResult("a", "", (Text(" "), Image("", "")), is_error=True),
        SystemPatch(""),
    )
    for wire in WIRES.values():
        for abilities in (SEES, Abilities(tool_name_in_result=True, strict_alternation=True)):
            payload = wire.encode(messages, system="\udc00", tools=(), abilities=abilities)
            assert {violation.rule for violation in wire.check(payload, abilities)} <= {"C4", "A3", "O1"}
    assert anthropic(*messages)[3]["content"][0]["name"] == "functions_read_file"


def test_strict_hosts_get_user_and_assistant_in_turn() -> None:
    """Neighbours of one role are merged on a copy; the messages as kept stay apart."""
    strict = Abilities(strict_alternation=True)
    said = (AssistantMessage((Text("a"),)), HI, SystemPatch("x"), HI, AssistantMessage((Text("b"),)), CALLS)
    for encode in (anthropic, chat):
        roles = [message["role"] for message in encode(*said, abilities=strict)]
        assert roles == ["user", "assistant", "user", "assistant"]
        assert len(encode(*said)) >= 6
    merged = chat(*said, abilities=strict)
    assert [part["text"] for part in merged[2]["content"]] == ["hi", "<system-update>\nx\n</system-update>", "hi"]
    assert merged[3]["content"] == [text("b"), text("look")] and len(merged[3]["tool_calls"]) == 2


def test_a_patch_parts_no_two_messages_of_one_role_on_strict_hosts() -> None:
    """There it is the user's, also where a system message might stand anywhere: else user would follow user."""
    strict = Abilities(strict_alternation=True, system_anywhere=True)
    sent = chat(HI, SystemPatch("x"), HI, abilities=strict)
    assert [message["role"] for message in sent] == ["user"] and CHAT.check({"messages": sent}, strict) == ()


def test_a_merged_reply_of_one_text_is_a_string() -> None:
    """Merging a text with bare calls leaves what one message of both would be."""
    bare = AssistantMessage((ToolCall("a", "t"),))
    both = AssistantMessage((Text("x"), ToolCall("a", "t")))
    strict = Abilities(strict_alternation=True)
    assert chat(HI, AssistantMessage((Text("x"),)), bare, abilities=strict) == chat(HI, both, abilities=strict)
    texts = (AssistantMessage((Text("x"),), wire="openai_chat"), AssistantMessage((Text("y"),), wire="openai_chat"))
    assert CHAT.decode(chat(HI, *texts, abilities=strict)).messages == (HI, *texts)


def test_tools_are_object_schemas_with_sorted_keys() -> None:
    """The same tool has the same bytes, however its schema was built."""
    one = ToolSpec("t", "d", {"type": "object", "required": ("b", "a"), "properties": {"b": {}, "a": {}}})
    two = ToolSpec("t", "d", {"properties": {"a": {}, "b": {}}, "required": ["b", "a"]})
    schema = {"properties": {"a": {}, "b": {}}, "required": ["b", "a"], "type": "object"}
    for tool in (one, two):
        encoded = ANTHROPIC.encode((), system="", tools=[tool], abilities=SEES)["tools"]
        assert str(encoded) == str([{"name": "t", "description": "d", "input_schema": schema}])
        function = CHAT.encode((), system="", tools=[tool], abilities=SEES)["tools"][0]["function"]
        assert str(function) == str({"name": "t", "description": "d", "parameters": schema})


def test_encoded_messages_are_shared_between_requests() -> None:
    """What was encoded once is the very same object in the next request."""
    messages = (HI, CALLS, ToolResult("a", "t", (Text("x"),)), ToolResult("b", "t", (Text("y"),)))
    for encode in (anthropic, chat):
        one, two = encode(*messages), encode(*messages, HI)
        assert all(first is second for first, second in zip(one, two, strict=False))
