"""Chunks of Chat Completions streams, for tests."""

from __future__ import annotations

from typing import Any

from governors.messages import AssistantMessage, ToolCall
from governors.wire.base import Abilities
from runtime.providers.assemble_chat import ChatAssembler
from runtime.providers.base import ModelInfo

MODEL = ModelInfo("m", "p", "openai_chat", 1000, 100, Abilities())


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(arguments: Any = None, *, name: str | None = None, id: str | None = None, index: int | None = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry: dict[str, Any] = {"function": function}
    return {**entry, **{key: value for key, value in (("id", id), ("index", index)) if value is not None}}


def fold(*chunks: dict[str, Any], cut: Any = None) -> AssistantMessage:
    assembler = ChatAssembler(MODEL)
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.finish(cut)


def calls(*entries: list[Any], finish: str = "tool_calls") -> tuple[ToolCall, ...]:
    return fold(*(delta(tool_calls=each) for each in entries), delta(finish)).calls


A, B, C = (ToolCall(id, "f", f'{{"x":"{id}"}}') for id in "abc")


def whole(item: ToolCall, index: int | None = None) -> Any:
    return call(item.arguments, name=item.name, id=item.id, index=index)
