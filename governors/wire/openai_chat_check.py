"""The rules of the OpenAI Chat Completions protocol (C1 to C5, H1 to H4).

`check` takes the parts that `encode` gives or a whole body, of any shape, and never raises. What a payload cannot
show (how a reply ended, which result is an error) is the encoder's and the repairs' to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ..scrub import may_hide_surrogate
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of, unsendable
from .common import is_blank, parse_object, scrub_json
from .openai_chat import SYSTEM_ROLES

ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool")

#: A message that can be read, with its place.
Placed = tuple[str, dict[str, Any]]


def check(payload: Any, abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that `payload` breaks; none when it can be sent."""
    if not isinstance(payload, dict):
        return (misshapen("payload", "an object", payload),)
    found = [*unsendable(payload), *_check_fields(payload, abilities), *_check_tools(payload.get("tools"))]
    messages: list[Placed] = []
    found += _read(payload.get("messages"), messages)
    found += _check_system(messages, abilities)
    for where, message in messages:
        if message["role"] == "assistant":
            found += _check_reply(where, message, abilities)
        elif message["role"] == "tool":
            found += _check_result(where, message, abilities)
        else:
            found += _check_content(where, message)
    found += _check_pairing(messages, re.compile(abilities.id_pattern))
    if abilities.strict_alternation:
        found += _check_alternation(messages)
    return tuple(found)


def _read(messages: Any, placed: list[Placed]) -> Iterator[Violation]:
    if not isinstance(messages, list):
        yield misshapen("messages", "a list", messages)
        return
    if not messages:
        yield refused("SHAPE", "messages", "is empty; at least one message is needed")
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        if not isinstance(message, dict):
            yield misshapen(where, "an object", message)
        elif message.get("role") not in ROLES:
            yield refused("SHAPE", f"{where}.role", f"is {message.get('role')!r}; it can be {', '.join(ROLES)}")
        else:
            placed.append((where, message))


def _check_fields(payload: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    for field in ("max_tokens", "max_completion_tokens"):
        if payload.get(field) is not None and field != abilities.max_tokens_field:
            yield refused("H3", field, f"this host takes {abilities.max_tokens_field} instead")
    effort = payload.get("reasoning_effort")
    if payload.get("tools") and effort not in (None, "none") and not abilities.thinking_with_tools:
        yield refused("H4", "reasoning_effort", "this model takes no reasoning effort together with tools here")


def _check_tools(tools: Any) -> Iterator[Violation]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield misshapen("tools", "a list", tools)
        return
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            yield misshapen(where, "a function tool", tool)
        elif not text_of(function.get("name")):
            yield refused("SHAPE", f"{where}.function.name", "the tool has no name")


def _check_system(messages: list[Placed], abilities: Abilities) -> Iterator[Violation]:
    for index, (where, message) in enumerate(messages):
        role = message["role"]
        if role not in SYSTEM_ROLES:
            continue
        if role == "developer" and not abilities.developer_role:
            yield refused("H3", where, "has role developer, which this host does not know; system is the word here")
        if index and not abilities.system_anywhere:
            yield refused("H3", where, f"has role {role}; this host takes one such message, at the front")


def _check_reply(where: str, message: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    content, calls = message.get("content"), message.get("tool_calls")
    if calls is not None and (not isinstance(calls, list) or not calls):
        yield misshapen(f"{where}.tool_calls", "a list of at least one call", calls)
        return
    if not calls:
        if message.get("reasoning_content") and not content:
            yield refused("C5", where, "the reply is only reasoning: leave it out")
        elif content is None:
            yield refused("H1", f"{where}.content", "is null, which it may be only beside tool calls")
    elif content is None and not abilities.null_content:
        yield refused("H1", f"{where}.content", "is null, which this host does not take: it wants an empty text")
    if content is not None:
        yield from _check_content(where, message)
    for index, call in enumerate(calls or ()):
        yield from _check_call(f"{where}.tool_calls[{index}]", call)


def _check_call(where: str, call: Any) -> Iterator[Violation]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        yield misshapen(where, "a call of a function", call)
        return
    if not text_of(call.get("id")):
        yield refused("C2", f"{where}.id", "the call has no id")
    if not text_of(function.get("name")):
        yield refused("C2", f"{where}.function.name", "the call names no tool")
    arguments = function.get("arguments")
    value = parse_object(arguments) if isinstance(arguments, str) else None
    if value is None:
        yield refused("C2", f"{where}.function.arguments", "is not the JSON text of an object")
    elif may_hide_surrogate(str(arguments)) and scrub_json(value) != value:
        yield refused("C1", f"{where}.function.arguments", "an escape in it stands for a lone surrogate")


def _check_content(where: str, message: dict[str, Any]) -> Iterator[Violation]:
    content = message.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield misshapen(f"{where}.content", "text or a list of at least one part", content)
        return
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield misshapen(f"{where}.content[{index}]", "a part with a type", part)


def _check_result(where: str, message: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            if not isinstance(part, dict) or part.get("type") != "text":
                yield refused("H2", f"{where}.content[{index}]", "a tool message may hold only text")
    elif not isinstance(content, str):
        yield refused("H2", f"{where}.content", "a tool message holds no text")
    if abilities.tool_name_in_result and is_blank(text_of(message.get("name"))):
        yield refused("H2", f"{where}.name", "this host wants the tool's name in its result")


def _check_pairing(messages: list[Placed], pattern: re.Pattern[str]) -> Iterator[Violation]:
    every = {call for _, message in messages for _, call in _calls("", message)}
    results = {text_of(message.get("tool_call_id")) for _, message in messages if message["role"] == "tool"}
    seen: set[str] = set()
    answered: set[str] = set()
    waiting: dict[str, str] = {}
    for where, message in messages:
        if message["role"] == "tool":
            yield from _check_answer(where, message, waiting, answered, every)
            continue
        yield from _unanswered(waiting, results)
        waiting = {}
        for place, call in _calls(where, message):
            if call in seen:
                yield refused("C3", place, f"the id {call!r} was used by an earlier call of this request")
                continue
            seen.add(call)
            waiting[call] = place
            if not pattern.fullmatch(call):
                yield refused("H2", place, f"the id {call!r} has a form that this host refuses")
    yield from _unanswered(waiting, results)


def _calls(where: str, message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The ids of a reply's calls, with their places."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        identity = text_of(call.get("id")) if isinstance(call, dict) else ""
        if identity:
            yield f"{where}.tool_calls[{index}].id", identity


def _check_answer(
    where: str, message: dict[str, Any], waiting: dict[str, str], answered: set[str], every: set[str]
) -> Iterator[Violation]:
    call = text_of(message.get("tool_call_id"))
    if not call:
        yield refused("C3", f"{where}.tool_call_id", "the result does not say which call it answers")
    elif call in answered:
        yield refused("C3", where, f"the call {call!r} has a result already")
    elif call in waiting:
        del waiting[call]
        answered.add(call)
    elif call in every:
        answered.add(call)
        yield refused("H1", where, f"answers {call!r}, which is not a call of the reply just before")
    else:
        yield Violation("C4", "S", where, f"answers {call!r}, which no call has")


def _unanswered(waiting: dict[str, str], results: set[str]) -> Iterator[Violation]:
    for call, where in waiting.items():
        if call in results:
            yield refused("H1", where, f"the result of {call!r} does not stand straight after the reply")
        else:
            yield refused("C3", where, f"the call {call!r} has no result")


def _check_alternation(messages: list[Placed]) -> Iterator[Violation]:
    spoken = [(where, message["role"]) for where, message in messages if message["role"] not in SYSTEM_ROLES]
    if spoken and spoken[0][1] == "assistant":
        yield refused("H3", spoken[0][0], "the assistant speaks first; this host wants the user to")
    for (_, before), (where, role) in pairwise(spoken):
        if before == role and role in ("user", "assistant"):
            yield refused("H3", where, f"has role {role}, as the one before; this host wants them in turn")
