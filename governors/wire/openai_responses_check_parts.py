"""The rules of the Responses protocol for the fields of a body and for one item looked at alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..arguments import parse_object
from ..scrub import may_hide_surrogate
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of, unsorted_tools
from .common import scrub_json
from .openai_responses import ENCRYPTED, LEAST_OUTPUT
from .references import has_references

#: How the provider's ids begin, by kind of item.
PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}
LONGEST_ID = 64


def check_fields(head: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules broken outside the items (O2, O5, O6)."""
    if head.get("previous_response_id") is not None and head.get("conversation") is not None:
        yield refused("O5", "conversation", "previous_response_id and conversation cannot be given together")
    most = head.get("max_output_tokens")
    if isinstance(most, int) and most < LEAST_OUTPUT:
        yield refused("O5", "max_output_tokens", f"is {most}; the least is {LEAST_OUTPUT}")
    for field in ("temperature", "top_p"):
        if head.get(field) is not None and not abilities.sampling:
            yield refused("O5", field, f"this model takes no {field}")
    reasoning = head.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    if effort is not None and effort not in abilities.efforts:
        yield refused("O5", "reasoning.effort", f"is {effort!r}; this model takes {', '.join(abilities.efforts)}")
    include = head.get("include")
    encrypted = isinstance(include, list) and ENCRYPTED in include
    if head.get("store") is False and abilities.thinking != "none" and not encrypted:
        problem = f"without {ENCRYPTED} the reasoning cannot go back, as nothing is stored"
        yield Violation("O2", "S", "include", problem)
    if head.get("prompt_cache_retention") is not None:
        yield Violation("O6", "$", "prompt_cache_retention", "is deprecated; prompt_cache_options.ttl takes its place")
    yield from check_tools(head.get("tools"), abilities, "tools")


def tool_names(tools: Any) -> frozenset[str]:
    """The names of the functions in a list of tools."""
    named = (tool.get("name") for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()
    return frozenset(name for name in named if isinstance(name, str) and name)


def check_tools(tools: Any, abilities: Abilities, place: str) -> Iterator[Violation]:
    """A list of tools, at the front of a request or inside the conversation."""
    if tools is None:
        return
    if not isinstance(tools, list):
        yield misshapen(place, "a list", tools)
        return
    names = []
    for index, tool in enumerate(tools):
        where = f"{place}[{index}]"
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            yield misshapen(where, "a tool with a type", tool)
        elif tool["type"] == "function":
            names.append(text_of(tool.get("name")))
            if not names[-1]:
                yield refused("SHAPE", f"{where}.name", "the tool has no name")
            if not abilities.schema_references and has_references(tool.get("parameters")):
                yield refused("GLM", f"{where}.parameters", "holds a $ref, which this host does not follow")
    yield from unsorted_tools(names)


def check_identity(where: str, item: dict[str, Any], stored: bool) -> Iterator[Violation]:
    """The id of an item: typed, short (O1), and left out where the provider stores nothing (O2)."""
    kind, identity = item.get("type", "message"), item.get("id")
    if identity is None:
        return
    if not stored:
        yield refused("O2", f"{where}.id", "names an item that is not stored; leave the id out")
    prefix = PREFIXES.get(kind, "") if isinstance(kind, str) else ""
    if not isinstance(identity, str) or not identity.startswith(prefix) or not 0 < len(identity) <= LONGEST_ID:
        problem = f"{identity!r} is not an id of at most {LONGEST_ID} characters that begins with {prefix!r}"
        yield refused("O1", f"{where}.id", problem)


def check_reasoning(where: str, item: dict[str, Any], stored: bool) -> Iterator[Violation]:
    """A reasoning item by itself."""
    if not isinstance(item.get("summary"), list):
        yield misshapen(f"{where}.summary", "a list (it may be empty)", item.get("summary"))
    if not stored and not text_of(item.get("encrypted_content")):
        yield refused("O2", f"{where}.encrypted_content", "is missing, and the provider has stored nothing")


def check_call(where: str, item: dict[str, Any], identity: re.Pattern[str]) -> Iterator[Violation]:
    """A call by itself."""
    call = text_of(item.get("call_id"))
    if not call:
        yield refused("C2", f"{where}.call_id", "the call has no id")
    elif not identity.fullmatch(call):
        yield refused("O1", f"{where}.call_id", f"the id {call!r} has a form that this provider refuses")
    if not text_of(item.get("name")):
        yield refused("C2", f"{where}.name", "the call names no tool")
    if item.get("type") != "function_call":  # other calls bring free text
        return
    arguments = item.get("arguments")
    if not isinstance(arguments, str):
        yield refused("O1", f"{where}.arguments", "is not text")
        return
    value = parse_object(arguments)
    if value is None:
        yield refused("C2", f"{where}.arguments", "is not the JSON text of an object")
    elif may_hide_surrogate(arguments) and scrub_json(value) != value:
        yield refused("C1", f"{where}.arguments", "an escape in it stands for a lone surrogate")


def check_content(where: str, content: Any) -> Iterator[Violation]:
    """The shape of a message's content or of an output."""
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield misshapen(where, "text or a list of at least one part", content)
        return
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield misshapen(f"{where}[{index}]", "a part with a type", part)
