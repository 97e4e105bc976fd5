"""What single hosts want of the encoders: a reply after results, reasoning that is not empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from governors.messages import (
    AssistantMessage,
    Image,
    Message,
    SystemPatch,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from governors.wire import WIRES, Abilities, Encoder

CALL = ToolCall("abcdefgh1", "look", "{}")
STEP: tuple[Message, ...] = (
    UserMessage((Text("go"),)),
    AssistantMessage((CALL,), "tool_use", "m", "openai_chat"),
    ToolResult("abcdefgh1", "look", (Text("seen"),)),
)
FILLED = pytest.mark.parametrize(
    "abilities", [Abilities(user_after_results=False, images=True), Abilities(strict_alternation=True, images=True)]
)


def grown(messages: Sequence[Message], abilities: Abilities, wire: str = "openai_chat") -> Encoder:
    encoder = Encoder(WIRES[wire], system="", tools=(), abilities=abilities, model="m", max_output=100)
    encoder.append(messages)
    return encoder


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


@FILLED
async def test_a_reply_stands_between_results_and_a_users_message(abilities: Abilities) -> None:
    """Whoever speaks after results, one constant reply is put between, and the whole list says the same."""
    for last in (UserMessage((Text("and?"),)), SystemPatch("new")):
        messages = (*STEP, last)
        body = grown(messages, abilities).body()
        assert roles(body) == ["user", "assistant", "tool", "assistant", "user"]
        assert body["messages"][3]["content"] == "(no reply)"
        whole = WIRES["openai_chat"].encode(messages, system="", tools=(), abilities=abilities, model="m")
        assert body["messages"] == whole["messages"]
        assert not WIRES["openai_chat"].check(body, abilities)
        assert roles(grown(messages, Abilities()).body()) == ["user", "assistant", "tool", "user"]


@FILLED
async def test_pictures_of_a_result_follow_a_reply_too(abilities: Abilities) -> None:
    """What a tool drew is shown in a user's message, which needs the reply before it like any other."""
    drawn = ToolResult("abcdefgh1", "look", (Image("image/png", "aGk=", 1, 1),))
    encoder = grown((*STEP[:2], drawn), abilities)
    assert roles(encoder.body()) == ["user", "assistant", "tool", "assistant", "user"]
    assert not encoder.violations()
    before = encoder.prefix
    blocks = encoder.blocks
    encoder.append((AssistantMessage((Text("nice"),), "stop", "m", "openai_chat"), UserMessage((Text("more"),))))
    assert encoder.prefix_at(blocks) == before


async def test_our_checker_wants_the_reply_too() -> None:
    """A body without it is found before it leaves."""
    body = grown((*STEP, UserMessage((Text("and?"),))), Abilities()).body()
    assert [each.rule for each in WIRES["openai_chat"].check(body, Abilities(user_after_results=False))] == ["MISTRAL"]


async def test_reasoning_that_is_not_there_has_a_text_where_a_host_wants_one() -> None:
    """Kimi takes an empty text for a missing one."""
    abilities = Abilities(replay_reasoning=True, empty_reasoning=" ")
    body = grown(STEP, abilities).body()
    assert body["messages"][1]["reasoning_content"] == " "
    assert not WIRES["openai_chat"].check(body, abilities)
    emptied = grown(STEP, Abilities(replay_reasoning=True)).body()
    assert [each.rule for each in WIRES["openai_chat"].check(emptied, abilities)] == ["DEEPSEEK"]
