"""The OpenAI Responses stream, folded. Pure.

Events: https://platform.openai.com/docs/api-reference/responses-streaming and the types of the official SDK. A reply is
a list of output items (reasoning, message, function_call), which keep the order in which they came, as reasoning must
go back just before what followed it. Laws beside those of `assemble`:
- What is told again (the `done` events, the finished item, the finished response) adds what is missing and shows
  nothing twice. Arguments are an exception: the last telling holds.
- Reasoning is signed by the `encrypted_content` of its finished item; the one it began with may not be whole, and the
  finished response may be encrypted anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from governors.messages import AssistantMessage, StopReason, ToolCall, Usage

from .assemble import Piece, StreamFault, count
from .base import ModelInfo, UsagePiece
from .response_items import REASONING, REFUSAL, SUMMARY, TEXT, ResponseItems, string

#: Why a response is incomplete. Other reasons, too, mean that it was cut.
INCOMPLETE: Final[dict[str, StopReason]] = {"max_output_tokens": "length", "content_filter": "refused"}

#: What the state of a response says of its end; `incomplete` has a reason of its own.
STATES: Final[dict[str, StopReason]] = {"completed": "stop", "queued": "deferred", "in_progress": "deferred"}

#: Codes and types of errors inside a stream, and the status that each stands for.
STATUS: Final[dict[str, int]] = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "vector_store_timeout": 504,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
    "authentication_error": 401,
}

#: Codes that say of the request itself that it was wrong.
_OURS = re.compile(r"image|invalid|policy|mismatch")

#: Events that bring text: which kind, and the name of its place within the item.
TEXTS: Final[dict[str, tuple[str, str]]] = {
    "response.output_text": (TEXT, "content_index"),
    "response.refusal": (REFUSAL, "content_index"),
    "response.reasoning_summary_text": (SUMMARY, "summary_index"),
    "response.reasoning_text": (REASONING, "content_index"),
}

ARGUMENTS: Final = "response.function_call_arguments"


class ResponsesAssembler:
    """Folds one reply of the Responses API."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model
        self._items = ResponseItems()
        self._usage: Mapping[str, Any] | None = None
        self._stop: StopReason | None = None
        self._done: list[Mapping[str, Any]] = []
        self._output: list[Mapping[str, Any]] = []
        self.fault: StreamFault | None = None
        self.ended = False

    @property
    def answered(self) -> bool:
        return self._stop is not None

    @property
    def remote(self) -> tuple[Mapping[str, Any], ...]:
        items = self._output or self._done
        return tuple(items) if any(item.get("type") == "compaction" for item in items) else ()

    def feed(self, chunk: Mapping[str, Any]) -> list[Piece]:
        kind = chunk.get("type")
        if not isinstance(kind, str):
            return self._untyped(chunk)
        item, response = chunk.get("item"), chunk.get("response")
        name, _, last = kind.rpartition(".")
        match kind:
            case "response.output_item.added" if isinstance(item, Mapping):
                return list(self._items.begin(item, chunk.get("output_index")))
            case "response.output_item.done" if isinstance(item, Mapping):
                self._done.append(item)
                return list(self._items.complete(item, chunk.get("output_index")))
            case "response.completed" | "response.incomplete" if isinstance(response, Mapping):
                return self._end(response, last)
            case "response.failed" | "response.cancelled" | "error":
                self._fail(response if isinstance(response, Mapping) else chunk, kind)
                return []
        if last not in ("delta", "done"):
            return []
        whole = last == "done"
        if name == ARGUMENTS:
            return self._items.arguments(chunk, chunk.get("arguments" if whole else "delta"), whole=whole)
        if name not in TEXTS:
            return []
        text, where = TEXTS[name]
        said = string(chunk, ("refusal" if text == REFUSAL else "text") if whole else "delta")
        return list(self._items.text(chunk, text, count(chunk, where), said, whole=whole))

    def finish(self, cut: StopReason | None = None) -> AssistantMessage:
        stop: StopReason = cut or self._stop or "stop"
        if stop == "stop" and self._items.refused:
            stop = "refused"
        content = self._items.content(stop)
        if stop == "stop" and any(isinstance(part, ToolCall) for part in content):
            stop = "tool_use"
        usage = _usage(self._usage) if self._usage else None
        return AssistantMessage(content, stop, self._model.id, self._model.wire, usage)

    def _untyped(self, chunk: Mapping[str, Any]) -> list[Piece]:
        """A reply that came whole, or an error of a server in between that does not know this protocol's form."""
        if chunk.get("object") == "response" or isinstance(chunk.get("output"), list):
            if chunk.get("status") in ("failed", "cancelled"):
                self._fail(chunk, f"response.{chunk['status']}")
                return []
            return self._end(chunk, string(chunk, "status") or "completed")
        if chunk.get("error"):
            self._fail(chunk, "error")
        return []

    def _fail(self, told: Mapping[str, Any], kind: str) -> None:
        inner = told.get("error")
        error = inner if isinstance(inner, Mapping) else None
        if error is None and kind == "error":
            error = {key: value for key, value in told.items() if key not in ("type", "sequence_number")}
        if not error:
            error = {"message": f"the reply ended with {kind}", "code": "server_error"}
        names = [name for name in (error.get("code"), error.get("type")) if isinstance(name, str)]
        status = next((STATUS[name] for name in names if name in STATUS), None)
        if status is None and any(_OURS.search(name) for name in names):
            status = 400
        self.fault = StreamFault({"error": dict(error)}, status)
        if isinstance(told.get("usage"), Mapping):
            self._usage = told["usage"]

    def _end(self, response: Mapping[str, Any], state: str) -> list[Piece]:
        output = response.get("output")
        self._output = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
        pieces = list(self._items.reconcile(output))
        if isinstance(response.get("usage"), Mapping) and response["usage"]:
            self._usage = response["usage"]
            pieces.append(UsagePiece(_usage(self._usage or {})))
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        if state == "incomplete" or reason:
            self._stop = INCOMPLETE.get(str(reason), "length")
        else:
            self._stop = STATES.get(state, "stop")
        self.ended = True
        return pieces


def _usage(usage: Mapping[str, Any]) -> Usage:
    """The prompt's count includes what was read from the cache and written to it; `Usage.plain` does not."""
    prompt = count(usage, "input_tokens")
    read = min(count(usage, "input_tokens_details", "cached_tokens"), prompt)
    written = min(count(usage, "input_tokens_details", "cache_write_tokens"), prompt - read)
    longer = min(count(usage, "input_tokens_details", "cache_write_tokens_details", "ttl_12h_tokens"), written)
    return Usage(
        plain=prompt - read - written,
        cache_read=read,
        cache_write_5m=written - longer,
        cache_write_1h=longer,
        output=count(usage, "output_tokens"),
        reasoning=count(usage, "output_tokens_details", "reasoning_tokens"),
    )
