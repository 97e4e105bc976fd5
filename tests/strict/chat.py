"""A strict server of Chat Completions, as one host or another."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..servers import KEY, Connection, Seen
from .anthropic import halves
from .chat_hosts import Host
from .chat_rules import check
from .mind import Answer, Called, Mind, Said, Thought
from .prefix_cache import AutomaticCache, Told
from .refusal import Refused, canonical, read_json

ENDS = {"stop": "stop", "calls": "tool_calls", "length": "length", "refusal": "content_filter", "broken": "stop"}


@dataclass(slots=True)
class ChatHost:
    """As `MessagesHost`, for one host of Chat Completions."""

    host: Host
    mind: Mind
    window: int = 10**9
    look: Callable[[dict[str, Any]], None] = lambda body: None
    asked: int = 0
    refusals: list[str] = field(default_factory=list)
    overflows: int = 0
    dropped: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    caches: dict[str, AutomaticCache] = field(default_factory=dict)

    async def handle(self, seen: Seen, connection: Connection) -> None:
        self.asked += 1
        try:
            body, told = self._read(seen)
        except Refused as refused:
            if refused.more.get("code") == "context_length_exceeded":
                self.overflows += 1
            else:
                self.refusals.append(str(refused))
            await connection.respond(refused.status, error_of(refused, self.host.errors))
            return
        self.told.append(told)
        await self._answer(body, told, connection)

    def _read(self, seen: Seen) -> tuple[dict[str, Any], Told]:
        if not seen.path.endswith("/chat/completions") or seen.method != "POST":
            raise Refused(404, "invalid_request_error", f"Invalid URL (POST {seen.path})")
        if seen.headers.get("authorization") != f"Bearer {KEY}":
            raise Refused(401, "invalid_request_error", "Incorrect API key provided", code="invalid_api_key")
        try:
            body = read_json(seen.body)
        except ValueError as error:
            raise Refused(400, "invalid_request_error", f"We could not parse the JSON body: {error}") from None
        check(body, self.host, self.signatures)
        told = self.caches.setdefault(body["model"], AutomaticCache()).ask(blocks_of(body))
        if told.prompt > self.window:
            text = (
                f"This model's maximum context length is {self.window} tokens. However, you sent {told.prompt} tokens."
            )
            raise Refused(400, "invalid_request_error", text, code="context_length_exceeded")
        self.look(body)
        return body, told

    async def _answer(self, body: dict[str, Any], told: Told, connection: Connection) -> None:
        thinking = (body.get("thinking") or {}).get("type")
        answer = self.mind.answer(
            [tool["function"]["name"] for tool in body.get("tools") or ()],
            thinks=self.host.thinks is not None and thinking != "disabled",
            fresh=body["messages"][-1]["role"] != "tool",
        )
        await connection.start()
        for chunk in self._chunks(answer):
            await connection.event({"id": f"chatcmpl-{self.asked}", "object": "chat.completion.chunk", **chunk})
        if answer.end == "broken":
            await connection.drop()
            return
        end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": ENDS[answer.end]}]}
        for chunk in with_usage(end, usage_of(told, answer, self.host.usage), self.host):
            await connection.event(chunk)
        await connection.event("[DONE]")
        await connection.end()

    def _chunks(self, answer: Answer) -> Iterator[dict[str, Any]]:
        def delta(**fields: Any) -> dict[str, Any]:
            return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}

        yield delta(role="assistant", content="")
        number = 0
        for part in answer.parts:
            match part:
                case Thought(text=text):
                    for piece in halves(text):
                        yield delta(**thinking_fields(piece, self.host.thinks))
                case Said(text=text):
                    for piece in halves(text):
                        yield delta(content=piece)
                case Called(id=id, name=name, arguments=arguments):
                    call: dict[str, Any] = {"index": number, "id": id, "type": "function"}
                    if self.host.signs and number == 0:
                        signature = base64.b64encode(f"signed {self.asked}".encode()).decode()
                        self.signatures[signature] = name
                        call["extra_content"] = {"google": {"thought_signature": signature}}
                    yield delta(tool_calls=[{**call, "function": {"name": name, "arguments": ""}}])
                    for piece in halves(arguments):
                        yield delta(tool_calls=[{"index": number, "function": {"arguments": piece}}])
                    number += 1


def thinking_fields(text: str, place: str | None) -> dict[str, Any]:
    """A piece of reasoning where the host puts it."""
    if place == "content":
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}
    return {place: text} if place else {}


def usage_of(told: Told, answer: Answer, style: str) -> dict[str, Any]:
    """The counts in the host's form."""
    usage: dict[str, Any] = {
        "prompt_tokens": told.prompt,
        "completion_tokens": answer.size,
        "total_tokens": told.prompt + answer.size,
    }
    match style:
        case "deepseek":
            usage |= {"prompt_cache_hit_tokens": told.read, "prompt_cache_miss_tokens": told.plain}
        case "kimi":
            usage |= {"cached_tokens": told.read}
        case "none":
            pass
        case _:
            usage |= {"prompt_tokens_details": {"cached_tokens": told.read}}
    return usage


def with_usage(end: dict[str, Any], usage: dict[str, Any], host: Host) -> Iterator[dict[str, Any]]:
    """The last chunks: usage beside the reason, in a chunk of its own, or where Groq puts it."""
    if host.usage == "groq":
        yield {**end, "x_groq": {"usage": usage}}
    elif host.stream_options:
        yield end
        yield {"choices": [], "usage": usage}
    else:
        yield {**end, "usage": usage}


def error_of(refused: Refused, style: str) -> Any:
    """The body of a refusal in the host's form."""
    code = refused.more.get("code")
    plain = {"message": refused.text, "type": refused.kind, "param": None, "code": code}
    match style:
        case "mistral":
            kind = {"3230": "invalid_request_message_order", "3280": "invalid_function_call"}.get(
                str(code), refused.kind
            )
            return {"object": "error", **plain, "type": kind}
        case "google":
            return [{"error": {"code": refused.status, "message": refused.text, "status": "INVALID_ARGUMENT"}}]
        case "zai":
            return {"error": {"code": "1214", "message": refused.text}}
        case "openrouter":
            raw = {"raw": f'{{"error":{{"message":"{refused.kind}"}}}}', "provider_name": "Vendor"}
            return {
                "error": {
                    "message": f"Provider returned error: {refused.text}",
                    "code": refused.status,
                    "metadata": raw,
                }
            }
        case "vllm":
            return {
                "object": "error",
                "message": refused.text,
                "type": "BadRequestError",
                "param": None,
                "code": refused.status,
            }
        case "llama":
            return {"error": {"code": refused.status, "message": refused.text, "type": "invalid_request_error"}}
        case "plain":
            return {"error": refused.text}
        case _:
            return {"error": plain}


def blocks_of(body: dict[str, Any]) -> list[bytes]:
    return [canonical(each) for each in (*(body.get("tools") or ()), *body["messages"])]
