"""Patches outlive a cut, on every wire: what they said, and the tools that they brought."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from governors.budget import Budget
from governors.carrying import carried
from governors.decisions import Cut
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import (
    AssistantMessage,
    Message,
    SystemPatch,
    Text,
    ToolCall,
    ToolChange,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.pipeline import govern
from governors.policy import Policy
from governors.tokens import ByteCounter
from governors.wire import WIRES
from governors.wire.base import Abilities
from tests.governors.wire.tool_histories import Told, told
from tests.governors.wire.wire_cases import CASES

INLINE = Abilities(inline_tools=True, system_after_user=True)
cases = st.one_of(
    st.sampled_from(CASES), st.sampled_from([case for case in CASES if WIRES[case[0]].inline_tools(case[1])])
)


def patches_of(messages: Sequence[Message]) -> list[SystemPatch]:
    return [message for message in messages if isinstance(message, SystemPatch)]


def tools_after(patches: Sequence[SystemPatch], baseline: Sequence[ToolSpec]) -> tuple[dict[str, ToolSpec], set[str]]:
    """What is defined and what is on; a change has to refer to what there is."""
    defined, on = {tool.name: tool for tool in baseline}, {tool.name for tool in baseline}
    for change in [patch.tools for patch in patches if patch.tools]:
        assert not any(tool.name in defined for tool in change.added)
        defined |= {tool.name: tool for tool in change.added}
        assert all(name in defined for name in (*[tool.name for tool in change.changed], *change.back, *change.removed))
        defined |= {tool.name: tool for tool in change.changed}
        on = (on | set(change.offered)) - set(change.removed)
    return defined, on


@given(told(max_size=12), st.data())
def test_one_patch_says_what_all_said(conversation: Told, data: st.DataObject) -> None:
    """Words, definitions and tools that are on; and it does not matter in how many cuts they were carried."""
    patches = patches_of(conversation.messages(len(conversation.pieces)))
    one = carried(patches)
    if one is None:
        assert not patches
        return
    assert one.text == "\n\n".join(patch.text for patch in patches if patch.text) or one is patches[0]
    assert tools_after([one], conversation.baseline) == tools_after(patches, conversation.baseline)
    count = data.draw(st.integers(1, len(patches)))
    half = carried(patches[:count])
    assert half is not None
    again = carried([half, *patches[count:]])
    assert again is not None and (again.text, again.tools) == (one.text, one.tools)


@settings(deadline=None)
@given(told(max_size=12), cases, st.integers(60, 400), st.booleans())
def test_a_cut_loses_no_patch_and_breaks_no_rule(
    conversation: Told, case: tuple[str, Abilities], room: int, at_once: bool
) -> None:
    """By `govern` and by `Governor`, whatever is cut, the same holds as before the cut, and the wire takes it."""
    name, abilities = case
    wire = WIRES[name]
    budget, counter = Budget(room + 20, 10, 10), ByteCounter()
    governor = Governor(budget, Policy(), counter, abilities)
    given_ = 0
    for count in conversation.requests():
        messages = conversation.messages(count)
        try:
            if at_once:
                governed = govern(messages, budget=budget, counter=counter, abilities=abilities)
            else:
                governed = governor.step(messages[given_:])
        except ContextOverflow:
            given_ = len(messages)
            continue
        given_ = len(messages)
        kept, all_of_them = patches_of(governed.messages), patches_of(messages)
        if not abilities.folds_patches:
            told_now, told_before = ("\n\n".join(p.text for p in each if p.text) for each in (kept, all_of_them))
            assert told_now == told_before
            assert tools_after(kept, conversation.baseline) == tools_after(all_of_them, conversation.baseline)
        tools = conversation.array(count, name, abilities)
        parts = wire.encode(tuple(governed.messages), system="s", tools=tools, abilities=abilities)
        body: Any = wire.body(parts, model="m", max_output=9_000, abilities=abilities)
        assert [str(each) for each in wire.check(wire.mark_cache(body), abilities) if each.severity != "$"] == []


def test_a_tool_that_was_brought_before_a_cut_is_defined_after_it() -> None:
    """The conversation goes on with calls of it, so it stands there; a caller who folds patches turns that off."""
    new = ToolSpec("late", "came later", {})
    patch = SystemPatch("New: late.", tools=ToolChange(added=(new,)))
    step = (AssistantMessage((ToolCall("c1", "late"),), "tool_use"), ToolResult("c1", "late", (Text("out"),)))
    long = AssistantMessage((Text("x" * 900),))
    messages = (UserMessage((Text("a"),)), patch, long, UserMessage((Text("b " * 120),)), *step)
    for policy, stands in ((Policy(), True), (Policy(keep_patches=False), False)):
        governed = govern(
            messages, budget=Budget(900, 50, 50), policy=policy, counter=ByteCounter(), abilities=INLINE, factor=1.0
        )
        assert any(isinstance(decision, Cut) for decision in governed.decisions)
        sent = WIRES["anthropic"].encode(
            governed.messages, system="s", tools=(ToolSpec("a", "d", {}),), abilities=INLINE
        )
        assert ("came later" in json.dumps(sent)) is stands
        assert (governed.messages[0] is patch) is stands
