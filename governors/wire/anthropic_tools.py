"""Tools on the Anthropic wire: the array, and what comes and goes inside the conversation (A3, A10).

A change stands in a message of role `system` of its own, straight after the user's message that says it in words, so
that it follows a user's turn whatever came before. Laws:
- The array is the same for the whole conversation. Where tools may be defined later it ends with a placeholder, which
  is never shown to a model: deferred tools are then part of the request from the start.
- Such a message must be last or stand before a reply. When a user speaks next (no reply came), one constant reply is
  put between: it is appended with the user's message, so that nothing sent before changes.

Shapes: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages (read in November 2026;
beta header `inline-tools-2026-09-15`). A definition under a known name replaces it from its place on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..messages import ToolChange, ToolSpec
from ..scrub import scrub
from .base import Abilities
from .common import NO_REPLY, is_blank, schema
from .encoded import Encoded

Block = dict[str, Any]

CHANGES = ("tool_addition", "tool_removal")

#: Declared from the first request on, so that defining a tool later is no change of the array.
PLACEHOLDER: Block = {
    "name": "place_for_later_tools",
    "description": "Holds a place in the list of tools. It is never offered and cannot be called.",
    "input_schema": {"properties": {}, "type": "object"},
    "defer_loading": True,
}


def takes_changes(abilities: Abilities) -> bool:
    """Whether tools may come and go inside the conversation: host and model must take it (A10)."""
    return abilities.inline_tools and abilities.system_after_user and not abilities.strict_alternation


def encode_tools(tools: Sequence[ToolSpec], abilities: Abilities) -> list[Block]:
    """The request's array. An array of nothing but deferred tools is refused (A3): without tools there is none."""
    blocks = [_encode_tool(tool, abilities) for tool in tools]
    return [*blocks, PLACEHOLDER] if blocks and takes_changes(abilities) else blocks


def encode_change(change: ToolChange, abilities: Abilities) -> Encoded:
    """The message that makes the change. `change` is not empty."""
    blocks: list[Block] = []
    for tool in (*change.added, *change.changed):
        definition = {"type": "tool_definition", "definition": _encode_tool(tool, abilities)}
        blocks.append({"type": "tool_addition", "tool": definition})
    blocks += [{"type": "tool_addition", "tool": _reference(name)} for name in change.back]
    blocks += [{"type": "tool_removal", "tool": _reference(name)} for name in change.removed]
    return Encoded({"role": "system", "content": blocks})


def between(before: Mapping[str, Any], after: Mapping[str, Any], abilities: Abilities) -> Encoded | None:
    """What has to stand between two neighbours: a reply after a system message that a user follows (A10)."""
    if before["role"] != "system" or after["role"] != "user":
        return None
    return Encoded({"role": "assistant", "content": [{"type": "text", "text": NO_REPLY}]})


def apart(messages: Sequence[Encoded], abilities: Abilities) -> list[Encoded]:
    """`messages` with all that has to stand between neighbours."""
    placed: list[Encoded] = []
    for message in messages:
        filler = between(placed[-1], message, abilities) if placed else None
        placed += [message] if filler is None else [filler, message]
    return placed


def _encode_tool(tool: ToolSpec, abilities: Abilities) -> Block:
    block: Block = {"name": scrub(tool.name)}
    if not is_blank(tool.description):
        block["description"] = scrub(tool.description)
    block["input_schema"] = schema(tool.parameters, references=abilities.schema_references)
    return block


def _reference(name: str) -> Block:
    return {"type": "tool_reference", "name": scrub(name)}
