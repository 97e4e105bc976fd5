"""The prefix and the cache on the Responses wire: what reasoning is bound to, item by item (O3, O6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Payload
from .encoded import cache_key, canonical, last, message_blocks, roll, roll_messages
from .openai_responses import BREAKPOINT


def mark_cache(body: Payload, ttl: str | None = None, key: str | None = None) -> Payload:
    """`body` with a `prompt_cache_key`: requests with the same instructions and tools go where their cache is (O6).

    `key` is made of those when it is not given: it stays for as long as they do, so sessions that begin alike share
    it, and it says nothing of the user. The provider sets its breakpoint at the end by itself; `ttl` is its lifetime,
    `30m` or `12h`, for models that take one. The explicit mode would take that breakpoint away, and the text of a
    call's output, which most requests end with, can carry none: so the mark at the end of the front stands beside it
    (see `encode`). A body that has a key already comes back as it is.
    """
    if "prompt_cache_key" in body:
        return body
    key = key or cache_key(_leading_blocks(body))
    input_last = {name: value for name, value in body.items() if name != "input"}
    input_last["prompt_cache_key"] = key
    if ttl is not None:
        input_last["prompt_cache_options"] = {"ttl": ttl}
    return {**input_last, "input": body["input"]} if "input" in body else input_last


def prefix_blocks(body: Mapping[str, Any]) -> list[bytes]:
    """What reasoning is bound to, as canonical bytes in order: instructions, tools, text format, every item (O3)."""
    blocks = _leading_blocks(body)
    for item in _items(body):
        blocks += message_blocks(item, split)
    return blocks


def prefix_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 in hex over `prefix_blocks`, rolled block by block."""
    lead = last(roll(b"", _leading_blocks(body)))
    return last(roll_messages(lead, _items(body), split), lead).hex()


def _items(body: Mapping[str, Any]) -> list[Any]:
    """The input as a list of items: a string is short for one user message."""
    given = body.get("input") or []
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _leading_blocks(body: Mapping[str, Any]) -> list[bytes]:
    blocks = [canonical(["instructions", body["instructions"]])] if body.get("instructions") else []
    for tool in body.get("tools") or []:
        blocks += message_blocks(tool, _tool)
    text = body.get("text")
    if isinstance(text, Mapping) and text.get("format") is not None:
        blocks.append(canonical(["format", text["format"]]))
    return blocks


def _tool(tool: Any) -> Iterator[bytes]:
    yield canonical(["tool", tool])


def split(item: Any) -> Iterator[bytes]:
    """An item as canonical bytes, without cache marks: it is one block."""
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, list) and any(isinstance(part, dict) and BREAKPOINT in part for part in content):
        item = {**item, "content": [_unmarked(part) for part in content]}
    yield canonical(item)


def _unmarked(part: Any) -> Any:
    return {key: value for key, value in part.items() if key != BREAKPOINT} if isinstance(part, dict) else part


def reasoning(item: Any) -> Iterator[tuple[bool, str | None]]:
    """Of an item: whether it is of a reply, and the encrypted content when it is reasoning."""
    kind = item.get("type") if isinstance(item, dict) else None
    signature = item.get("encrypted_content") if kind == "reasoning" else None
    reply = kind in ("reasoning", "function_call") or (isinstance(item, dict) and item.get("role") == "assistant")
    yield reply, signature if isinstance(signature, str) else None
