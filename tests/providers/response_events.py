"""Events of Responses streams, for tests: a reply as OpenAI tells it, as llama.cpp does, or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from governors.messages import AssistantMessage
from governors.wire.base import Abilities
from runtime.providers.assemble_responses import ResponsesAssembler
from runtime.providers.base import CallPiece, ModelInfo, TextPiece, ThinkingPiece

MODEL = ModelInfo("m", "p", "openai_responses", 1000, 100, Abilities())
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {
        "cached_tokens": 60,
        "cache_write_tokens": 30,
        "cache_write_tokens_details": {"ttl_12h_tokens": 20, "ttl_30m_tokens": 10},
    },
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 109,
}

Item = dict[str, Any]
Event = dict[str, Any]


def said(*texts: str, kind: str = "output_text", **more: Any) -> Item:
    parts = [{"type": kind, "refusal" if kind == "refusal" else "text": text} for text in texts]
    return {"type": "message", "role": "assistant", "status": "completed", "content": parts, **more}


def thought(encrypted: str | None, *summary: str) -> Item:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "summary": parts, "encrypted_content": encrypted}


def called(call_id: str, arguments: str = "{}", name: str = "f") -> Item:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}


def response(items: Sequence[Item], status: str = "completed", **more: Any) -> Event:
    return {"id": "resp_1", "object": "response", "status": status, "output": list(items), "usage": USAGE, **more}


def ended(items: Sequence[Item], status: str = "completed", **more: Any) -> Event:
    return {"type": f"response.{status}", "response": response(items, status, **more)}


def stream(items: Sequence[Item], size: int = 3, *, indexed: bool = True, telling: bool = True) -> Iterator[Event]:
    """The events of a whole reply, its texts in pieces of `size`. Without `indexed` items are told apart by their ids
    alone; without `telling` no event repeats what pieces said."""
    yield {"type": "response.created", "response": {"status": "in_progress", "output": [], "usage": None}}
    for index, bare in enumerate(items):
        item = {"id": f"item_{index}", **bare}
        where = {"output_index": index} if indexed else {}
        yield {"type": "response.output_item.added", **where, "item": _begun(item)}
        place = {**where, "item_id": item["id"]}
        yield from ({**event, **place} for event in _inner(item, size, telling))
        yield {"type": "response.output_item.done", **where, "item": item if telling else _begun(item, "encrypted")}
    yield ended(items if telling else ())


def _begun(item: Item, keep: str = "none") -> Item:
    empty = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    begun = {key: empty.get(key, value) for key, value in item.items()}
    if begun.get("encrypted_content") and keep != "encrypted":
        begun["encrypted_content"] = "not-yet-whole"
    return begun


def _inner(item: Item, size: int, telling: bool) -> Iterator[Event]:
    if item["type"] == "function_call":
        for piece in _cut(item["arguments"], size):
            yield {"type": "response.function_call_arguments.delta", "delta": piece}
        if telling:
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
    for place, part in enumerate(item.get("summary", ())):
        yield {"type": "response.reasoning_summary_part.added", "summary_index": place, "part": part}
        for piece in _cut(part["text"], size):
            yield {"type": "response.reasoning_summary_text.delta", "summary_index": place, "delta": piece}
        if telling:
            yield {"type": "response.reasoning_summary_text.done", "summary_index": place, "text": part["text"]}
    for place, part in enumerate(item.get("content", ())):
        name, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
        for piece in _cut(part[key], size):
            yield {"type": f"response.{name}.delta", "content_index": place, "delta": piece}
        if telling:
            yield {"type": f"response.{name}.done", "content_index": place, key: part[key]}


def _cut(text: str, size: int) -> Iterator[str]:
    """In UTF-16 units, so that a cut may go through a surrogate pair, as in JSON with escapes."""
    units = json.dumps(text)[1:-1]
    if "\\" not in units:
        yield from (text[start : start + size] for start in range(0, len(text), size))
        return
    wide = text.encode("utf-16-le", "surrogatepass")
    for start in range(0, len(wide), 2 * size):
        yield "".join(
            wide[at : at + 2].decode("utf-16-le", "surrogatepass")
            for at in range(start, min(start + 2 * size, len(wide)), 2)
        )


def fold(*events: Event, cut: Any = None) -> AssistantMessage:
    return watch(*events, cut=cut)[0]


def watch(*events: Event, cut: Any = None) -> tuple[AssistantMessage, str, str, dict[int, str]]:
    """The message, and what was shown: text, thinking, the arguments of each call."""
    assembler = ResponsesAssembler(MODEL)
    text, thinking, arguments = "", "", dict[int, str]()
    for event in events:
        for piece in assembler.feed(event):
            if isinstance(piece, TextPiece):
                text += piece.text
            elif isinstance(piece, ThinkingPiece):
                thinking += piece.text
            elif isinstance(piece, CallPiece):
                arguments[piece.index] = arguments.get(piece.index, "") + piece.arguments
    return assembler.finish(cut), text, thinking, arguments
