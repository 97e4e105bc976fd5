"""A6 and O3: reasoning is valid where it was produced, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Message, Messages, Text, Thinking, ToolCall, ToolResult, UserMessage
from governors.wire import WIRES, Abilities, check_binding
from tests.strategies import unit_lists

BINDS = Abilities(binds_prefix=True)
DROPS = Abilities(binds_prefix=True, drop_block=True)
STRICT = Abilities(binds_prefix=True, strict_alternation=True)
CASES = [("anthropic", BINDS), ("anthropic", DROPS), ("anthropic", STRICT), ("openai_responses", BINDS)]
HI = UserMessage((Text("hi"),))


def signed(units: list[list[Message]], wire: str) -> Messages:
    """The messages, every reply begun with reasoning of this wire's model that is signed as no other."""
    messages: list[Message] = []
    for message in (message for unit in units for message in unit):
        if isinstance(message, AssistantMessage):
            kept = tuple(part for part in message.content if not isinstance(part, Thinking))
            content = (Thinking("hm", f"signature {len(messages)}"), *kept)
            message = replace(message, content=content, wire=wire, model="m")
        messages.append(message)
    return tuple(messages)


def encoded(name: str, messages: Messages, abilities: Abilities, system: str = "s") -> dict[str, Any]:
    return WIRES[name].encode(messages, system=system, tools=(), abilities=abilities, model="m")


def prefixes(name: str, messages: Messages, abilities: Abilities) -> dict[str, str]:
    """Under which prefix each reply's reasoning was produced, the conversation having gone as it stands."""
    return {
        f"signature {index}": WIRES[name].prefix_hash(encoded(name, messages[:index], abilities))
        for index, message in enumerate(messages)
        if isinstance(message, AssistantMessage)
    }


def invalid(name: str, produced: dict[str, str], body: dict[str, Any], abilities: Abilities) -> list[str]:
    return [found.where for found in check_binding(produced, body, WIRES[name], abilities)]


@settings(max_examples=50, deadline=None)
@given(unit_lists(6), st.sampled_from(CASES), st.data())
def test_what_was_changed_makes_all_later_reasoning_invalid(
    units: list[list[Message]], case: tuple[str, Abilities], data: st.DataObject
) -> None:
    """As it went, all is valid, marked or not; after an edit, all reasoning after it is not, and none before it."""
    name, abilities = case
    wire = WIRES[name]
    messages = signed([[HI], *units], name)  # the user's first: what opens a conversation is no request's prefix
    produced = prefixes(name, messages, abilities)
    body = encoded(name, messages, abilities)
    assert invalid(name, produced, body, abilities) == []
    assert invalid(name, produced, wire.mark_cache(body), abilities) == []
    assert len(invalid(name, produced, {**body, "tools": [{"name": "t"}]}, abilities)) == len(produced)
    users = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    edited = data.draw(st.sampled_from(users))
    changed = (*messages[:edited], UserMessage((Text("something else"),)), *messages[edited + 1 :])
    later = sum(isinstance(message, AssistantMessage) for message in messages[edited:])
    if messages[edited] != changed[edited]:
        assert len(invalid(name, produced, encoded(name, changed, abilities), abilities)) == later
    inserted = (*messages[:edited], HI, *messages[edited:])
    assert len(invalid(name, produced, encoded(name, inserted, abilities), abilities)) == later


CALL = AssistantMessage((Thinking("hm", "one"), ToolCall("a", "t")), "tool_use", "m", "anthropic")
STEP = (HI, CALL, ToolResult("a", "t", (Text("x"),)))


@pytest.mark.parametrize(
    ("name", "rule", "abilities", "severity", "where"),
    [
        ("anthropic", "A6", BINDS, "E", "messages[1].content[0]"),
        ("anthropic", "A6", DROPS, "S", "messages[1].content[0]"),
        ("openai_responses", "O3", BINDS, "S", "input[1]"),
    ],
)
def test_the_rule_and_how_bad_it_is(name: str, rule: str, abilities: Abilities, severity: str, where: str) -> None:
    """Refused where the provider refuses, silent where it drops, nothing where it does not bind."""
    step = (HI, replace(CALL, wire=name), STEP[2])
    body = encoded(name, step, abilities)
    (found,) = check_binding({"one": "00"}, body, WIRES[name], abilities)
    assert (found.rule, found.severity, found.where) == (rule, severity, where)
    assert check_binding({"one": "00"}, body, WIRES[name], Abilities()) == ()
    assert check_binding({"two": "00"}, body, WIRES[name], abilities) == ()


def test_reasoning_produced_after_an_edit_is_valid() -> None:
    """What the provider dropped does not make later reasoning invalid: that was produced under what was sent."""
    edited = (UserMessage((Text("shorter"),)), *STEP[1:])
    produced = {
        "one": WIRES["anthropic"].prefix_hash(encoded("anthropic", STEP[:1], DROPS)),
        "two": WIRES["anthropic"].prefix_hash(encoded("anthropic", edited, DROPS)),
    }
    answer = AssistantMessage((Thinking("", "two", redacted=True), Text("done")), "stop", "m", "anthropic")
    body = encoded("anthropic", (*edited, answer, HI), DROPS)
    assert invalid("anthropic", produced, body, DROPS) == ["messages[1].content[0]"]


@pytest.mark.parametrize("name", WIRES)
def test_any_body_can_be_judged(name: str) -> None:
    """Messages of another shape, without messages, or unsigned: nothing to say, and nothing raised."""
    odd = {"role": "assistant", "content": [7, {"type": "thinking", "signature": 7}, {"type": []}, {}]}
    for body in ({}, {"messages": 7, "input": 7}, {"messages": [7, odd], "input": [7, odd, {"type": "reasoning"}]}):
        assert check_binding({"one": "00"}, body, WIRES[name], BINDS) == ()
