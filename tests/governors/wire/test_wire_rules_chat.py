"""Every rule of the Chat Completions wire: a payload that breaks it, and a near miss that does not."""

from __future__ import annotations

from typing import Any

import pytest

from governors.wire import WIRES
from governors.wire.base import Abilities

check = WIRES["openai_chat"].check
CAREFUL = Abilities()
STRICT = Abilities(strict_alternation=True)
ANYWHERE = Abilities(system_anywhere=True, developer_role=True)

HI = {"role": "user", "content": "hi"}
OK = {"role": "assistant", "content": "ok"}
SYSTEM = {"role": "system", "content": "be kind"}
DEVELOPER = {"role": "developer", "content": "be kind"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TEXT = {"type": "text", "text": "x"}
TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
REFERRING = {"type": "function", "function": {"name": "t", "parameters": {"items": [{"$ref": "#/$defs/X"}]}}}
SIGNED = Abilities(call_signatures=True)
REPLAYS = Abilities(replay_reasoning=True)


def call(identity: Any = "a", name: Any = "t", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def reply(*calls: Any, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(identity: Any = "a", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content, **more}


SIGNED_CALL = {**call(), "extra_content": {"google": {"thought_signature": "s"}}}


def payload(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


BROKEN: list[tuple[str, str, Any, Abilities]] = [
    ("SHAPE", "payload", None, CAREFUL),
    ("SHAPE", "messages", payload(), CAREFUL),
    ("SHAPE", "messages", {"messages": "hi"}, CAREFUL),
    ("SHAPE", "messages[0]", payload("hi"), CAREFUL),
    ("SHAPE", "messages[0].role", payload({"role": "model", "content": "x"}), CAREFUL),
    ("SHAPE", "messages[0].content", payload({"role": "user", "content": None}), CAREFUL),
    ("SHAPE", "messages[0].content", payload({"role": "user", "content": []}), CAREFUL),
    ("SHAPE", "messages[0].content[0]", payload({"role": "user", "content": ["x"]}), CAREFUL),
    ("SHAPE", "messages[1].tool_calls", payload(HI, reply()), CAREFUL),
    ("SHAPE", "messages[1].tool_calls[0]", payload(HI, reply({"id": "a"}), result()), CAREFUL),
    ("SHAPE", "tools", payload(HI, tools="t"), CAREFUL),
    ("SHAPE", "tools[0]", payload(HI, tools=[{"name": "t"}]), CAREFUL),
    ("SHAPE", "tools[0].function.name", payload(HI, tools=[{"type": "function", "function": {}}]), CAREFUL),
    ("C1", "messages[0].content", payload({"role": "user", "content": "\udc00"}), CAREFUL),
    (
        "C1",
        "messages[1].tool_calls[0].function.arguments",
        payload(HI, reply(call(arguments='{"a": "\\ud99c"}')), result()),
        CAREFUL,
    ),
    ("C2", "messages[1].tool_calls[0].function.name", payload(HI, reply(call(name="")), result()), CAREFUL),
    ("C2", "messages[1].tool_calls[0].id", payload(HI, reply(call(identity=None)), HI), CAREFUL),
    *(
        (
            "C2",
            "messages[1].tool_calls[0].function.arguments",
            payload(HI, reply(call(arguments=bad)), result()),
            CAREFUL,
        )
        for bad in ('{"a":', "", "[]", '{"a": NaN}', '{"a": 1e999}', {}, None, '{"a":' * 200 + "1" + "}" * 200)
    ),
    ("C3", "messages[1].tool_calls[0].id", payload(HI, reply(call()), HI), CAREFUL),
    ("C3", "messages[1].tool_calls[1].id", payload(HI, reply(call(), call("b")), result()), CAREFUL),
    ("C3", "messages[3]", payload(HI, reply(call()), result(), result()), CAREFUL),
    ("C3", "messages[3].tool_calls[0].id", payload(HI, reply(call()), result(), reply(call()), result()), CAREFUL),
    ("C3", "messages[1].tool_call_id", payload(HI, result(identity=None)), CAREFUL),
    ("C4", "messages[1]", payload(HI, result()), CAREFUL),
    ("C4", "messages[3]", payload(HI, reply(call()), result(), result("b")), CAREFUL),
    ("C5", "messages[1]", payload(HI, {"role": "assistant", "content": "", "reasoning_content": "hm"}, HI), CAREFUL),
    ("H1", "messages[1].tool_calls[0].id", payload(HI, reply(call()), HI, result()), CAREFUL),
    ("H1", "messages[1].tool_calls[0].id", payload(HI, reply(call()), OK, result()), CAREFUL),
    ("H1", "messages[1].tool_calls[0].id", payload(HI, reply(call()), SYSTEM, result()), ANYWHERE),
    ("H1", "messages[0]", payload(result(), reply(call()), HI), CAREFUL),
    ("H1", "messages[1].content", payload(HI, {"role": "assistant", "content": None}, HI), CAREFUL),
    ("H1", "messages[1].content", payload(HI, reply(call()), result()), Abilities(null_content=False)),
    ("H2", "messages[2].content[0]", payload(HI, reply(call()), result(content=[IMAGE])), CAREFUL),
    ("H2", "messages[2].content", payload(HI, reply(call()), result(content=None)), CAREFUL),
    ("H2", "messages[1].tool_calls[0].id", payload(HI, reply(call()), result()), Abilities(id_pattern="[a-z]{9}")),
    ("H2", "messages[2].name", payload(HI, reply(call()), result()), Abilities(tool_name_in_result=True)),
    ("H3", "messages[1]", payload(SYSTEM, SYSTEM, HI), CAREFUL),
    ("H3", "messages[1]", payload(HI, SYSTEM), CAREFUL),
    ("H3", "messages[0]", payload(DEVELOPER, HI), CAREFUL),
    ("H3", "max_completion_tokens", payload(HI, max_completion_tokens=9), CAREFUL),
    ("H3", "max_tokens", payload(HI, max_tokens=9), Abilities(max_tokens_field="max_completion_tokens")),
    ("H3", "messages[1]", payload(HI, HI), STRICT),
    ("H3", "messages[2]", payload(SYSTEM, HI, HI), STRICT),
    ("H3", "messages[1]", payload(SYSTEM, OK), STRICT),
    ("H3", "messages[2]", payload(HI, OK, OK), STRICT),
    ("H4", "reasoning_effort", payload(HI, reasoning_effort="low", tools=[TOOL]), Abilities(thinking_with_tools=False)),
    ("C6", "tools[1]", payload(HI, tools=[TOOL, {**TOOL, "function": {"name": "a"}}]), CAREFUL),
    ("A12", "messages", payload({"role": "user", "content": [IMAGE] * 3}), Abilities(max_images=2)),
    ("A12", "messages", payload(HI, HI), Abilities(max_messages=1)),
    ("A12", "payload", payload(HI), Abilities(max_body_bytes=31)),
    ("A12", "messages[0].content[0]", payload({"role": "user", "content": [IMAGE]}), Abilities(max_image_bytes=3)),
    ("G2", "messages[1].tool_calls[0]", payload(HI, reply(call()), result()), SIGNED),
    ("G2", "messages[1].tool_calls[0]", payload(HI, reply({**call(), "extra_content": {}}), result()), SIGNED),
    ("DEEPSEEK", "messages[1].reasoning_content", payload(HI, reply(call()), result()), REPLAYS),
    ("KIMI", "tool_choice", payload(HI, tool_choice="required"), Abilities(forced_tool=False)),
    ("KIMI", "tool_choice", payload(HI, tool_choice={"type": "function"}), Abilities(forced_tool=False)),
    ("GLM", "reasoning_effort", payload(HI, reasoning_effort="none"), Abilities(efforts=("low", "high"))),
    ("GLM", "thinking.clear_thinking", payload(HI, thinking={"type": "enabled"}), Abilities(keeps_thinking=True)),
    ("GLM", "tools[0].function.parameters", payload(HI, tools=[REFERRING]), Abilities(schema_references=False)),
]

FINE: list[tuple[str, Any, Abilities]] = [
    ("no system prompt", payload(HI), CAREFUL),
    ("one system prompt", payload(SYSTEM, HI, OK, HI, max_tokens=9), CAREFUL),
    ("neighbours of one role", payload(HI, HI, OK, OK), CAREFUL),
    ("an empty text of the user's", payload({"role": "user", "content": ""}), CAREFUL),
    ("developer messages anywhere", payload(DEVELOPER, HI, DEVELOPER, OK, SYSTEM), ANYWHERE),
    ("null beside calls", payload(HI, reply(call()), result()), CAREFUL),
    ("an empty text beside calls", payload(HI, reply(call(), content=""), result()), Abilities(null_content=False)),
    ("calls without content", payload(HI, {"role": "assistant", "tool_calls": [call()]}, result()), CAREFUL),
    ("results in another order", payload(HI, reply(call(), call("b")), result("b"), result()), CAREFUL),
    ("text parts in a result", payload(HI, reply(call()), result(content=[TEXT])), CAREFUL),
    ("an image of the user's", payload({"role": "user", "content": [TEXT, IMAGE]}), CAREFUL),
    ("an escaped surrogate pair", payload(HI, reply(call(arguments='{"a": "\\ud83d\\ude42"}')), result()), CAREFUL),
    ("an escape that is escaped", payload(HI, reply(call(arguments='{"a": "\\\\ud83d"}')), result()), CAREFUL),
    (
        "many containers side by side",
        payload(HI, reply(call(arguments='{"a": [' + "[]," * 200 + "1]}")), result()),
        CAREFUL,
    ),
    (
        "an id of the host's form",
        payload(HI, reply(call("abcdefghi")), result("abcdefghi")),
        Abilities(id_pattern="[a-z]{9}"),
    ),
    ("the tool's name", payload(HI, reply(call()), result(name="t")), Abilities(tool_name_in_result=True)),
    ("reasoning beside calls", payload(HI, reply(call(), reasoning_content=""), result()), CAREFUL),
    ("reasoning beside text", payload(HI, {**OK, "reasoning_content": "hm"}, HI), CAREFUL),
    ("a step between replies", payload(HI, reply(call()), result(), OK, HI), STRICT),
    ("no effort with tools", payload(HI, reasoning_effort="none", tools=[TOOL]), Abilities(thinking_with_tools=False)),
    ("effort without tools", payload(HI, reasoning_effort="low"), Abilities(thinking_with_tools=False)),
    ("tools with parameters", payload(HI, tools=[TOOL, {**TOOL, "function": {"name": "u"}}]), CAREFUL),
    ("two images", payload({"role": "user", "content": [IMAGE] * 2}), Abilities(max_images=2, max_image_bytes=4)),
    ("a body of the largest size", payload(HI), Abilities(max_messages=1, max_body_bytes=33)),
    ("a signed call, and one beside it", payload(HI, reply(SIGNED_CALL, call("b")), result(), result("b")), SIGNED),
    ("an older turn without reasoning", payload(HI, reply(call()), result(), OK, HI), REPLAYS),
    ("empty reasoning", payload(HI, reply(call(), reasoning_content=""), result()), REPLAYS),
    ("a free choice", payload(HI, tool_choice="auto"), Abilities(forced_tool=False)),
    ("a forced call", payload(HI, tool_choice="required"), CAREFUL),
    ("an effort that is taken", payload(HI, reasoning_effort="low"), Abilities(efforts=("low", "high"))),
    (
        "thinking that is kept, or off",
        payload(HI, thinking={"type": "enabled", "clear_thinking": False}),
        Abilities(keeps_thinking=True),
    ),
    ("no thinking to keep", payload(HI, thinking={"type": "disabled"}), Abilities(keeps_thinking=True)),
    ("a reference that is followed", payload(HI, tools=[REFERRING]), CAREFUL),
]


@pytest.mark.parametrize(("rule", "where", "body", "abilities"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_broken_rule_is_named_with_its_place(rule: str, where: str, body: Any, abilities: Abilities) -> None:
    """The payload breaks the rule at that place."""
    assert (rule, where) in {(violation.rule, violation.where) for violation in check(body, abilities)}


@pytest.mark.parametrize(("body", "abilities"), [case[1:] for case in FINE], ids=[case[0] for case in FINE])
def test_a_near_miss_is_not_flagged(body: Any, abilities: Abilities) -> None:
    """The payload looks like a fault and is legal."""
    assert check(body, abilities) == ()


def test_every_rule_is_broken_here() -> None:
    """The table has a payload for each rule that this wire's checker knows."""
    wanted = {"SHAPE", "C1", "C2", "C3", "C4", "C5", "C6", "A12", "H1", "H2", "H3", "H4"}
    assert {rule for rule, *_ in BROKEN} == {*wanted, "G2", "DEEPSEEK", "KIMI", "GLM"}


def test_severities() -> None:
    """An orphan and lost reasoning are silent losses, unsorted tools cost money, all else is a refusal."""
    found = {(each.rule, each.severity) for _, _, body, abilities in BROKEN for each in check(body, abilities)}
    assert {rule for rule, severity in found if severity == "S"} == {"C4", "GLM"}
    assert {rule for rule, severity in found if severity == "$"} == {"C6"}
