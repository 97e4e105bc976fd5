"""Every rule of the Responses wire: a payload that breaks it, and a near miss that does not."""

from __future__ import annotations

from typing import Any

import pytest

from governors.wire import WIRES
from governors.wire.base import Abilities

check = WIRES["openai_responses"].check
CAREFUL = Abilities()
THINKS = Abilities(thinking="effort", sampling=False, efforts=("low", "high"))

HI = {"role": "user", "content": "hi"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
DEVELOPER = {"role": "developer", "content": "be kind"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
TEXT = {"type": "input_text", "text": "x"}
POINT = {**TEXT, "prompt_cache_breakpoint": {"mode": "explicit"}}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "e"}
INCLUDE = ["reasoning.encrypted_content"]
TOOL = {"type": "function", "name": "t", "parameters": {"type": "object"}, "strict": False}
REFERRING = {**TOOL, "parameters": {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {}}}}
COMPACTION = {"type": "compaction", "encrypted_content": "e"}
TRIGGER = {"type": "compaction_trigger"}
CUSTOM = {"type": "custom_tool_call", "call_id": "a", "name": "t", "input": "free text"}


def call(identity: Any = "a", name: Any = "t", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": identity, "name": name, "arguments": arguments, **more}


def output(identity: Any = "a", given: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": identity, "output": given, **more}


def payload(*items: Any, **fields: Any) -> dict[str, Any]:
    return {**fields, "input": list(items)}


BROKEN: list[tuple[str, str, Any, Abilities]] = [
    ("SHAPE", "payload", None, CAREFUL),
    ("SHAPE", "input", {"input": 7}, CAREFUL),
    ("SHAPE", "input[0]", payload("hi"), CAREFUL),
    ("SHAPE", "input[0].type", payload({"type": 7}), CAREFUL),
    ("SHAPE", "input[0].role", payload({"role": "tool", "content": "x"}), CAREFUL),
    ("SHAPE", "input[0].content", payload({"role": "user", "content": None}), CAREFUL),
    ("SHAPE", "input[0].content[0]", payload({"role": "user", "content": ["x"]}), CAREFUL),
    ("SHAPE", "input[2].output", payload(HI, call(), output(given=[])), CAREFUL),
    ("SHAPE", "input[0].summary", payload({"type": "reasoning", "encrypted_content": "e"}, SAID), CAREFUL),
    ("SHAPE", "tools", payload(HI, tools={}), CAREFUL),
    ("SHAPE", "tools[0]", payload(HI, tools=["t"]), CAREFUL),
    ("SHAPE", "tools[0].name", payload(HI, tools=[{**TOOL, "name": ""}]), CAREFUL),
    ("C1", "input[0].content", payload({"role": "user", "content": "\udc00"}), CAREFUL),
    ("C1", "instructions", payload(HI, instructions="\udc00"), CAREFUL),
    ("C1", "input[1].arguments", payload(HI, call(arguments='{"a": "\\ud99c"}'), output()), CAREFUL),
    ("C2", "input[1].call_id", payload(HI, call(identity="")), CAREFUL),
    ("C2", "input[1].name", payload(HI, call(name=None), output()), CAREFUL),
    ("C2", "input[1].arguments", payload(HI, call(arguments="[]"), output()), CAREFUL),
    ("C3", "input[2].call_id", payload(HI, call(), call(), output()), CAREFUL),
    ("C3", "input[3]", payload(HI, call(), output(), output()), CAREFUL),
    ("C3", "input[1].call_id", payload(HI, output(identity=None)), CAREFUL),
    ("C6", "tools[1]", payload(HI, tools=[TOOL, {**TOOL, "name": "a"}]), CAREFUL),
    ("A12", "input", payload({"role": "user", "content": [IMAGE] * 3}), Abilities(max_images=2)),
    ("A12", "input[0].content[0]", payload({"role": "user", "content": [IMAGE]}), Abilities(max_image_bytes=3)),
    ("A12", "input[2].output[0]", payload(HI, call(), output(given=[IMAGE])), Abilities(max_image_bytes=3)),
    ("O1", "input[1]", payload(HI, call()), CAREFUL),
    ("O1", "input[1]", payload(HI, CUSTOM), CAREFUL),
    ("O1", "input[1]", payload(HI, output()), CAREFUL),
    ("O1", "input[0]", payload(output(), call()), CAREFUL),
    ("O1", "input[0]", payload(output(), call(), previous_response_id="r"), CAREFUL),
    ("O1", "input[1].arguments", payload(HI, call(arguments={}), output()), CAREFUL),
    ("O1", "input[1].call_id", payload(HI, call("a b"), output("a b")), CAREFUL),
    ("O1", "input[1].id", payload(HI, call(id="x_1"), output()), CAREFUL),
    ("O1", "input[1].id", payload(HI, call(id="fc_" + "1" * 62), output()), CAREFUL),
    ("O1", "input[0].id", payload({**REASONING, "id": 7}, SAID), CAREFUL),
    ("O2", "input[1]", payload(HI, REASONING), CAREFUL),
    ("O2", "input[1]", payload(HI, REASONING, HI), CAREFUL),
    ("O2", "input[2]", payload(HI, call(), REASONING, output()), CAREFUL),
    ("O2", "input[0].encrypted_content", payload({"type": "reasoning", "summary": []}, SAID, store=False), CAREFUL),
    ("O2", "input[0].id", payload({**REASONING, "id": "rs_1"}, SAID, store=False), CAREFUL),
    ("O2", "include", payload(HI, store=False), THINKS),
    ("O2", "include", payload(HI, store=False, include=["message.output_text.logprobs"]), THINKS),
    ("O4", "input", payload(), CAREFUL),
    ("O4", "input", {"input": ""}, CAREFUL),
    ("O4", "input[1]", payload(HI, TRIGGER, HI), CAREFUL),
    ("O4", "input[0].encrypted_content", payload({"type": "compaction"}, HI), CAREFUL),
    ("O5", "conversation", payload(HI, conversation="c", previous_response_id="r"), CAREFUL),
    ("O5", "max_output_tokens", payload(HI, max_output_tokens=15), CAREFUL),
    ("O5", "temperature", payload(HI, temperature=1), THINKS),
    ("O5", "top_p", payload(HI, top_p=1), THINKS),
    ("O5", "reasoning.effort", payload(HI, reasoning={"effort": "none"}), THINKS),
    ("O6", "input", payload({"role": "user", "content": [POINT] * 4}), CAREFUL),
    (
        "O6",
        "input",
        payload({"role": "user", "content": [POINT] * 5}, prompt_cache_options={"mode": "explicit"}),
        CAREFUL,
    ),
    ("O6", "prompt_cache_retention", payload(HI, prompt_cache_retention="24h"), CAREFUL),
    ("GLM", "tools[0].parameters", payload(HI, tools=[REFERRING]), Abilities(schema_references=False)),
]

FINE: list[tuple[str, Any, Abilities]] = [
    ("text as input", {"input": "hi"}, CAREFUL),
    ("a developer message anywhere", payload(DEVELOPER, HI, SAID, DEVELOPER, HI, DEVELOPER), CAREFUL),
    ("the assistant first and last", payload(SAID, HI, SAID), CAREFUL),
    ("a message between a call and its output", payload(HI, call(), HI, output()), CAREFUL),
    ("a reply between calls and outputs", payload(call(), call("b"), SAID, output("b"), output()), CAREFUL),
    ("an empty output", payload(HI, call(), output(given="")), CAREFUL),
    ("an image as output", payload(HI, call(), output(given=[TEXT, IMAGE])), CAREFUL),
    ("a call of free text", payload(HI, CUSTOM, {**output(), "type": "custom_tool_call_output"}), CAREFUL),
    ("an output whose call the provider keeps", payload(output(), previous_response_id="r"), CAREFUL),
    ("an output whose call a conversation keeps", payload(output(), conversation={"id": "c"}), CAREFUL),
    ("reasoning before a call", payload(HI, REASONING, call(), output()), CAREFUL),
    ("reasoning twice, then text", payload(HI, REASONING, REASONING, SAID, HI), CAREFUL),
    ("reasoning before the provider's own call", payload(HI, REASONING, {"type": "web_search_call"}), CAREFUL),
    ("reasoning that is stored", payload({"type": "reasoning", "summary": [], "id": "rs_1"}, SAID), CAREFUL),
    ("an id of 64 characters", payload(HI, call(id="fc_" + "1" * 61), output()), CAREFUL),
    ("an output's own id", payload(HI, call(), output(id="out_1")), CAREFUL),
    ("a request that includes reasoning", payload(HI, store=False, include=INCLUDE), THINKS),
    ("nothing to include", payload(HI, store=False), CAREFUL),
    ("a trigger at the end", payload(HI, TRIGGER), CAREFUL),
    ("a compaction", payload(COMPACTION, HI), CAREFUL),
    ("an item that is not known here", payload(HI, {"type": "item_reference", "id": "msg_1"}), CAREFUL),
    ("16 tokens", payload(HI, max_output_tokens=16, temperature=0.5, previous_response_id="r"), CAREFUL),
    ("an effort that is taken", payload(HI, reasoning={"effort": "low"}), THINKS),
    ("three breakpoints", payload({"role": "user", "content": [POINT] * 3}), CAREFUL),
    (
        "four breakpoints, none by the provider",
        payload({"role": "user", "content": [POINT] * 4}, prompt_cache_options={"mode": "explicit"}),
        CAREFUL,
    ),
    ("two images", payload({"role": "user", "content": [IMAGE] * 2}), Abilities(max_images=2, max_image_bytes=4)),
    ("a reference that is followed", payload(HI, tools=[REFERRING]), CAREFUL),
    ("the provider's own tool", payload(HI, tools=[{"type": "web_search"}, TOOL]), CAREFUL),
    ("no tools", payload(HI, tools=None), CAREFUL),
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
    wanted = {"SHAPE", "C1", "C2", "C3", "C6", "A12", "O1", "O2", "O4", "O5", "O6", "GLM"}
    assert {rule for rule, *_ in BROKEN} == wanted


def test_severities() -> None:
    """What only costs money is no refusal; reasoning that cannot go back is lost silently."""
    found = {(each.rule, each.severity) for _, _, body, abilities in BROKEN for each in check(body, abilities)}
    assert {rule for rule, severity in found if severity == "$"} == {"C6", "O6"}
    assert {rule for rule, severity in found if severity == "S"} == {"O2"}
