"""Real servers on loopback for tests: HTTP/1.1 by hand, so that a test can break it at any byte.

`serve(handler)` runs any handler: `async with serve(handler) as server: server.url`. `answering(a, b)` gives the
first request to `a`, the second to `b`, all later ones to the last. `model_server(...)` is strict: it checks key,
form and legality of each request in the way a provider does, and only then answers with the next of its replies.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from governors.wire import WIRES, Abilities

KEY = "sk-test-0123456789abcdef"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(slots=True)
class Seen:
    """One request as it arrived; header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Connection:
    """What a handler answers with."""

    stream: SocketStream
    gone: anyio.Event

    async def send(self, data: bytes) -> None:
        """Raw bytes."""
        await self.stream.send(data)

    async def respond(
        self, status: int = 200, body: Any = b"", headers: dict[str, str] | None = None, kind: str = "application/json"
    ) -> None:
        """A whole answer; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}
        await self.send(_head(status, lines) + data)

    async def start(self, kind: str = "text/event-stream", headers: dict[str, str] | None = None) -> None:
        """Begin an answer that comes in pieces."""
        await self.send(_head(200, {"content-type": kind, "transfer-encoding": "chunked", **(headers or {})}))

    async def piece(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def event(self, data: Any, name: str = "") -> None:
        """One server-sent event; `data` that is not text is sent as JSON."""
        text = data if isinstance(data, str) else json.dumps(data)
        await self.piece(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n".encode())

    async def hang(self) -> None:
        """Say nothing more until the client goes."""
        try:
            while True:
                await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.gone.set()
            raise

    async def drop(self) -> None:
        """Close the connection here and now."""
        await self.stream.aclose()


Handler: TypeAlias = Callable[[Seen, Connection], Awaitable[None]]


@dataclass(slots=True)
class Server:
    """A running server. `gone` is set when a client left a handler that hangs."""

    url: str
    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    gone: anyio.Event = field(default_factory=anyio.Event)


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[Server]:
    """A server on a free port of 127.0.0.1, until the context is left."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)
    server = Server(f"http://127.0.0.1:{port}", port)

    async def talk(stream: SocketStream) -> None:
        server.connections += 1
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            try:
                while (seen := await _read(buffered)) is not None:
                    server.seen.append(seen)
                    await handler(seen, Connection(stream, server.gone))
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.IncompleteRead):
                return  # one side closed it: what a test that drops or cancels is about

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, talk)
        try:
            yield server
        finally:
            group.cancel_scope.cancel()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *(f"{name}: {it}" for name, it in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read(stream: BufferedByteReceiveStream) -> Seen | None:
    try:
        head = await stream.receive_until(b"\r\n\r\n", 65_536)
    except (anyio.EndOfStream, anyio.IncompleteRead):
        return None
    first, *lines = head.decode().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    size = int(headers.get("content-length", 0))
    return Seen(method, path, headers, await stream.receive_exactly(size) if size else b"")


def answering(*handlers: Handler) -> Handler:
    """Each request by the next handler; the last one takes all that follow."""
    waiting = list(handlers)

    async def handle(seen: Seen, connection: Connection) -> None:
        handler = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        await handler(seen, connection)

    return handle


def status(code: int, body: Any = b"", headers: dict[str, str] | None = None) -> Handler:
    """A handler that answers with this."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.respond(code, body, headers)

    return handle


def chat_events(*chunks: Any, done: bool = True) -> Handler:
    """A Chat Completions stream of these chunks."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.start()
        for chunk in chunks:
            await connection.event(chunk)
        if done:
            await connection.event("[DONE]")
        await connection.end()

    return handle


def anthropic_events(*events: dict[str, Any]) -> Handler:
    """A Messages stream of these events."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.start()
        for event in events:
            await connection.event(event, event["type"])
        await connection.end()

    return handle


def responses_events(*events: dict[str, Any]) -> Handler:
    """A Responses stream of these events, numbered."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.start()
        for number, event in enumerate(events):
            await connection.event({**event, "sequence_number": number}, event["type"])
        await connection.end()

    return handle


def chat_text(text: str, finish: str = "stop", prompt: int = 10, cached: int = 0) -> Handler:
    """A short, whole chat reply with usage."""
    usage = {"prompt_tokens": prompt, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": cached}}
    half = len(text) // 2
    return chat_events(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": text[:half]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": text[half:]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    )


def anthropic_text(text: str, stop: str = "end_turn") -> Handler:
    """A short, whole reply of the Messages API with usage."""
    half = len(text) // 2
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0, "output_tokens": 1}
    start: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    return anthropic_events(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[:half]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[half:]}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def responses_text(text: str, status: str = "completed") -> Handler:
    """A short, whole reply of the Responses API with usage."""
    half = len(text) // 2
    place = {"output_index": 0, "item_id": "msg_1"}
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    whole = {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
    usage = {
        "input_tokens": 15,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    response = {"id": "resp_1", "object": "response", "status": status, "output": [whole], "usage": usage}
    return responses_events(
        {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", **place, "content_index": 0, "delta": text[:half]},
        {"type": "response.output_text.delta", **place, "content_index": 0, "delta": text[half:]},
        {"type": "response.output_text.done", **place, "content_index": 0, "text": text},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": f"response.{status}", "response": response},
    )


def model_server(replies: Sequence[Handler], *, abilities: Abilities | None = None, window: int = 0) -> Any:
    """A strict server of all protocols: `/v1/chat/completions`, `/v1/messages` and `/v1/responses`.

    It refuses a wrong key, an unknown path, a body that is not JSON, and whatever the wire's checker calls an
    error, each in its provider's own form. `window` (characters of the body) makes it refuse long prompts.
    """
    answer = answering(*replies)

    async def handle(seen: Seen, connection: Connection) -> None:
        refusal = _refusal(seen, abilities or Abilities(), window)
        if refusal is None:
            await answer(seen, connection)
        else:
            await connection.respond(*refusal)

    return serve(handle)


PATHS = {"/chat/completions": "openai_chat", "/v1/messages": "anthropic", "/v1/responses": "openai_responses"}


def _refusal(seen: Seen, abilities: Abilities, window: int) -> tuple[int, dict[str, Any]] | None:
    wire = next((wire for end, wire in PATHS.items() if seen.path.endswith(end)), None)
    chat = wire != "anthropic"  # as OpenAI tells errors
    if wire is None:
        return _error(chat, 404, "not_found_error", "no such path")
    key = seen.headers.get("authorization", "").removeprefix("Bearer ") or seen.headers.get("x-api-key")
    if key != KEY:
        kind = "invalid_request_error" if chat else "authentication_error"
        return _error(chat, 401, kind, f"Incorrect API key provided: {key}.")
    try:
        body = json.loads(seen.body.decode("utf-8"))
    except ValueError as error:
        return _error(chat, 400, "invalid_request_error", f"We could not parse the JSON body of your request: {error}")
    if body.get("stream") is not True or (wire != "openai_chat" and "stream_options" in body):
        return _error(chat, 400, "invalid_request_error", "this test server only streams")
    broken = [each for each in WIRES[wire].check(body, abilities) if each.severity == "E"]
    if broken:
        return _error(chat, 400, "invalid_request_error", str(broken[0]))
    if window and len(seen.body) > window:
        size = len(seen.body)
        if chat:
            text = f"This model's maximum context length is {window} tokens. However, your messages resulted in {size}."
            return _error(chat, 400, "invalid_request_error", text, "context_length_exceeded")
        return _error(chat, 400, "invalid_request_error", f"prompt is too long: {size} tokens > {window} maximum")
    return None


def _error(chat: bool, code: int, kind: str, text: str, name: str | None = None) -> tuple[int, dict[str, Any]]:
    if chat:
        return code, {"error": {"message": text, "type": kind, "param": None, "code": name}}
    return code, {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_test"}
