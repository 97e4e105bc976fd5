"""What a provider's own compaction made, and how it is asked for, on every wire (A11, O4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, CompactionItem, Message, Text, ToolCall, ToolResult, UserMessage
from governors.repair import normalise
from governors.tokens import MESSAGE_FRAME, TiktokenCounter, message_tokens
from governors.wire import WIRES
from governors.wire.base import Abilities
from governors.wire.compaction_items import UNREADABLE
from governors.wire.encoder import Encoder

BLOCK = {"type": "compaction", "content": "So far: häring.", "signature": "sig==", "tool_changes": []}
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA==", "created_by": "somebody"}
CLAUDE = UserMessage((Text("So far, in words."),), item=CompactionItem("anthropic", "anthropic", json.dumps(BLOCK)))
SOL = UserMessage((Text(UNREADABLE),), item=CompactionItem("openai", "openai_responses", json.dumps(SEALED), 900))
THEN: tuple[Message, ...] = (
    UserMessage((Text("go on"),)),
    AssistantMessage((Text("I do"),)),
    UserMessage((Text("?"),)),
)
ABLE = {
    wire: Abilities(compaction=vendor) for wire, vendor in (("anthropic", "anthropic"), ("openai_responses", "openai"))
}


def body(wire: str, messages: tuple[Message, ...], abilities: Abilities, **more: Any) -> dict[str, Any]:
    """A request, made step by step; held to the whole encoding where it asks for nothing."""
    encoder = Encoder(WIRES[wire], system="s", tools=(), abilities=abilities, model="m", max_output=99, **more)
    encoder.append(normalise(messages))
    encoder.close()
    assert [each for each in encoder.violations() if each.severity != "$"] == []
    made: dict[str, Any] = json.loads(encoder.to_bytes())
    if not more:
        parts = WIRES[wire].encode(normalise(messages), system="s", tools=(), abilities=abilities, model="m")
        assert (
            WIRES[wire].prefix_hash(WIRES[wire].body(parts, model="m", max_output=99, abilities=abilities))
            == encoder.prefix
        )
    return made


def test_a_block_goes_back_word_for_word_as_the_first_of_all_blocks() -> None:
    """In a message of the assistant's, with nothing before it (A11)."""
    sent = body("anthropic", (CLAUDE, *THEN), ABLE["anthropic"])["messages"]
    assert sent[0] == {"role": "assistant", "content": [BLOCK]}
    assert [message["role"] for message in sent] == ["assistant", "user", "assistant", "user"]


def test_an_item_goes_back_without_its_id() -> None:
    """Nothing is stored at the provider; what is encrypted is as it was (O2, O4)."""
    sent = body("openai_responses", (SOL, *THEN), ABLE["openai_responses"])["input"]
    assert sent[0] == {"type": "compaction", "encrypted_content": "gAAAA=="}


@pytest.mark.parametrize(
    ("wire", "message", "abilities"),
    [
        ("anthropic", CLAUDE, Abilities()),  # another host of that protocol
        ("anthropic", SOL, ABLE["anthropic"]),
        ("openai_responses", CLAUDE, ABLE["openai_responses"]),
        ("openai_responses", SOL, Abilities()),
        ("openai_chat", SOL, Abilities(compaction="openai")),
        ("openai_chat", CLAUDE, Abilities(compaction="anthropic")),
    ],
)
def test_elsewhere_its_words_are_sent(wire: str, message: UserMessage, abilities: Abilities) -> None:
    """No byte of the item goes to whoever cannot read it."""
    made = json.dumps(body(wire, (message, *THEN), abilities), ensure_ascii=False)
    assert message.text in made
    assert "gAAAA" not in made and "sig==" not in made and '"compaction"' not in made


@pytest.mark.parametrize(("wire", "message"), [("anthropic", CLAUDE), ("openai_responses", SOL)])
def test_it_is_read_back_as_it_was_sent(wire: str, message: UserMessage) -> None:
    """Encoded, decoded and encoded again it is the same."""
    made = body(wire, (message, *THEN), ABLE[wire])
    read = WIRES[wire].decode(made).messages
    assert isinstance(read[0], UserMessage) and read[0].item is not None
    assert body(wire, read, ABLE[wire]) == made


def test_a_request_to_compact_may_end_in_a_reply() -> None:
    """On Anthropic a field asks for it, and what the user wants takes the place of the usual instructions."""
    asked = WIRES["anthropic"].stepwise.compacts
    assert asked is not None
    made = body("anthropic", THEN[:2], ABLE["anthropic"], compacting=asked("keep the prices"))
    assert made["compaction"] == {"type": "summarize", "instructions": "keep the prices"}
    assert body("anthropic", THEN[:2], ABLE["anthropic"], compacting=asked(None))["compaction"] == {"type": "summarize"}
    assert made["messages"][-1]["role"] == "assistant"


def test_a_trigger_is_the_last_item() -> None:
    """On OpenAI, after what the user wants to keep above all (O4)."""
    asked = WIRES["openai_responses"].stepwise.compacts
    assert asked is not None
    made = body("openai_responses", THEN, ABLE["openai_responses"], compacting=asked("the prices"))["input"]
    assert made[-1] == {"type": "compaction_trigger"} and "the prices" in str(made[-2])
    assert body("openai_responses", THEN, ABLE["openai_responses"], compacting=asked(None))["input"] == [
        *made[:-2],
        made[-1],
    ]


def test_a_request_to_compact_cannot_end_in_an_open_call() -> None:
    """The rules say so before the provider does (A11)."""
    call = AssistantMessage((ToolCall("c1", "look"),), "tool_use")
    asked = WIRES["anthropic"].stepwise.compacts
    assert asked is not None
    encoder = Encoder(
        WIRES["anthropic"],
        system="",
        tools=(),
        abilities=ABLE["anthropic"],
        model="m",
        max_output=9,
        compacting=asked(None),
    )
    encoder.append((THEN[0], call))
    encoder.close()
    assert "A11" in [each.rule for each in encoder.violations()]
    encoder.append((ToolResult("c1", "look", (Text("seen"),)),))
    encoder.close()
    assert [each for each in encoder.violations() if each.rule in ("A11", "A7")] == []


def test_an_item_counts_as_the_provider_counted_it() -> None:
    """At least; without a count, all of its bytes may be encrypted text."""
    counter = TiktokenCounter()
    assert message_tokens(SOL, counter) == MESSAGE_FRAME + 900
    uncounted = UserMessage((Text("x"),), item=CompactionItem("openai", "openai_responses", "y" * 3_000))
    assert message_tokens(uncounted, counter) == MESSAGE_FRAME + 1_000
    words = UserMessage(CLAUDE.content, item=CompactionItem("anthropic", "anthropic", json.dumps(BLOCK), 1))
    assert message_tokens(words, counter) == message_tokens(UserMessage(CLAUDE.content), counter)


@given(
    payload=st.text(max_size=40)
    | st.sampled_from(["[1]", '"compaction"', '{"type":"message"}', '{"type":"compaction","content":"\\ud800"}'])
)
def test_what_is_no_item_is_never_sent(payload: str) -> None:
    """A log that was tampered with costs the item, not the conversation."""
    message = UserMessage((Text("in words"),), item=CompactionItem("anthropic", "anthropic", payload))
    assert body("anthropic", (message, *THEN), ABLE["anthropic"])["messages"][0]["role"] == "user"
