"""The Chat Completions stream of OpenAI and of the many servers that speak it, folded. Pure.

Chunks: https://platform.openai.com/docs/api-reference/chat-streaming. Servers differ in where reasoning comes
(`reasoning_content`, `reasoning`, parts of the content), where usage comes, how a call is cut to pieces
(`chat_calls`), and in what they call the end. A whole `message` in place of a `delta` is taken too: some servers
answer without streaming.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from governors.messages import AssistantMessage, StopReason, Text, Thinking, Usage

from .assemble import Joiner, Piece, StreamFault, count, make_reply
from .base import ModelInfo, TextPiece, ThinkingPiece, UsagePiece
from .chat_calls import ChatCalls

#: finish_reason of OpenAI, Mistral, Z.ai, DeepSeek, OpenRouter, Gemini and older servers.
STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "tool_use": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refused",
    "sensitive": "refused",
    "safety": "refused",
    "recitation": "refused",
    "refusal": "refused",
}

#: Reasons that are faults of the server: the status that each stands for.
FAULTS: dict[str, int] = {
    "error": 500,
    "network_error": 502,
    "insufficient_system_resource": 503,
    "malformed_function_call": 500,
}

#: Where reasoning may come, most trusted first; a server that sends two sends the same text twice.
REASONING = ("reasoning_content", "reasoning")


class ChatAssembler:
    """Folds one reply of Chat Completions."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model
        self._text = Joiner()
        self._thinking = Joiner()
        self._refused = False
        self._calls = ChatCalls()
        self._usage: Mapping[str, Any] | None = None
        self._reason: str | None = None
        self.fault: StreamFault | None = None
        self.ended = False  # `[DONE]`, which is no JSON: the transport sets it

    @property
    def answered(self) -> bool:
        return self._reason is not None

    @property
    def remote(self) -> tuple[Mapping[str, Any], ...]:
        return ()

    def feed(self, chunk: Mapping[str, Any]) -> list[Piece]:
        if chunk.get("error") or chunk.get("object") == "error":
            self._fail(chunk)
            return []
        pieces: list[Piece] = []
        if self._count(chunk):
            pieces.append(UsagePiece(_usage(self._usage or {})))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and not choice.get("index"):
                pieces.extend(self._choice(choice))
        return pieces

    def finish(self, cut: StopReason | None = None) -> AssistantMessage:
        stop: StopReason = cut or STOPS.get((self._reason or "").lower(), "stop")
        if self._refused and stop == "stop":
            stop = "refused"
        calls = self._calls.finish(stop)
        if stop == "stop" and calls:
            stop = "tool_use"  # many servers say `stop` after a call
        elif stop == "tool_use" and not calls:
            stop = "stop"
        parts: list[Text | Thinking] = []
        if thinking := self._thinking.text():
            parts.append(Thinking(thinking))
        if text := self._text.text():
            parts.append(Text(text))
        message = make_reply(parts, calls, stop, self._model)
        return replace(message, usage=_usage(self._usage)) if self._usage else message

    def _fail(self, chunk: Mapping[str, Any]) -> None:
        error = chunk.get("error")
        source = error if isinstance(error, Mapping) else chunk
        code = source.get("code", source.get("status"))
        status = int(code) if isinstance(code, int | str) and str(code).isdecimal() else None
        self.fault = StreamFault(chunk, status)

    def _choice(self, choice: Mapping[str, Any]) -> list[Piece]:
        pieces: list[Piece] = []
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            pieces.extend(self._delta(delta))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason
            if reason.lower() in FAULTS:
                told = choice.get("error") or {"error": {"message": f"the reply ended with {reason!r}"}}
                self.fault = StreamFault(told, FAULTS[reason.lower()])
        return pieces

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        reasoning = next((delta[key] for key in REASONING if _filled(delta.get(key))), "")
        if shown := self._thinking.add(reasoning):
            yield ThinkingPiece(shown)
        for kind, text in _content(delta.get("content")):
            if kind == "thinking":
                if shown := self._thinking.add(text):
                    yield ThinkingPiece(shown)
            elif shown := self._text.add(text):
                self._refused = self._refused or kind == "refusal"
                yield TextPiece(shown)
        if _filled(delta.get("refusal")):
            self._refused = True
            if shown := self._text.add(delta["refusal"]):
                yield TextPiece(shown)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            yield from self._calls.feed(calls)
        elif isinstance(delta.get("function_call"), Mapping):  # the form before tools
            yield from self._calls.feed([{"index": 0, "function": delta["function_call"]}])

    def _count(self, chunk: Mapping[str, Any]) -> bool:
        """Usage stands at the top, in the choice (Moonshot) or under `x_groq`; the last one is the total. Whether
        there was any that says something new (some servers repeat it with every piece)."""
        places: list[Any] = [chunk, chunk.get("x_groq")]
        choices = chunk.get("choices")
        if isinstance(choices, list):
            places.extend(choices)
        for place in places:
            if isinstance(place, Mapping) and isinstance(place.get("usage"), Mapping):
                new = bool(place["usage"]) and place["usage"] != self._usage
                self._usage = place["usage"]
                return new
        return False


def _filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _content(content: Any) -> Iterator[tuple[str, str]]:
    """(kind, text) of content that is a string or a list of parts (Mistral's reasoning is a nested list)."""
    if isinstance(content, str):
        yield "text", content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield "text", part
            elif isinstance(part, Mapping):
                kind = str(part.get("type", "text"))
                text = part.get(kind, part.get("text"))
                if kind == "thinking" and isinstance(text, list):
                    yield from (("thinking", inner) for _, inner in _content(text))
                elif isinstance(text, str):
                    yield kind, text


def _usage(usage: Mapping[str, Any]) -> Usage:
    """The prompt's count includes what came from the cache; `Usage.plain` does not."""
    prompt = count(usage, "prompt_tokens")
    read = (
        count(usage, "prompt_tokens_details", "cached_tokens")
        or count(usage, "cached_tokens")  # Kimi
        or count(usage, "prompt_cache_hit_tokens")  # DeepSeek
    )
    read = min(read, prompt)
    written = min(count(usage, "prompt_tokens_details", "cache_write_tokens"), prompt - read)
    return Usage(
        plain=prompt - read - written,
        cache_read=read,
        cache_write_5m=written,
        output=count(usage, "completion_tokens"),
        reasoning=count(usage, "completion_tokens_details", "reasoning_tokens"),
    )
