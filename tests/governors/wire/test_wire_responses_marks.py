"""The mark at the end of the front on the Responses wire, and what else goes back as it came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from governors.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, ToolSpec, UserMessage
from governors.wire import WIRES, Encoder
from governors.wire.base import Abilities
from governors.wire.encoded import canonical

WIRE = WIRES["openai_responses"]
MARKED = Abilities(cache_marks=True, cache_key=True, developer_role=True, system_anywhere=True, thinking="effort")
PLAIN = Abilities(cache_key=True, developer_role=True, system_anywhere=True, thinking="effort")
TOOLS = (ToolSpec("t", "d", {}),)


def hi(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def encoder(abilities: Abilities, *messages: Message, system: str = "be brief") -> Encoder:
    made = Encoder(WIRE, system=system, tools=TOOLS, abilities=abilities, model="m", max_output=99)
    made.append(messages)
    return made


class Provider:
    """A cache that is matched at breakpoints alone: where marks stand, and at the end of each request."""

    def __init__(self) -> None:
        self.kept: set[tuple[bytes, ...]] = set()

    def ask(self, body: Mapping[str, Any]) -> int:
        """How many blocks of `body` were read from the cache."""
        blocks = [canonical(tool) for tool in body.get("tools", ())]
        blocks += [canonical(body["instructions"])] if "instructions" in body else []
        ends = []
        for item in body["input"]:
            content = item.get("content")
            marked = isinstance(content, list) and any("prompt_cache_breakpoint" in part for part in content)
            blocks += WIRE.stepwise.split(item)
            ends += [len(blocks)] if marked else []
        prefixes = {tuple(blocks[:end]) for end in [*ends, len(blocks)]}
        every = {tuple(blocks[:end]) for end in range(1, len(blocks) + 1)}
        read = max((len(prefix) for prefix in every & self.kept), default=0)
        self.kept |= prefixes
        return read


@pytest.mark.parametrize(("abilities", "blocks"), [(MARKED, 2), (PLAIN, 0)])
def test_a_new_session_reads_the_front_of_another(abilities: Abilities, blocks: int) -> None:
    """The tools and the system prompt come from the cache, which without the mark they do not."""
    provider = Provider()
    assert provider.ask(encoder(abilities, hi("one")).body()) == 0
    assert provider.ask(encoder(abilities, hi("another")).body()) == blocks


def test_the_front_is_a_developers_message_with_the_mark_at_its_end() -> None:
    """`instructions` can carry none; the provider's own breakpoint stays, as no mode is asked for."""
    body = encoder(MARKED, hi("x")).body()
    part = {"type": "input_text", "text": "be brief", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body["input"][0] == {"type": "message", "role": "developer", "content": [part]}
    assert "instructions" not in body and "prompt_cache_options" not in body
    assert encoder(MARKED, hi("x")).body("12h")["prompt_cache_options"] == {"ttl": "12h"}
    assert WIRE.check(body, MARKED) == ()
    assert encoder(MARKED, hi("x"), system=" ").body()["input"][0]["role"] == "user"
    assert WIRE.decode(body).system == "be brief"


def test_marks_are_no_part_of_the_prefix() -> None:
    """A body without its marks has the same hash."""
    body = encoder(MARKED, hi("x")).body()
    first = body["input"][0]
    bare = [
        {key: value for key, value in part.items() if key != "prompt_cache_breakpoint"} for part in first["content"]
    ]
    unmarked = {**body, "input": [{**first, "content": bare}, *body["input"][1:]]}
    assert unmarked != body
    assert WIRE.prefix_hash(unmarked) == WIRE.prefix_hash(body) == encoder(MARKED, hi("x")).prefix


def test_the_key_stays_as_the_conversation_grows() -> None:
    """It is of the tools and the system prompt, wherever that stands, however long the rest is."""
    many = [hi(str(number)) for number in range(200)]
    keys = {encoder(MARKED, *many[:size]).body()["prompt_cache_key"] for size in (1, 60, 200)}
    assert len(keys) == 1
    assert keys.isdisjoint({encoder(MARKED, hi("x"), system="other").body()["prompt_cache_key"]})


def test_a_phase_goes_back_to_the_model_that_gave_it() -> None:
    """Dropping it can make later replies worse; another model knows nothing of it."""
    parts = (Thinking("", "r"), Text("I look", "commentary"), ToolCall("a", "t"))
    for model, phase in (("m", "commentary"), ("other", None)):
        reply = AssistantMessage(parts, "tool_use", model, "openai_responses")
        body = encoder(MARKED, hi("x"), reply, ToolResult("a", "t", (Text("y"),))).body()
        (said,) = (item for item in body["input"] if item.get("role") == "assistant")
        assert said.get("phase") == phase
        read = WIRE.decode(body).messages
        assert [part.phase for part in read[1].content if isinstance(part, Text)] == [phase]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, {"summary": "auto"}),
        ("off", {"effort": "none"}),
        ("high", {"effort": "high", "summary": "auto"}),
    ],
)
def test_a_summary_is_asked_for_where_there_can_be_one(level: str | None, expected: dict[str, str]) -> None:
    """Not without reasoning, and not of a model that gives none."""
    able = Abilities(thinking="effort", summaries=True)
    asked = WIRE.body({"input": []}, model="m", max_output=99, abilities=able, thinking=level)
    assert asked["reasoning"] == expected
    other = WIRE.body({"input": []}, model="m", max_output=99, abilities=PLAIN, thinking=level)
    assert "summary" not in other.get("reasoning", {})
