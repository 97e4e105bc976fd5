"""A strict server of the Responses API that stores nothing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..servers import KEY, Connection, Seen
from .anthropic import halves
from .mind import Answer, Called, Mind, Said, Thought
from .prefix_cache import AutomaticCache, Told
from .refusal import Refused, read_json
from .responses_rules import Read, Sealed, read_request


@dataclass(slots=True)
class ResponsesHost:
    """As `MessagesHost`. `binding`: models whose reasoning is bound to what was sent before it."""

    mind: Mind
    binding: frozenset[str] = frozenset()
    window: int = 10**9
    look: Callable[[dict[str, Any]], None] = lambda body: None
    asked: int = 0
    refusals: list[str] = field(default_factory=list)
    overflows: int = 0
    dropped: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    sealed: dict[str, Sealed] = field(default_factory=dict)
    caches: dict[str, AutomaticCache] = field(default_factory=dict)
    compacted: dict[str, str] = field(default_factory=dict)

    async def handle(self, seen: Seen, connection: Connection) -> None:
        self.asked += 1
        try:
            body, read, told = self._read(seen)
        except Refused as refused:
            if refused.more.get("code") == "context_length_exceeded":
                self.overflows += 1
            else:
                self.refusals.append(str(refused))
            error = {"message": refused.text, "type": refused.kind, "param": None, "code": None} | refused.more
            await connection.respond(refused.status, {"error": error})
            return
        self.dropped.append(len(read.dropped))
        self.told.append(told)
        await self._answer(body, read, told, connection)

    def _read(self, seen: Seen) -> tuple[dict[str, Any], Read, Told]:
        if not seen.path.endswith("/responses") or seen.method != "POST":
            raise Refused(404, "invalid_request_error", f"Invalid URL (POST {seen.path})")
        if seen.headers.get("authorization") != f"Bearer {KEY}":
            raise Refused(401, "invalid_request_error", "Incorrect API key provided", code="invalid_api_key")
        try:
            body = read_json(seen.body)
        except ValueError as error:
            raise Refused(400, "invalid_request_error", f"We could not parse the JSON body: {error}") from None
        read = read_request(body, self.sealed, self.compacted, binds=body.get("model") in self.binding)
        told = self.caches.setdefault(body["model"], AutomaticCache()).ask(read.blocks)
        if told.prompt > self.window:
            text = "Your input exceeds the context window of this model. Please adjust your input and try again."
            raise Refused(400, "invalid_request_error", text, code="context_length_exceeded", param="input")
        self.look(body)
        return body, read, told

    async def _answer(self, body: dict[str, Any], read: Read, told: Told, connection: Connection) -> None:
        if body["input"][-1].get("type") == "compaction_trigger":
            await self._compact(body, told, connection)
            return
        thinks = "reasoning.encrypted_content" in (body.get("include") or ())
        thinks = thinks and (body.get("reasoning") or {}).get("effort") != "none"
        tools = [tool["name"] for tool in body.get("tools") or ()]
        tools += [t["name"] for i in body["input"] if i.get("type") == "additional_tools" for t in i["tools"]]
        fresh = body["input"][-1].get("type") not in ("function_call_output", "compaction")
        answer = self.mind.answer(tools, thinks=thinks, fresh=fresh)
        await connection.start()
        for number, event in enumerate(self._events(body, answer, read, told)):
            if answer.end == "broken" and event["type"] in ("response.completed", "response.incomplete"):
                await connection.drop()
                return
            await connection.event({**event, "sequence_number": number}, event["type"])
        await connection.end()

    async def _compact(self, body: Mapping[str, Any], told: Told, connection: Connection) -> None:
        """Reasoning may come first; the item is encrypted and whole only at its end."""
        sealed = base64.b64encode(f"compacted {self.asked}".encode()).decode()
        self.compacted[sealed] = body["model"]
        thought = {"type": "reasoning", "id": f"rs_{self.asked}_0", "summary": [], "encrypted_content": "x"}
        item = {"type": "compaction", "id": f"cmp_{self.asked}", "encrypted_content": sealed, "created_by": "sol"}
        usage = {
            "input_tokens": told.prompt,
            "input_tokens_details": {"cached_tokens": told.read},
            "output_tokens": 60,
            "total_tokens": told.prompt + 60,
        }
        response = {"id": f"resp_{self.asked}", "object": "response", "model": body["model"], "status": "completed"}
        response |= {"output": [thought, item], "usage": usage, "store": False}
        events: list[dict[str, Any]] = []
        for index, each in enumerate((thought, item)):
            begun = {**each, "encrypted_content": "early"}
            events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
            if each is item:
                events.append({"type": "response.compaction.compacting", "output_index": index, "item_id": item["id"]})
            events.append({"type": "response.output_item.done", "output_index": index, "item": each})
        events.append({"type": "response.completed", "response": response})
        await connection.start()
        for number, event in enumerate(events):
            await connection.event({**event, "sequence_number": number}, event["type"])
        await connection.end()

    def _events(self, body: Mapping[str, Any], answer: Answer, read: Read, told: Told) -> Iterator[dict[str, Any]]:
        response: dict[str, Any] = {"id": f"resp_{self.asked}", "object": "response", "model": body["model"]}
        response |= {"status": "in_progress", "output": [], "usage": None, "store": False}
        yield {"type": "response.created", "response": response}
        yield {"type": "response.in_progress", "response": response}
        output: list[dict[str, Any]] = []
        for index, part in enumerate(answer.parts):
            item = self._whole(body["model"], answer, index, read)
            yield from item_events(index, part, item)
            output.append(item)
        thinking = sum(len(part.text) for part in answer.parts if isinstance(part, Thought)) // 4
        usage = {
            "input_tokens": told.prompt,
            "input_tokens_details": {"cached_tokens": told.read},
            "output_tokens": answer.size,
            "output_tokens_details": {"reasoning_tokens": thinking},
            "total_tokens": told.prompt + answer.size,
        }
        cut = {"length": "max_output_tokens", "refusal": "content_filter"}.get(answer.end)
        ended = {**response, "status": "incomplete" if cut else "completed", "output": output, "usage": usage}
        if cut:
            ended["incomplete_details"] = {"reason": cut}
        if read.dropped:
            dropped = {"type": "reasoning_dropped", "reason": "prefix_mismatch"}
            ended["input_transformations"] = [{**dropped, "path": path} for path in read.dropped]
        yield {"type": "response.incomplete" if cut else "response.completed", "response": ended}

    def _whole(self, model: str, answer: Answer, index: int, read: Read) -> dict[str, Any]:
        """The finished item of one part."""
        place = f"{self.asked}_{index}"
        match answer.parts[index]:
            case Thought(text=text, hidden=hidden):
                encrypted = base64.b64encode(f"sealed {place}".encode()).decode()
                after = next((part for part in answer.parts[index + 1 :] if not isinstance(part, Thought)), None)
                follower = "function_call" if isinstance(after, Called) else "message"
                self.sealed[encrypted] = Sealed(model, read.digest, follower)
                summary = [] if hidden or not text else [{"type": "summary_text", "text": text}]
                return {
                    "type": "reasoning",
                    "id": f"rs_{place}",
                    "summary": summary,
                    "encrypted_content": encrypted,
                    "status": None,
                }
            case Called(id=id, name=name, arguments=arguments):
                call = {"type": "function_call", "id": f"fc_{place}", "call_id": id, "name": name}
                return {**call, "arguments": arguments, "status": "completed"}
            case Said(text=text):
                content = [{"type": "output_text", "text": text, "annotations": []}]
                said = {"type": "message", "id": f"msg_{place}", "role": "assistant", "content": content}
                return {**said, "status": "completed"}
        raise AssertionError("a part of no kind")


def item_events(index: int, part: Any, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An item as it grows, then whole. Its encrypted content is final only at the end."""

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "output_index": index, "item_id": item["id"], **fields}

    empty = {"content": []} if isinstance(part, Said) else {"arguments": ""} if isinstance(part, Called) else {}
    begun = {**item, **empty, **({"encrypted_content": "early", "summary": []} if isinstance(part, Thought) else {})}
    yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, "status": "in_progress"}}
    match part:
        case Thought(text=text) if item["summary"]:
            for piece in halves(text):
                yield event("reasoning_summary_text.delta", summary_index=0, delta=piece)
            yield event("reasoning_summary_text.done", summary_index=0, text=text)
        case Said(text=text):
            empty_part = {"type": "output_text", "text": "", "annotations": []}
            yield event("content_part.added", content_index=0, part=empty_part)
            for piece in halves(text):
                yield event("output_text.delta", content_index=0, delta=piece)
            yield event("output_text.done", content_index=0, text=text)
        case Called(arguments=arguments):
            for piece in halves(arguments):
                yield event("function_call_arguments.delta", delta=piece)
            yield event("function_call_arguments.done", arguments=arguments)
        case _:
            pass
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
