"""Bodies, cache marks, and reading foreign payloads."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import (
    AssistantMessage,
    Image,
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
from governors.wire.common import rolling_hash
from governors.wire.protocol import Wire

ANTHROPIC, CHAT = WIRES["anthropic"], WIRES["openai_chat"]
HI = UserMessage((Text("hi"),))
TOOL = ToolSpec("t", "d", {})


def anthropic_body(thinking: str | None, abilities: Abilities, max_output: int = 40_000) -> dict[str, Any]:
    parts = ANTHROPIC.encode((HI,), system="s", tools=[TOOL], abilities=abilities)
    return ANTHROPIC.body(parts, model="m", max_output=max_output, abilities=abilities, thinking=thinking)


def chat_body(thinking: str | None, abilities: Abilities, tools: tuple[ToolSpec, ...] = (TOOL,)) -> dict[str, Any]:
    parts = CHAT.encode((HI,), system="s", tools=tools, abilities=abilities)
    return CHAT.body(parts, model="m", max_output=9, abilities=abilities, thinking=thinking)


def test_fields_stand_in_one_order() -> None:
    """The keys of a body come in a fixed order, and empty parts are left out."""
    assert list(anthropic_body(None, Abilities())) == ["model", "max_tokens", "tools", "system", "messages"]
    assert list(chat_body(None, Abilities())) == ["model", "max_tokens", "tools", "messages"]
    assert "max_completion_tokens" in chat_body(None, Abilities(max_tokens_field="max_completion_tokens"))
    assert "tools" not in chat_body(None, Abilities(), tools=())


@pytest.mark.parametrize(
    ("kind", "level", "expected"),
    [
        ("none", "high", {}),
        ("adaptive", None, {}),
        ("adaptive", "off", {"thinking": {"type": "disabled"}}),
        ("adaptive", "max", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
        ("effort", "low", {"output_config": {"effort": "low"}}),
        ("budget", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        ("budget", "max", {"thinking": {"type": "enabled", "budget_tokens": 17_500}}),  # an eighth stays for the answer
    ],
)
def test_anthropic_thinking_levels(kind: Any, level: str | None, expected: dict[str, Any]) -> None:
    """Each level becomes the fields that this kind of model takes."""
    fields = anthropic_body(level, Abilities(thinking=kind), max_output=20_000)
    assert {key: fields[key] for key in ("thinking", "output_config") if key in fields} == expected


def test_a_budget_is_left_out_where_it_would_be_refused() -> None:
    """With too little room, or in a step whose reply has no thinking of this model."""
    abilities = Abilities(thinking="budget")
    assert "thinking" not in anthropic_body("low", abilities, max_output=1024)
    for opening, expected in ((Thinking("", "s"), True), (Text("x"), False)):
        reply = AssistantMessage((opening, ToolCall("a", "t")), wire="anthropic", model="m")
        messages = (HI, reply, ToolResult("a", "t", (Text("x"),)))
        parts = ANTHROPIC.encode(messages, system="", tools=(), abilities=abilities, model="m")
        body = ANTHROPIC.body(parts, model="m", max_output=9_000, abilities=abilities, thinking="low")
        assert ("thinking" in body) is expected


def test_chat_thinking_levels() -> None:
    """The level is the reasoning effort, unless the model takes none, or none with tools."""
    effort = Abilities(thinking="effort")
    assert chat_body("off", effort)["reasoning_effort"] == "none"
    assert chat_body("high", effort)["reasoning_effort"] == "high"
    alone = Abilities(thinking="effort", thinking_with_tools=False)
    assert "reasoning_effort" not in chat_body("high", alone)
    assert chat_body("high", alone, tools=())["reasoning_effort"] == "high"
    assert "reasoning_effort" not in chat_body("high", Abilities()) and "reasoning_effort" not in chat_body(
        None, effort
    )


def test_an_unknown_level_is_named() -> None:
    """The error says which levels there are."""
    with pytest.raises(ValueError, match=r"huge.*off, low, medium, high, max"):
        anthropic_body("huge", Abilities(thinking="adaptive"))
    with pytest.raises(ValueError, match=r"huge.*off, low, medium, high, max"):
        chat_body("huge", Abilities())


def marked_places(body: dict[str, Any]) -> list[tuple[int, int]]:
    return [
        (position, index)
        for position, message in enumerate(body["messages"])
        for index, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def test_marks_stand_on_the_last_tool_the_system_prompt_and_the_newest_block() -> None:
    """The newest block that can carry a mark gets it: thinking, empty text and strings cannot."""
    body = ANTHROPIC.mark_cache(anthropic_body(None, Abilities()))
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["tools"][0]["cache_control"] == {"type": "ephemeral"} and marked_places(body) == [(0, 0)]
    blocks = [
        {"type": "text", "text": "x"},
        {"type": "text", "text": " "},
        {"type": "thinking", "thinking": "", "signature": "s"},
    ]
    foreign = {
        "tools": [{"name": "t"}],
        "messages": [{"role": "user", "content": blocks}, {"role": "user", "content": "y"}],
    }
    marked = ANTHROPIC.mark_cache(foreign)
    assert marked["tools"][0]["cache_control"] and marked["messages"][0]["content"][0]["cache_control"]
    assert marked["messages"][0]["content"][1:] == blocks[1:] and marked["messages"][1] is foreign["messages"][1]


def test_marks_reach_back_over_a_long_step() -> None:
    """Three marks a stride apart find a cache entry that more than 20 new blocks have left behind (A9)."""
    parts = ANTHROPIC.encode([HI] * 60, system="s", tools=(), abilities=Abilities())
    body = ANTHROPIC.mark_cache(ANTHROPIC.body(parts, model="m", max_output=9, abilities=Abilities()))
    assert marked_places(body) == [(29, 0), (44, 0), (59, 0)]
    assert ANTHROPIC.check(body, Abilities(prefill=True)) == ()


def test_the_hash_rolls_over_every_block() -> None:
    """Blocks that are joined or split otherwise, or moved between roles, hash differently."""
    assert rolling_hash([b"ab", b"c"]) != rolling_hash([b"a", b"bc"]) != rolling_hash([b"abc"])
    assert ANTHROPIC.prefix_hash({"messages": [{"role": "user", "content": "x"}]}) != ANTHROPIC.prefix_hash(
        {"messages": [{"role": "assistant", "content": "x"}]}
    )
    texts = [{"type": "text", "text": "x"}]
    assert ANTHROPIC.prefix_hash({"messages": [{"role": "user", "content": "x"}]}) == ANTHROPIC.prefix_hash(
        {"messages": [{"role": "user", "content": texts}]}
    )


@pytest.mark.parametrize("wire", [ANTHROPIC, CHAT], ids=["anthropic", "openai_chat"])
def test_every_part_of_a_message_is_in_the_prefix(wire: Wire) -> None:
    """Changing a text, an id, a name, an argument, a result or its place changes the hash."""

    def hashed(text: str = "x", call: str = "a", name: str = "t", arguments: str = "{}", output: str = "y") -> str:
        reply = AssistantMessage((Text(text), ToolCall(call, name, arguments)))
        messages = (HI, reply, ToolResult(call, name, (Text(output),)))
        return wire.prefix_hash(wire.encode(messages, system="", tools=(), abilities=Abilities()))

    changes = [{}, {"text": "z"}, {"call": "b"}, {"name": "u"}, {"arguments": '{"a": 1}'}, {"output": "z"}]
    assert len({hashed(**change) for change in changes}) == len(changes)
    for fields in ({"system": "s"}, {"tools": [TOOL]}):
        parts = wire.encode((HI,), **{"system": "", "tools": (), **fields}, abilities=Abilities())
        bare = wire.encode((HI,), system="", tools=(), abilities=Abilities())
        assert wire.prefix_hash(parts) != wire.prefix_hash(bare)


def test_images_of_several_error_results_return_to_their_results() -> None:
    """Each result of a step gets its own images back, and text that only looks like a label stays the user's."""
    one, two = Image("image/png", "AA=="), Image("image/jpeg", "BB==")
    abilities = Abilities(images=True)
    step = (
        UserMessage((Text("go"),)),
        AssistantMessage((ToolCall("a", "t"), ToolCall("b", "t")), "tool_use", None, "anthropic"),
        ToolResult("a", "t", (Text("x"), one, two), is_error=True),
        ToolResult("b", "t", (two,), is_error=True),
    )
    payload = ANTHROPIC.encode(step, system="", tools=(), abilities=abilities)
    assert ANTHROPIC.decode(payload).messages == step
    blocks = payload["messages"][2]["content"]
    unannounced = {**blocks[0], "content": [{"type": "text", "text": "x"}]}
    lookalike = [*payload["messages"][:2], {"role": "user", "content": [unannounced, *blocks[1:]]}]
    read = ANTHROPIC.decode(lookalike).messages
    assert read[2] == ToolResult("a", "t", (Text("x"),), is_error=True)
    assert [type(message) for message in read[3:]] == [ToolResult, UserMessage]


def test_foreign_anthropic_payloads_are_read_as_they_stand() -> None:
    """Strings, faulty calls, results between texts and system messages keep their order and their faults."""
    read = ANTHROPIC.decode(
        {
            "model": "m",
            "system": "be kind",
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "a"}, {"type": "redacted_thinking", "data": "d"}],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "x"},
                        {"type": "tool_result", "tool_use_id": "a", "content": "y"},
                    ],
                },
                {"role": "system", "content": "now"},
                {"role": "user", "content": []},
            ],
        }
    )
    assert read.system == "be kind"
    assert read.messages == (
        HI,
        AssistantMessage(
            (ToolCall("a", "", "null", complete=False), Thinking("", "d", redacted=True)), "tool_use", "m", "anthropic"
        ),
        UserMessage((Text("x"),)),
        ToolResult("a", "", (Text("y"),)),
        SystemPatch("now"),
        UserMessage(()),
    )


def test_foreign_chat_payloads_are_read_as_they_stand() -> None:
    """A bare list of dicts will do; later system messages are patches; arguments may be objects or missing."""
    uri = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    read = CHAT.decode(
        [
            {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, uri]},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "a", "function": {"name": "t", "arguments": {"x": 1}}},
                    {"function": {"name": "t"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": None},
            {"role": "system", "content": "now"},
        ],
        model="m",
    )
    assert read.system == "be kind"
    assert read.messages == (
        UserMessage((Text("hi"), Image("image/png", "AA=="))),
        AssistantMessage(
            (Thinking("hm"), ToolCall("a", "t", '{"x": 1}'), ToolCall("", "t", "null", complete=False)),
            "tool_use",
            "m",
            "openai_chat",
        ),
        ToolResult("a", "t", (Text(""),)),
        SystemPatch("now"),
    )


@pytest.mark.parametrize(
    ("name", "messages", "place"),
    [
        ("anthropic", [7], "messages[0]"),
        ("anthropic", [{"role": "tool", "content": "x"}], "messages[0].role"),
        ("anthropic", [{"role": "user", "content": 7}], "messages[0].content"),
        ("anthropic", [{"role": "user", "content": [{"type": "document"}]}], "messages[0].content[0]"),
        ("anthropic", [{"role": "assistant", "content": [{"type": "image"}]}], "messages[0].content[0]"),
        ("anthropic", [{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}], "messages[0]"),
        ("anthropic", [{"role": "system", "content": [{"type": "image"}]}], "messages[0].content[0]"),
        ("openai_chat", [7], "messages[0]"),
        ("openai_chat", [{"role": "function", "content": "x"}], "messages[0].role"),
        ("openai_chat", [{"role": "user", "content": 7}], "messages[0].content"),
        ("openai_chat", [{"role": "user", "content": [7]}], "messages[0].content[0]"),
        ("openai_chat", [{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0]"),
        (
            "openai_chat",
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]}],
            "messages[0].content[0]",
        ),
        (
            "openai_chat",
            [
                {
                    "role": "tool",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
                }
            ],
            "messages[0].content",
        ),
        ("openai_chat", [{"role": "assistant", "tool_calls": "x"}], "messages[0].tool_calls"),
        ("openai_chat", [{"role": "assistant", "tool_calls": [7]}], "messages[0].tool_calls[0]"),
    ],
)
def test_what_has_no_place_in_the_model_is_refused_by_name(name: str, messages: list[Any], place: str) -> None:
    """Nothing is dropped in silence: the error says where it stands."""
    with pytest.raises(CannotDecode) as refusal:
        WIRES[name].decode(messages)
    assert str(refusal.value).startswith(place)
