"""A strict server of the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..servers import KEY, Connection, Seen
from .anthropic_message import bad
from .anthropic_rules import read_request
from .anthropic_thinking import Produced, Read
from .claude import CLAUDES, Claude
from .compacted import block_events as compaction_events
from .mind import Answer, Called, Mind, Said, Thought
from .prefix_cache import MarkedCache, Told
from .refusal import Refused, read_json

ENDS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "broken": "end_turn"}


@dataclass(slots=True)
class MessagesHost:
    """`claudes` says what each model takes. `refusals` are what was refused but for overflows, which are an honest
    answer to a small `window` (tokens). `dropped`: thinking that the host dropped, as asked, a number a request."""

    mind: Mind
    claudes: Mapping[str, Claude] = field(default_factory=lambda: CLAUDES)
    window: int = 10**9
    look: Callable[[dict[str, Any]], None] = lambda body: None
    asked: int = 0
    refusals: list[str] = field(default_factory=list)
    overflows: int = 0
    dropped: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    produced: dict[str, Produced] = field(default_factory=dict)
    caches: dict[str, MarkedCache] = field(default_factory=dict)
    summary: str = "What was said, in short."
    compacted: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def handle(self, seen: Seen, connection: Connection) -> None:
        self.asked += 1
        try:
            body, read, told = self._read(seen)
        except Refused as refused:
            if "prompt is too long" in refused.text:
                self.overflows += 1
            else:
                self.refusals.append(str(refused))
            error = {"type": refused.kind, "message": refused.text}
            await connection.respond(
                refused.status, {"type": "error", "error": error, "request_id": f"req_{self.asked:06}"}
            )
            return
        self.dropped.append(len(read.dropped))
        self.told.append(told)
        await self._answer(body, read, told, connection)

    def _read(self, seen: Seen) -> tuple[dict[str, Any], Read, Told]:
        if not seen.path.endswith("/v1/messages") or seen.method != "POST":
            raise Refused(404, "not_found_error", "Not found")
        if KEY not in (seen.headers.get("x-api-key"), seen.headers.get("authorization", "").removeprefix("Bearer ")):
            raise Refused(401, "authentication_error", "invalid x-api-key")
        if not seen.headers.get("anthropic-version"):
            raise bad("anthropic-version: header is required")
        try:
            body = read_json(seen.body)
        except ValueError as error:
            raise bad(f"The request body is not valid JSON: {error}") from None
        claude = self.claudes.get(body.get("model"))
        if claude is None:
            raise Refused(404, "not_found_error", f"model: {body.get('model')}")
        betas = frozenset(filter(None, seen.headers.get("anthropic-beta", "").split(",")))
        read = read_request(body, len(seen.body), betas, claude, self.produced, self.compacted)
        cache = self.caches.setdefault(body["model"], MarkedCache())
        told = cache.ask(read.blocks, read.marks)
        if told.prompt > self.window:
            raise bad(f"prompt is too long: {told.prompt} tokens > {self.window} maximum")
        self.look(body)
        return body, read, told

    async def _answer(self, body: dict[str, Any], read: Read, told: Told, connection: Connection) -> None:
        claude = self.claudes[body["model"]]
        if body.get("compaction"):
            await self._compact(body["model"], told, connection)
            return
        last = body["messages"][-1]
        blocks = last["content"] if isinstance(last["content"], list) else []
        kind = (body.get("thinking") or {}).get("type")
        thinks = kind in ("enabled", "adaptive") or (kind is None and claude.binds) or not claude.checks_signatures
        answer = self.mind.answer(
            offered(body), thinks=thinks, fresh=not any(block.get("type") == "tool_result" for block in blocks)
        )
        await connection.start()
        for event in self._events(body["model"], answer, read, told):
            if answer.end == "broken" and event["type"] == "message_delta":
                await connection.drop()
                return
            await connection.event(event, event["type"])
        await connection.end()

    async def _compact(self, model: str, told: Told, connection: Connection) -> None:
        """Its usage is told apart from that of the message, as an iteration."""
        block = {"type": "compaction", "content": self.summary, "signature": f"sig_c_{self.asked}", "tool_changes": []}
        self.compacted[str(block["signature"])] = block
        none = {"input_tokens": 0, "output_tokens": 0}
        spent = {"input_tokens": told.plain, "cache_read_input_tokens": told.read, "output_tokens": 40}
        spent |= {"cache_creation_input_tokens": told.written + told.written_long, "type": "compaction"}
        message = {"id": f"msg_{self.asked:06}", "type": "message", "role": "assistant", "model": model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": none}
        await connection.start()
        for event in compaction_events(block, {**none, "iterations": [spent]}, message):
            await connection.event(event, event["type"])
        await connection.end()

    def _events(self, model: str, answer: Answer, read: Read, told: Told) -> Iterator[dict[str, Any]]:
        usage: dict[str, Any] = {
            "input_tokens": told.plain,
            "cache_read_input_tokens": told.read,
            "cache_creation_input_tokens": told.written + told.written_long,
            "cache_creation": {
                "ephemeral_5m_input_tokens": told.written,
                "ephemeral_1h_input_tokens": told.written_long,
            },
            "output_tokens": 1,
            "service_tier": "standard",
        }
        message = {"id": f"msg_{self.asked:06}", "type": "message", "role": "assistant", "model": model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        if read.dropped:
            dropped = {"type": "thinking_dropped", "reason": "prefix_binding_mismatch"}
            message["input_transformations"] = [{**dropped, "path": path} for path in read.dropped]
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}
        signatures = tuple(
            f"sig_{self.asked}_{index}" for index, part in enumerate(answer.parts) if isinstance(part, Thought)
        )
        waiting = iter(signatures)
        for index, part in enumerate(answer.parts):
            if isinstance(part, Thought):
                signature = next(waiting)
                text = "" if part.hidden else part.text
                self.produced[signature] = Produced(model, text, read.digest, signatures)
                yield from block_events(index, part, signature)
            else:
                yield from block_events(index, part, "")
        delta = {"stop_reason": ENDS[answer.end], "stop_sequence": None}
        thinking = sum(len(part.text) for part in answer.parts if isinstance(part, Thought)) // 4
        spent = {"output_tokens": answer.size, "output_tokens_details": {"thinking_tokens": thinking}}
        yield {"type": "message_delta", "delta": delta, "usage": spent}
        yield {"type": "message_stop"}


def offered(body: Mapping[str, Any]) -> list[str]:
    """The tools that can be called now: the array, and what came and went inside the conversation."""
    names = [tool["name"] for tool in body.get("tools") or () if not tool.get("defer_loading")]
    for message in body["messages"]:
        for block in message["content"] if message["role"] == "system" and isinstance(message["content"], list) else ():
            tool = block.get("tool") or {}
            name = tool.get("name") or (tool.get("definition") or {}).get("name")
            if block["type"] == "tool_removal" and name in names:
                names.remove(name)
            elif block["type"] == "tool_addition" and name not in names:
                names.append(name)
    return names


def block_events(index: int, part: Any, signature: str) -> Iterator[dict[str, Any]]:
    """The events of one block."""

    def start(block: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(**fields: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    match part:
        case Thought(hidden=True):
            yield start({"type": "redacted_thinking", "data": signature})
        case Thought(text=text):
            yield start({"type": "thinking", "thinking": "", "signature": ""})
            for piece in halves(text):
                yield delta(type="thinking_delta", thinking=piece)
            yield delta(type="signature_delta", signature=signature)
        case Said(text=text):
            yield start({"type": "text", "text": ""})
            for piece in halves(text):
                yield delta(type="text_delta", text=piece)
        case Called(id=id, name=name, arguments=arguments):
            yield start({"type": "tool_use", "id": id, "name": name, "input": {}})
            for piece in halves(arguments):
                yield delta(type="input_json_delta", partial_json=piece)
    yield {"type": "content_block_stop", "index": index}


def halves(text: str) -> Iterator[str]:
    """`text` in two pieces, as streams cut it: anywhere."""
    middle = len(text) // 2
    yield from (piece for piece in (text[:middle], text[middle:]) if piece)
