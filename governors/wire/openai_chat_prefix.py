"""The prefix on the Chat Completions wire: what two requests are compared by, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .encoded import canonical, last, message_blocks, roll, roll_messages
from .openai_chat_order import as_parts


def prefix_blocks(body: Mapping[str, Any]) -> list[bytes]:
    """The tools, the system prompt and every content block as canonical bytes, in order."""
    blocks = _tools(body)
    for message in body.get("messages") or []:
        blocks += message_blocks(message, split)
    return blocks


def prefix_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 in hex over `prefix_blocks`, rolled block by block."""
    lead = last(roll(b"", _tools(body)))
    return last(roll_messages(lead, body.get("messages") or [], split), lead).hex()


def _tools(body: Mapping[str, Any]) -> list[bytes]:
    return [canonical(["tool", tool]) for tool in body.get("tools") or []]


def split(message: Any) -> Iterator[bytes]:
    """A message's blocks: its parts, then its reasoning, then its calls, so that merging only appends."""
    if not isinstance(message, dict):
        yield canonical(["?", message])
        return
    head = [message.get("role"), message.get("tool_call_id"), message.get("name")]
    for part in as_parts(message.get("content")):
        yield canonical([*head, part])
    if "reasoning_content" in message:
        yield canonical([*head, "reasoning", message["reasoning_content"]])
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        yield canonical([*head, "call", call])


def reasoning(message: Any) -> Iterator[tuple[bool, str | None]]:
    """Of each block of a message: whether it is of a reply. Nothing on this wire is signed."""
    reply = isinstance(message, dict) and message.get("role") == "assistant"
    for _ in split(message):
        yield reply, None
