"""Every rule of the Anthropic wire: a payload that breaks it, and a near miss that does not."""

from __future__ import annotations

from typing import Any

import pytest

from governors.wire import WIRES
from governors.wire.base import Abilities

check = WIRES["anthropic"].check
CAREFUL = Abilities()
ADAPTIVE = Abilities(thinking="adaptive")
BUDGET = Abilities(thinking="budget")
SYSTEM = Abilities(system_after_user=True)

HI = {"role": "user", "content": "hi"}
OK = {"role": "assistant", "content": "ok"}
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
THINKING = {"type": "thinking", "thinking": "", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "d"}
TOOL = {"name": "t", "input_schema": {"type": "object"}}
REFERRING = {"name": "t", "input_schema": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}}}
SUMMARY = {"type": "compaction", "content": "so far", "signature": "s"}
BOUND = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
UNSIGNED = Abilities(unsigned_thinking=True)


def use(identity: Any = "a", name: Any = "t", given: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {} if given is None else given, **more}


def result(identity: Any = "a", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def reply(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def payload(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def step(call: Any = None, answer: Any = None) -> tuple[Any, ...]:
    return HI, reply(call or use()), user(answer or result())


def marked(*marks: Any) -> dict[str, Any]:
    return user(*({**TEXT, "cache_control": mark} for mark in marks))


BROKEN: list[tuple[str, str, Any, Abilities]] = [
    ("SHAPE", "payload", [], CAREFUL),
    ("SHAPE", "messages", {}, CAREFUL),
    ("SHAPE", "messages[0]", payload(7), CAREFUL),
    ("SHAPE", "messages[0].role", payload({"role": "tool", "content": "x"}), CAREFUL),
    ("SHAPE", "messages[0].content", payload({"role": "user", "content": None}), CAREFUL),
    ("SHAPE", "messages[0].content[0]", payload(user({"text": "x"})), CAREFUL),
    ("SHAPE", "messages[0].content[0].text", payload(user({"type": "text", "text": 1})), CAREFUL),
    ("SHAPE", "temperature", payload(HI, temperature=float("nan")), CAREFUL),
    ("SHAPE", "metadata", payload(HI, metadata=b"raw"), CAREFUL),
    ("SHAPE", "system", payload(HI, system=1), CAREFUL),
    ("SHAPE", "system[0]", payload(HI, system=["x"]), CAREFUL),
    ("SHAPE", "tools", payload(HI, tools={}), CAREFUL),
    ("SHAPE", "tools[0]", payload(HI, tools=["t"]), CAREFUL),
    ("SHAPE", "tools[0].input_schema", payload(HI, tools=[{"name": "t"}]), CAREFUL),
    ("SHAPE", "thinking", payload(HI, thinking="on"), CAREFUL),
    ("SHAPE", "messages[0].content[0]", payload(marked({"type": "forever"})), CAREFUL),
    ("SHAPE", "messages[1].content[0].thinking", payload(HI, reply({**THINKING, "thinking": 1}, TEXT), HI), CAREFUL),
    ("SHAPE", "messages[2].content[0].content", payload(*step(answer=result(content=1))), CAREFUL),
    ("SHAPE", "messages[2].content[0].content[0]", payload(*step(answer=result(content=["x"]))), CAREFUL),
    ("C1", "messages[0].content", payload({"role": "user", "content": "\ud83d"}), CAREFUL),
    ("C1", "messages[1].content[0].input", payload(*step(use(given={"\udc00": 1}))), CAREFUL),
    ("C2", "messages[1].content[0].name", payload(*step(use(name=""))), CAREFUL),
    ("C2", "messages[1].content[0].id", payload(HI, reply(use(identity="")), HI), CAREFUL),
    ("C2", "messages[1].content[0].input", payload(*step(use(given="{}"))), CAREFUL),
    ("C2", "messages[0].content[0]", payload(user(use()), user(result())), CAREFUL),
    ("C3", "messages[1].content[0]", payload(HI, reply(use()), HI), CAREFUL),
    ("C3", "messages[1].content[0]", payload(HI, reply(use())), Abilities(prefill=True)),
    ("C3", "messages[2].content[1]", payload(HI, reply(use()), user(result(), result())), CAREFUL),
    ("C3", "messages[3].content[0]", payload(*step(), user(result())), CAREFUL),
    ("C3", "messages[2].content[0].tool_use_id", payload(HI, OK, user(result(identity=None))), CAREFUL),
    ("C4", "messages[2].content[1]", payload(HI, reply(use()), user(result(), result("b"))), CAREFUL),
    ("C4", "messages[0].content[0]", payload(user(result())), CAREFUL),
    ("C5", "messages[1]", payload(HI, reply(THINKING), HI), CAREFUL),
    ("A1", "messages", payload(), CAREFUL),
    ("A1", "messages[0]", payload(OK, HI), CAREFUL),
    ("A1", "messages[0]", payload({"role": "system", "content": "x"}, HI), SYSTEM),
    ("A1", "messages[1]", payload(HI, HI), Abilities(strict_alternation=True)),
    ("A2", "messages[1].content[0]", payload(HI, reply(use()), HI, user(result())), CAREFUL),
    ("A2", "messages[1].content[0]", payload(HI, reply(use()), OK, user(result())), CAREFUL),
    ("A2", "messages[2].content[1]", payload(HI, reply(use()), user(TEXT, result())), CAREFUL),
    ("A2", "messages[3].content[0]", payload(HI, reply(use(), use("b")), user(result()), user(result("b"))), CAREFUL),
    ("A2", "messages[0].content[0]", payload(user(result()), reply(use()), HI), CAREFUL),
    ("A2", "messages[2].content[0]", payload(HI, reply(use()), reply(result()), HI), CAREFUL),
    ("A3", "messages[1].content[0].id", payload(*step(use("a b"), result("a b"))), CAREFUL),
    ("A3", "messages[2].content[0].tool_use_id", payload(*step(use("a" * 65), result("a" * 65))), CAREFUL),
    ("A3", "messages[1].content[0].id", payload(*step()), Abilities(id_pattern="[0-9]+")),
    ("A3", "messages[3].content[0].id", payload(*step(), reply(use()), user(result())), CAREFUL),
    ("A3", "messages[1].content[1].id", payload(HI, reply(use(), use()), user(result())), CAREFUL),
    ("A3", "messages[1].content[0].name", payload(*step(use(name="a.b"))), CAREFUL),
    ("A3", "tools[0].name", payload(HI, tools=[{**TOOL, "name": "a b"}]), CAREFUL),
    ("A3", "tools[1].name", payload(HI, tools=[TOOL, TOOL]), CAREFUL),
    ("A3", "tools", payload(HI, tools=[{**TOOL, "defer_loading": True}]), CAREFUL),
    (
        "A3",
        "tools[1]",
        payload(HI, tools=[TOOL, {**TOOL, "name": "u", "defer_loading": True, "cache_control": MARK}]),
        CAREFUL,
    ),
    (
        "A3",
        "messages[2].content[0].content[0]",
        payload(*step(answer=result(content=[{"type": "tool_reference", "tool_name": "u"}])), tools=[TOOL]),
        CAREFUL,
    ),
    ("A4", "messages[0].content", payload(user()), CAREFUL),
    ("A4", "messages[0].content", payload({"role": "user", "content": ""}), CAREFUL),
    ("A4", "messages[0].content[0]", payload(user({"type": "text", "text": " \n"})), CAREFUL),
    ("A4", "messages[2].content[0].content", payload(*step(answer=result(content=[]))), CAREFUL),
    ("A4", "messages[2].content[0].content", payload(*step(answer=result(content=""))), CAREFUL),
    (
        "A4",
        "messages[2].content[0].content[1]",
        payload(*step(answer=result(content=[TEXT, {**TEXT, "text": ""}]))),
        CAREFUL,
    ),
    ("A4", "messages[2].content[0].content[0]", payload(*step(answer=result(content=[IMAGE], is_error=True))), CAREFUL),
    ("A4", "system[0]", payload(HI, system=[{**TEXT, "text": ""}]), CAREFUL),
    ("A5", "messages[1].content[0].signature", payload(HI, reply({**THINKING, "signature": ""}, TEXT), HI), CAREFUL),
    ("A5", "messages[1].content[0].data", payload(HI, reply({**REDACTED, "data": None}, TEXT), HI), CAREFUL),
    ("A5", "messages[1].content[0]", payload(HI, reply({**THINKING, "cache_control": MARK}, TEXT), HI), CAREFUL),
    ("A5", "messages[1].content[1]", payload(HI, reply(TEXT, REDACTED), HI), CAREFUL),
    ("A5", "messages[0].content[0]", payload(user(THINKING, TEXT)), CAREFUL),
    ("A7", "messages[1]", payload(HI, OK), CAREFUL),
    ("A7", "thinking", payload(HI, thinking={"type": "adaptive"}), BUDGET),
    ("A7", "thinking", payload(HI, thinking={"type": "enabled", "budget_tokens": 2000}), ADAPTIVE),
    ("A7", "thinking.budget_tokens", payload(HI, thinking={"type": "enabled", "budget_tokens": 1023}), BUDGET),
    (
        "A7",
        "thinking.budget_tokens",
        payload(HI, thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=2000),
        BUDGET,
    ),
    ("A7", "tool_choice", payload(HI, tool_choice={"type": "any"}), Abilities(forced_tool=False)),
    ("A7", "tool_choice", payload(HI, tool_choice={"type": "tool"}, thinking={"type": "adaptive"}), ADAPTIVE),
    ("A7", "top_p", payload(HI, top_p=0.9), Abilities(sampling=False)),
    ("A7", "temperature", payload(HI, temperature=0.5, thinking={"type": "adaptive"}), ADAPTIVE),
    ("A7", "top_k", payload(HI, top_k=5, thinking={"type": "adaptive"}), ADAPTIVE),
    ("A8", "messages[0].content[4]", payload(marked(*[MARK] * 5)), CAREFUL),
    ("A8", "cache_control", payload(marked(*[MARK] * 4), cache_control=MARK), CAREFUL),
    (
        "A8",
        "messages[0].content[3]",
        payload(marked(MARK, MARK, MARK, MARK), tools=[{**TOOL, "cache_control": MARK}]),
        CAREFUL,
    ),
    ("A8", "messages[0].content[1]", payload(marked(MARK, HOUR)), CAREFUL),
    ("A8", "messages[0].content[0]", payload(marked(HOUR), system=[{**TEXT, "cache_control": MARK}]), CAREFUL),
    ("A8", "messages[0].content[0]", payload(user({"type": "text", "text": " ", "cache_control": MARK})), CAREFUL),
    ("A8", "cache_control", payload(marked(HOUR), cache_control=MARK), CAREFUL),
    (
        "A8",
        "messages[1].content[0]",
        payload(HI, {"role": "system", "content": [{**TEXT, "cache_control": MARK}], "clear_at": 1}),
        SYSTEM,
    ),
    ("A10", "messages[1]", payload(HI, {"role": "system", "content": "x"}), CAREFUL),
    ("A10", "messages[2]", payload(HI, OK, {"role": "system", "content": "x"}), SYSTEM),
    ("A10", "messages[1]", payload(HI, {"role": "system", "content": "x"}, HI), SYSTEM),
    ("A10", "messages[1].content[0]", payload(HI, {"role": "system", "content": [IMAGE]}), SYSTEM),
    ("C6", "tools[1]", payload(HI, tools=[{**TOOL, "name": "u"}, TOOL]), CAREFUL),
    ("A9", "messages", payload(marked(MARK), user(*[TEXT] * 21)), CAREFUL),
    ("A9", "messages", payload(user(*[TEXT] * 21), system=[{**TEXT, "cache_control": MARK}]), CAREFUL),
    ("A11", "messages[1].content[0]", payload(HI, reply(SUMMARY), HI), CAREFUL),
    ("A11", "messages[0].content[1]", payload(user(TEXT, SUMMARY)), CAREFUL),
    ("A11", "messages[1].content[0]", payload(user(SUMMARY), user(SUMMARY)), CAREFUL),
    ("A11", "messages[0].content[0].content", payload(user({**SUMMARY, "content": " "})), CAREFUL),
    ("A11", "compaction", payload(HI, compaction={"type": "auto"}, context_management={}), CAREFUL),
    ("A11", "compaction", payload(HI, reply(use()), compaction={}), Abilities(prefill=True)),
    ("A12", "messages", payload(user(*[IMAGE] * 3)), Abilities(max_images=2)),
    ("A12", "messages", payload(*step(answer=result(content=[IMAGE] * 3))), Abilities(max_images=2)),
    ("A12", "messages[0].content[0]", payload(user(IMAGE)), Abilities(max_image_bytes=3)),
    ("A12", "messages", payload(HI, HI), Abilities(max_messages=1)),
    ("A12", "payload", payload(HI), Abilities(max_body_bytes=20)),
    ("A12", "stream", payload(HI, max_tokens=0, stream=True), CAREFUL),
    ("A12", "thinking", payload(HI, max_tokens=0, thinking={"type": "enabled", "budget_tokens": 2000}), BUDGET),
    ("A12", "tool_choice", payload(HI, max_tokens=0, tool_choice={"type": "any"}), CAREFUL),
    ("DEEPSEEK", "messages[1].content[0].signature", payload(HI, reply(THINKING, TEXT), HI), UNSIGNED),
    ("GLM", "tools[0].input_schema", payload(HI, tools=[REFERRING]), Abilities(schema_references=False)),
]

FINE: list[tuple[str, Any, Abilities]] = [
    ("text as a string", payload(HI, OK, HI), CAREFUL),
    ("neighbours of one role, which the provider merges", payload(HI, HI, OK, OK, HI), CAREFUL),
    ("user and assistant in turn", payload(HI, OK, HI), Abilities(strict_alternation=True)),
    ("a real surrogate pair", payload(user({"type": "text", "text": "🙂"})), CAREFUL),
    ("text after the results", payload(HI, reply(use()), user(result(), TEXT, IMAGE)), CAREFUL),
    ("results in another order", payload(HI, reply(use(), use("b")), user(result("b"), result())), CAREFUL),
    ("text after a call in the reply", payload(HI, reply(use(), TEXT), user(result())), CAREFUL),
    ("an id of 64 characters", payload(*step(use("a" * 64), result("a" * 64))), CAREFUL),
    ("a result without content", payload(HI, reply(use()), user({"type": "tool_result", "tool_use_id": "a"})), CAREFUL),
    ("an image in a result", payload(*step(answer=result(content=[IMAGE]))), CAREFUL),
    ("an error of text", payload(*step(answer=result(content=[TEXT], is_error=True))), CAREFUL),
    ("an image in what is no error", payload(*step(answer=result(content=[IMAGE], is_error=False))), CAREFUL),
    ("thinking without text, then a call", payload(HI, reply(THINKING, REDACTED, use()), user(result())), CAREFUL),
    ("thinking between texts", payload(HI, reply(TEXT, THINKING, TEXT), HI), CAREFUL),
    ("a prefill where it is taken", payload(HI, OK), Abilities(prefill=True)),
    (
        "a forced call without thinking",
        payload(HI, tool_choice={"type": "any"}, thinking={"type": "disabled"}),
        CAREFUL,
    ),
    ("a free choice with thinking", payload(HI, tool_choice={"type": "auto"}, thinking={"type": "adaptive"}), ADAPTIVE),
    ("a budget", payload(HI, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=1025), BUDGET),
    ("sampling", payload(HI, temperature=0.5, top_k=3), CAREFUL),
    ("temperature 1 while thinking", payload(HI, temperature=1, thinking={"type": "adaptive"}), ADAPTIVE),
    ("four marks, 1h first", payload(marked(HOUR, HOUR, MARK, MARK)), CAREFUL),
    ("three marks and one on top", payload(marked(MARK, MARK, MARK), cache_control=MARK), CAREFUL),
    ("a mark that is null", payload(marked(*[None] * 9)), CAREFUL),
    ("cache_control as an argument", payload(*step(use(given={"cache_control": 1}))), CAREFUL),
    ("one tool deferred", payload(HI, tools=[TOOL, {**TOOL, "name": "u", "defer_loading": True}]), CAREFUL),
    ("the provider's own tool", payload(HI, tools=[{"type": "web_search_20260318", "name": "web_search"}]), CAREFUL),
    (
        "a reference to a tool that is there",
        payload(*step(answer=result(content=[{"type": "tool_reference", "tool_name": "t"}])), tools=[TOOL]),
        CAREFUL,
    ),
    ("no system prompt", payload(HI, system=[], tools=[]), CAREFUL),
    ("system last", payload(HI, {"role": "system", "content": "x"}), SYSTEM),
    ("system after results", payload(*step(), {"role": "system", "content": "x"}, OK, HI), SYSTEM),
    ("tools in order", payload(HI, tools=[TOOL, {**TOOL, "name": "u"}]), CAREFUL),
    ("20 blocks after a mark", payload(marked(MARK), user(*[TEXT] * 20)), CAREFUL),
    ("no mark at all", payload(user(*[TEXT] * 30)), CAREFUL),
    ("many blocks and a mark on top", payload(marked(MARK), user(*[TEXT] * 30), cache_control=MARK), CAREFUL),
    ("a summary first, by the assistant", payload(reply(SUMMARY), HI), CAREFUL),
    ("a compaction that failed", payload(HI, reply({"type": "compaction", "content": None}, TEXT), HI), CAREFUL),
    ("a request to compact", payload(HI, OK, HI, compaction={}), CAREFUL),
    ("two images", payload(user(IMAGE, IMAGE)), Abilities(max_images=2, max_image_bytes=4)),
    ("a request for 0 tokens", payload(HI, max_tokens=0, tool_choice={"type": "auto"}, stream=False), CAREFUL),
    ("a request for 0 tokens of a model that thinks", payload(HI, max_tokens=0, thinking=BOUND), ADAPTIVE),
    ("thinking without signature", payload(HI, reply({**THINKING, "signature": ""}, TEXT), HI), UNSIGNED),
    ("a reference that is followed", payload(HI, tools=[REFERRING]), CAREFUL),
    ("reasoning that may be dropped", payload(HI, thinking=BOUND), ADAPTIVE),
    ("a block that is not known here", payload(user({"type": "search_result", "source": {}})), CAREFUL),
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
    wanted = {"C1", "C2", "C3", "C4", "C5", "C6", *(f"A{number}" for number in range(1, 13) if number != 6)}
    assert {rule for rule, *_ in BROKEN} == {*wanted, "SHAPE", "DEEPSEEK", "GLM"}  # A6: test_wire_binding


def test_only_an_orphan_result_is_no_refusal() -> None:
    """C4 is a silent loss, C6 and A9 cost money, all else is a refusal."""
    severities = {(found.rule, found.severity) for _, _, body, abilities in BROKEN for found in check(body, abilities)}
    assert {rule for rule, severity in severities if severity == "S"} == {"C4"}
    assert {rule for rule, severity in severities if severity == "$"} == {"C6", "A9"}
    assert not {rule for rule, severity in severities if severity == "E"} & {"C4", "C6", "A9"}


def test_a_violation_says_what_and_where() -> None:
    """Its text has the rule, the place and the problem."""
    assert str(check(payload(OK, HI), CAREFUL)[0]) == (
        "A1 at messages[0]: the first message has role assistant; it must be user"
    )


def test_a_payload_that_contains_itself_is_not_json() -> None:
    """Endless nesting is a violation, not an endless search."""
    body = payload(HI)
    body["metadata"] = {"again": [body, body]}
    assert {violation.rule for violation in check(body, CAREFUL)} == {"SHAPE"}
