"""Cache marks on the Anthropic wire, against a provider that keeps what was marked and looks back 20 blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.messages import (
    AssistantMessage,
    Messages,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.wire import WIRES, Encoder
from governors.wire.anthropic_cache import marks
from governors.wire.anthropic_check_marks import LOOK_BACK
from governors.wire.base import Abilities
from governors.wire.encoded import canonical

from .tool_histories import Told, told
from .wire_cases import ANTHROPIC as CASES

WIRE = WIRES["anthropic"]
TOOLS = (ToolSpec("a", "d", {}), ToolSpec("b", "d", {}))
INLINE = Abilities(inline_tools=True, system_after_user=True, thinking="adaptive")
HI = UserMessage((Text("hi"),))


class Provider:
    """The provider's cache: the prefixes that marks have written. A prefix is found at a mark or up to 19 blocks before
    it."""

    def __init__(self) -> None:
        self.kept: set[bytes] = set()

    def ask(self, body: Mapping[str, Any]) -> tuple[int, int]:
        """How many blocks of `body` were read from the cache, and how many it has."""
        prefixes, marked = self._read(body)
        looked = {place - back for place in marked for back in range(LOOK_BACK) if place - back >= 0}
        hits = [place + 1 for place in looked if prefixes[place] in self.kept]
        self.kept |= {prefixes[place] for place in marked}
        return max(hits, default=0), len(prefixes)

    def _read(self, body: Mapping[str, Any]) -> tuple[list[bytes], list[int]]:
        """The prefix after each block in the order of rendering, and the places of the marks."""
        blocks = [("tools", block) for block in body.get("tools", ())] + [("system", b) for b in body.get("system", ())]
        blocks += [(message["role"], block) for message in body["messages"] for block in message["content"]]
        prefixes: list[bytes] = []
        for part, block in blocks:
            plain = {key: value for key, value in block.items() if key != "cache_control"}
            prefixes.append((prefixes[-1] if prefixes else b"") + canonical([part, plain]))
        return prefixes, [place for place, (_, block) in enumerate(blocks) if "cache_control" in block]


def body(messages: Messages, *, tools: tuple[ToolSpec, ...] = TOOLS, system: str = "s", ttl: str | None = None) -> Any:
    encoder = Encoder(WIRE, system=system, tools=tools, abilities=INLINE, model="m", max_output=9_000)
    encoder.append(messages)
    assert [each for each in encoder.violations() if each.severity != "$"] == []
    return encoder.body(ttl)


def step(number: int, calls: int, texts: int = 0) -> Messages:
    """A reply with its results."""
    made = [ToolCall(f"c{number}_{index}", "a") for index in range(calls)]
    said = [Text(f"{number} {index}") for index in range(texts)]
    reply = AssistantMessage((Thinking("t", "sig"), *said, *made), "tool_use", "m", "anthropic")
    return (reply, *(ToolResult(call.id, "a", (Text(call.id),)) for call in made))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 29), st.booleans(), st.booleans(), st.integers(0, 3)), max_size=8))
def test_the_end_of_the_request_before_is_found_whatever_the_step_added(
    steps: list[tuple[int, bool, bool, int]],
) -> None:
    """After steps of up to 60 new blocks and more, with steering and patches, all of the request before is read."""
    provider, before = Provider(), 0
    messages: Messages = (HI,)
    for number, (calls, steered, patched, texts) in enumerate([(1, False, False, 0), *steps]):
        read, size = provider.ask(body(messages))
        assert read == before
        before = size
        messages += step(number, calls, texts)
        messages += (HI,) if steered else ()
        change = ToolChange(added=(ToolSpec(f"t{number}", "d", {}),))
        messages += (SystemPatch("x", tools=change),) if patched else ()
    read, _ = provider.ask(body(messages))
    assert read == before


@settings(deadline=None)
@given(told(), st.sampled_from(CASES))
def test_random_conversations_read_all_of_the_request_before(conversation: Told, abilities: Abilities) -> None:
    """Also with patches, thinking and pictures, each request finds what the one before it wrote, if it extends it."""
    provider, written, array = Provider(), 0, conversation.baseline
    for count in conversation.requests():
        tools = conversation.array(count, "anthropic", abilities)
        parts = WIRE.encode(conversation.messages(count), system="s", tools=tools, abilities=abilities)
        sent = WIRE.mark_cache(WIRE.body(parts, model="m", max_output=9, abilities=abilities))
        read, size = provider.ask(sent)
        assert read >= written or tools != array
        assert "cache_control" in sent["messages"][-1]["content"][-1]
        written, array = size, tools


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=4), st.sampled_from([None, "5m", "1h"]), st.booleans(), st.booleans())
def test_marks_are_few_and_of_one_lifetime(
    steps: list[int], ttl: str | None, with_tools: bool, with_system: bool
) -> None:
    """Never more than four, all for as long, never on thinking, one on the newest block, and no rule broken."""
    messages: Messages = (HI,)
    for number, calls in enumerate(steps):
        messages += step(number, calls)
    sent = body(messages, tools=TOOLS if with_tools else (), system="s" if with_system else "", ttl=ttl)
    found = list(marks(sent))
    assert 1 <= len(found) <= 4
    assert {mark.get("ttl") for _, _, mark in found} == {"1h" if ttl == "1h" else None}
    assert all(block.get("type") != "thinking" for _, block, _ in found)
    assert "cache_control" in sent["messages"][-1]["content"][-1]
    assert [each for each in WIRE.check(sent, INLINE) if each.severity != "$"] == []


def test_a_long_step_is_marked_within() -> None:
    """Within what the newest step added there is a mark each 15 blocks, as far as four go."""
    sent = body((HI, *step(1, 29)))
    results = sent["messages"][2]["content"]
    assert [index for index, block in enumerate(results) if "cache_control" in block] == [13, 28]
    assert "cache_control" in sent["messages"][0]["content"][0] and "cache_control" in sent["system"][0]
    assert "cache_control" not in sent["tools"][-2]


def test_the_last_tool_that_is_shown_is_marked() -> None:
    """The placeholder for later tools is deferred and carries no mark; the tools stay warm under another prompt."""
    provider = Provider()
    first = body((HI,))
    assert ["cache_control" in tool for tool in first["tools"]] == [False, True, False]
    provider.ask(first)
    read, _ = provider.ask(body((HI,), system="another"))
    assert read == 2


@pytest.mark.parametrize("calls", [1, 12, 28])
def test_a_request_that_failed_is_no_loss(calls: int) -> None:
    """What the request before the failed one wrote is found again when somebody speaks next."""
    provider = Provider()
    provider.ask(body((HI,)))
    messages = (HI, *step(1, calls))
    _, written = provider.ask(body(messages))  # no reply came of it
    read, _ = provider.ask(body((*messages, HI)))
    assert read == written
