"""The rules of the Anthropic Messages protocol for what stands around the messages (A3, A4 on system, A7, A8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .anthropic_cache import MOST_MARKS, marks
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of
from .common import is_blank

CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
SAMPLING = ("temperature", "top_p", "top_k")
LEAST_BUDGET = 1_024


def check_fields(payload: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules broken outside the order and pairing of messages."""
    yield from _check_system(payload.get("system"))
    yield from _check_tools(payload.get("tools"))
    yield from _check_ids(payload, re.compile(abilities.id_pattern))
    yield from _check_thinking(payload, abilities)
    yield from _check_sampling(payload, abilities)
    yield from _check_marks(payload)


def _check_system(system: Any) -> Iterator[Violation]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield misshapen("system", "text or a list of text blocks", system)
        return
    for index, block in enumerate(system):
        where = f"system[{index}]"
        if not isinstance(block, dict) or not isinstance(block.get("text"), str):
            yield misshapen(where, "a text block", block)
        elif is_blank(block["text"]):
            yield refused("A4", where, "the text is empty (white space counts as empty)")


def _check_tools(tools: Any) -> Iterator[Violation]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield misshapen("tools", "a list", tools)
        return
    names: set[str] = set()
    deferred = 0
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if not isinstance(tool, dict):
            yield misshapen(where, "an object", tool)
            continue
        name = text_of(tool.get("name"))
        if not TOOL_NAME.fullmatch(name):
            yield refused("A3", f"{where}.name", f"{name!r} is not 1 to 128 letters, digits, _ and -")
        elif name in names:
            yield refused("A3", f"{where}.name", f"two tools are named {name!r}")
        names.add(name)
        if tool.get("defer_loading"):
            deferred += 1
            if tool.get("cache_control") is not None:
                yield refused("A3", where, "a tool with deferred loading carries a cache mark")
        if tool.get("type") in (None, "custom"):  # the provider's own tools bring no schema
            schema = tool.get("input_schema")
            if not isinstance(schema, dict) or schema.get("type") != "object":
                yield refused("SHAPE", f"{where}.input_schema", "is not a schema with type object")
    if tools and deferred == len(tools):
        yield refused("A3", "tools", "every tool has deferred loading; at least one must not")


def _check_ids(payload: dict[str, Any], pattern: re.Pattern[str]) -> Iterator[Violation]:
    tools = payload.get("tools")
    names = (
        {text_of(tool.get("name")) for tool in tools if isinstance(tool, dict)} if isinstance(tools, list) else set()
    )
    for where, block in _blocks(payload.get("messages")):
        kind = block.get("type")
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind) if isinstance(kind, str) else None
        identity = text_of(block.get(key)) if key else ""
        if identity and not (CALL_ID.fullmatch(identity) and pattern.fullmatch(identity)):
            yield refused("A3", f"{where}.{key}", f"the id {identity!r} has a form that this provider refuses")
        if kind == "tool_use" and len(text_of(block.get("name"))) and not TOOL_NAME.fullmatch(block["name"]):
            yield refused("A3", f"{where}.name", f"{block['name']!r} is not 1 to 128 letters, digits, _ and -")
        if kind == "tool_reference" and text_of(block.get("tool_name")) not in names:
            yield refused("A3", where, f"refers to a tool {block.get('tool_name')!r} that is not in tools")


def _blocks(messages: Any, where: str = "messages") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every block of every message, with those inside results."""
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                place = f"{where}[{position}].content[{index}]"
                yield place, block
                inner = block.get("content")
                for number, part in enumerate(inner if isinstance(inner, list) else ()):
                    if isinstance(part, dict):
                        yield f"{place}.content[{number}]", part


def _check_thinking(payload: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    thinking = payload.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if thinking is not None and not isinstance(kind, str):
        yield misshapen("thinking", "an object with a type", thinking)
    if kind == "enabled":
        yield from _check_budget(payload, thinking, abilities)
    elif kind == "adaptive" and abilities.thinking != "adaptive":
        yield refused("A7", "thinking", "this model does not take adaptive thinking")
    choice = payload.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        if not abilities.forced_tool:
            yield refused("A7", "tool_choice", "this model takes no forced tool call")
        elif kind in ("enabled", "adaptive"):
            yield refused("A7", "tool_choice", "a tool call cannot be forced while thinking is on")


def _check_budget(payload: dict[str, Any], thinking: Any, abilities: Abilities) -> Iterator[Violation]:
    if abilities.thinking != "budget":
        yield refused("A7", "thinking", "this model takes no thinking budget")
        return
    budget, most = thinking.get("budget_tokens"), payload.get("max_tokens")
    if not isinstance(budget, int) or budget < LEAST_BUDGET:
        yield refused("A7", "thinking.budget_tokens", f"is {budget!r}; the least is {LEAST_BUDGET:,} tokens")
    elif isinstance(most, int) and budget >= most:
        yield refused("A7", "thinking.budget_tokens", f"is {budget:,}; it must be below max_tokens, {most:,}")


def _check_sampling(payload: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    thinking = payload.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")
    for field in SAMPLING:
        value = payload.get(field)
        if value is None:
            continue
        if not abilities.sampling:
            yield refused("A7", field, f"this model takes no {field}")
        elif thinks and (field == "top_k" or (field == "temperature" and value != 1)):
            yield refused("A7", field, f"{field} cannot be set while thinking is on")


def _check_marks(payload: dict[str, Any]) -> Iterator[Violation]:
    placed = list(marks(payload))
    if len(placed) > MOST_MARKS:
        yield refused("A8", placed[MOST_MARKS][0], f"is cache mark {MOST_MARKS + 1} of {len(placed)}; 4 are allowed")
    five_minutes = ""
    for where, block, mark in placed:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.get("ttl") not in (None, "5m", "1h"):
            yield refused("SHAPE", where, "the cache mark is not ephemeral for 5m or 1h")
            continue
        if block.get("type") == "text" and is_blank(text_of(block.get("text"))):
            yield refused("A8", where, "an empty text carries a cache mark")
        if mark.get("ttl") != "1h":
            five_minutes = five_minutes or where
        elif five_minutes:
            yield refused("A8", where, f"a 1h mark stands after the 5m mark at {five_minutes}")
    yield from _check_cleared(payload)


def _check_cleared(payload: dict[str, Any]) -> Iterator[Violation]:
    """No mark on a system message that the provider clears; top and last block's marks agree."""
    messages = payload.get("messages")
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict) and message.get("role") == "system" and message.get("clear_at") is not None:
            for where, _, _ in marks({"messages": [message]}):
                yield refused(
                    "A8", where.replace("[0]", f"[{position}]", 1), "a system message with clear_at is marked"
                )
    top = payload.get("cache_control")
    last = _last_block(messages).get("cache_control")
    if isinstance(top, dict) and isinstance(last, dict) and (top.get("ttl") or "5m") != (last.get("ttl") or "5m"):
        yield refused("A8", "cache_control", "its lifetime differs from the mark on the last block")


def _last_block(messages: Any) -> dict[str, Any]:
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    block = content[-1] if isinstance(content, list) and content else None
    return block if isinstance(block, dict) else {}
