"""The Anthropic Messages stream, folded. Pure.

Events: message_start, content_block_start, content_block_delta, content_block_stop, message_delta, message_stop;
ping is silence, error is a fault (https://docs.claude.com/en/docs/build-with-claude/streaming). Blocks keep the
order in which they came, as reasoning must go back byte for byte and in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from governors.messages import AssistantMessage, AssistantPart, StopReason, Text, Thinking, ToolCall, Usage

from .assemble import Joiner, Piece, StreamFault, count, make_call, with_ids
from .base import CallPiece, ModelInfo, TextPiece, ThinkingPiece, UsagePiece

STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_use",
    "pause_turn": "deferred",
    "refusal": "refused",
    "compaction": "stop",
}

#: Error types of the API and the status each stands for (https://docs.claude.com/en/api/errors).
STATUS: dict[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(slots=True)
class _Block:
    type: str
    id: str = ""
    name: str = ""
    call: int = -1  # which call of the reply
    given: str = ""  # input that came whole with the block's start
    signature: str | None = None
    compaction: dict[str, Any] = field(default_factory=dict)  # the whole of such a block
    text: Joiner = field(default_factory=Joiner)


class AnthropicAssembler:
    """Folds one reply of the Messages API."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._calls = 0
        self.fault: StreamFault | None = None
        self.ended = False

    @property
    def answered(self) -> bool:
        return self._stop is not None

    @property
    def remote(self) -> tuple[Mapping[str, Any], ...]:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        if not any(block.compaction for block in blocks):
            return ()
        return tuple(block.compaction or {"type": block.type, "text": block.text.text()} for block in blocks)

    def feed(self, chunk: Mapping[str, Any]) -> list[Piece]:
        match chunk.get("type"):
            case "message_start":
                message = chunk.get("message")
                if isinstance(message, Mapping):
                    return self._count(message.get("usage"))
            case "message":
                return self._whole(chunk)
            case "content_block_start":
                return self._start(chunk)
            case "content_block_delta":
                return self._delta(chunk)
            case "message_delta":
                delta = chunk.get("delta")
                if isinstance(delta, Mapping) and isinstance(delta.get("stop_reason"), str):
                    self._stop = delta["stop_reason"]
                return self._count(chunk.get("usage"))
            case "message_stop":
                self.ended = True
            case "error":
                self._fail(chunk)
            case None if chunk.get("error"):
                self._fail(chunk)  # an in-between server that does not know this protocol's form
        return []

    def finish(self, cut: StopReason | None = None) -> AssistantMessage:
        stop: StopReason = cut or STOPS.get(self._stop or "", "stop")
        parts = [self._part(self._blocks[index], stop) for index in sorted(self._blocks)]
        content = _without_repeats([part for part in parts if part is not None])
        calls = any(isinstance(part, ToolCall) for part in content)
        if stop == "stop" and calls:
            stop = "tool_use"
        elif stop == "tool_use" and not calls:
            stop = "stop"
        return AssistantMessage(
            content=content,
            stop=stop,
            model=self._model.id,
            wire=self._model.wire,
            usage=_usage(self._usage) if self._usage else None,
        )

    def _fail(self, chunk: Mapping[str, Any]) -> None:
        error = chunk.get("error")
        kind = error.get("type") if isinstance(error, Mapping) else None
        self.fault = StreamFault(chunk, STATUS.get(str(kind)))

    def _start(self, chunk: Mapping[str, Any]) -> list[Piece]:
        given = chunk.get("content_block")
        if not isinstance(given, Mapping):
            return []
        index = count(chunk, "index")
        block = _Block(type=str(given.get("type")))
        self._blocks[index] = block
        match block.type:
            case "text":
                return _shown(TextPiece, block.text.add(_string(given, "text")))
            case "thinking":
                block.signature = _string(given, "signature") or None
                return _shown(ThinkingPiece, block.text.add(_string(given, "thinking")))
            case "redacted_thinking":
                block.signature = _string(given, "data")
            case "compaction":
                block.compaction = dict(given)
            case "tool_use":
                block.id = _string(given, "id").strip()
                block.name = _string(given, "name")
                block.call = self._calls
                self._calls += 1
                if given.get("input"):
                    block.given = json.dumps(given["input"], ensure_ascii=False)
                return [CallPiece(block.call, block.name, "")]
        return []

    def _delta(self, chunk: Mapping[str, Any]) -> list[Piece]:
        block = self._blocks.get(count(chunk, "index"))
        delta = chunk.get("delta")
        if block is None or not isinstance(delta, Mapping):
            return []
        match delta.get("type"):
            case "text_delta":
                return _shown(TextPiece, block.text.add(_string(delta, "text")))
            case "thinking_delta":
                return _shown(ThinkingPiece, block.text.add(_string(delta, "thinking")))
            case "signature_delta":
                block.signature = _string(delta, "signature") or block.signature
                if block.compaction:
                    block.compaction["signature"] = block.signature
            case "compaction_delta" if block.compaction:
                # whole, not in pieces: the official SDK puts each in the place of what came before
                block.compaction |= {name: told for name, told in delta.items() if name != "type"}
            case "input_json_delta":
                piece = block.text.add(_string(delta, "partial_json"))
                return [CallPiece(block.call, block.name, piece)] if piece else []
        return []

    def _part(self, block: _Block, stop: StopReason) -> AssistantPart | None:
        text = block.text.text()
        match block.type:
            case "text":
                return Text(text) if text else None
            case "thinking":
                return Thinking(text, block.signature) if text or block.signature else None
            case "redacted_thinking":
                return Thinking("", block.signature, redacted=True)
            case "tool_use":
                return make_call(block.id, block.name, text or block.given, stop)
        return None  # a server tool's block: nothing here asks for one

    def _whole(self, message: Mapping[str, Any]) -> list[Piece]:
        """A reply that was not streamed: as if each block came whole with its start."""
        pieces: list[Piece] = []
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            pieces.extend(self._start({"index": index, "content_block": block}))
        if isinstance(message.get("stop_reason"), str):
            self._stop, self.ended = message["stop_reason"], True
        return [*pieces, *self._count(message.get("usage"))]

    def _count(self, usage: Any) -> list[Piece]:
        if not isinstance(usage, Mapping):
            return []
        # later figures are totals too, and may leave some out
        self._usage.update({key: value for key, value in usage.items() if value is not None})
        return [UsagePiece(_usage(self._usage))] if self._usage else []


def _without_repeats(parts: list[AssistantPart]) -> tuple[AssistantPart, ...]:
    """Identical calls collapse and calls without an id get one, each at its place."""
    calls = iter(with_ids(part for part in parts if isinstance(part, ToolCall)))
    seen: set[ToolCall] = set()
    kept: list[AssistantPart] = []
    for part in parts:
        if isinstance(part, ToolCall):
            part = next(calls)
            if part in seen:
                continue
            seen.add(part)
        kept.append(part)
    return tuple(kept)


def _usage(usage: Mapping[str, Any]) -> Usage:
    told = usage.get("iterations")
    # What a compaction took is told there alone (types of the official SDK, `iterations`).
    apart = [each for each in told if _compacts(each)] if isinstance(told, list) else []
    return _added([_one(usage), *map(_one, apart)])


def _compacts(iteration: Any) -> bool:
    return isinstance(iteration, Mapping) and iteration.get("type") == "compaction"


def _added(usages: list[Usage]) -> Usage:
    first = usages[0]
    for each in usages[1:]:
        first = Usage(*(one + other for one, other in zip(astuple(first), astuple(each), strict=True)))
    return first


def _one(usage: Mapping[str, Any]) -> Usage:
    written = count(usage, "cache_creation_input_tokens")
    hour = count(usage, "cache_creation", "ephemeral_1h_input_tokens")
    short = count(usage, "cache_creation", "ephemeral_5m_input_tokens")
    return Usage(
        plain=count(usage, "input_tokens"),
        cache_read=count(usage, "cache_read_input_tokens"),
        cache_write_5m=max(short, written - hour),
        cache_write_1h=hour,
        output=count(usage, "output_tokens"),
        reasoning=count(usage, "output_tokens_details", "thinking_tokens"),
    )


def _string(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""


def _shown(make: type[TextPiece] | type[ThinkingPiece], text: str) -> list[Piece]:
    return [make(text)] if text else []
