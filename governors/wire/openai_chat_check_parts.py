"""The rules of the Chat Completions protocol for the fields of a body and for one message looked at alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..arguments import parse_object
from ..scrub import may_hide_surrogate
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of, unsorted_tools
from .common import is_blank, scrub_json
from .references import has_references


def check_fields(head: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules broken outside the messages."""
    for field in ("max_tokens", "max_completion_tokens"):
        if head.get(field) is not None and field != abilities.max_tokens_field:
            yield refused("H3", field, f"this host takes {abilities.max_tokens_field} instead")
    effort = head.get("reasoning_effort")
    if head.get("tools") and effort not in (None, "none") and not abilities.thinking_with_tools:
        yield refused("H4", "reasoning_effort", "this model takes no reasoning effort together with tools here")
    elif effort is not None and effort not in abilities.efforts:
        yield refused("GLM", "reasoning_effort", f"is {effort!r}; this model takes {', '.join(abilities.efforts)}")
    choice = head.get("tool_choice")
    if not abilities.forced_tool and (choice == "required" or isinstance(choice, dict)):
        yield refused("KIMI", "tool_choice", "this model takes no forced tool call")
    thinking: Any = head.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    if abilities.keeps_thinking and thinks and thinking.get("clear_thinking") is not False:
        problem = "this host throws replayed reasoning away unless it is false"
        yield Violation("GLM", "S", "thinking.clear_thinking", problem)
    yield from _check_tools(head.get("tools"), abilities)


def _check_tools(tools: Any, abilities: Abilities) -> Iterator[Violation]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield misshapen("tools", "a list", tools)
        return
    names: list[str] = []
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            yield misshapen(where, "a function tool", tool)
        elif not text_of(function.get("name")):
            yield refused("SHAPE", f"{where}.function.name", "the tool has no name")
        else:
            names.append(function["name"])
            if not abilities.schema_references and has_references(function.get("parameters")):
                yield refused("GLM", f"{where}.function.parameters", "holds a $ref, which this host does not follow")
    yield from unsorted_tools(names)


def check_reply(where: str, message: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules that a reply breaks by itself."""
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
        yield from check_content(where, message)
    for index, call in enumerate(calls or ()):
        yield from _check_call(f"{where}.tool_calls[{index}]", call)
    if calls and abilities.call_signatures and not _is_signed(calls[0]):
        yield refused("G2", f"{where}.tool_calls[0]", "the first call of the reply has no thought signature")


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


def check_content(where: str, message: dict[str, Any]) -> Iterator[Violation]:
    """The shape of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield misshapen(f"{where}.content", "text or a list of at least one part", content)
        return
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield misshapen(f"{where}.content[{index}]", "a part with a type", part)


def check_result(where: str, message: dict[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules that a tool's message breaks by itself."""
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            if not isinstance(part, dict) or part.get("type") != "text":
                yield refused("H2", f"{where}.content[{index}]", "a tool message may hold only text")
    elif not isinstance(content, str):
        yield refused("H2", f"{where}.content", "a tool message holds no text")
    if abilities.tool_name_in_result and is_blank(text_of(message.get("name"))):
        yield refused("H2", f"{where}.name", "this host wants the tool's name in its result")


def _is_signed(call: Any) -> bool:
    extra = call.get("extra_content") if isinstance(call, dict) else None
    google = extra.get("google") if isinstance(extra, dict) else None
    return bool(text_of(google.get("thought_signature"))) if isinstance(google, dict) else False
