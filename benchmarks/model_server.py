"""A model's server on loopback for benchmarks: Chat Completions and Messages, streamed or whole, answers fixed.

    python benchmarks/model_server.py [--port 0]

Prints its URL as the first line and serves until its standard input ends, so that it dies with who started it. How it
behaves stands in the model's name, so that one server serves every case:

    fake-k<K>-n<N>-d<MS>-c<CHUNKS>    K rounds of N tool calls each, then a text in CHUNKS pieces; MS before it answers

The round is how many replies with calls stand after the last text of the user. It is a process of its own: what it
costs is not in the client's figures. A request without rounds is not parsed. `GET /count` tells how many calls came.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

TEXT = "All done. The answer is 42."
TOOLS = ("bench_echo", "list_dir", "ls", "read_file")  # the first of these that a request offers is called
USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}

_MODEL = re.compile(rb'"model":\s*"fake(?:-k(\d+))?(?:-n(\d+))?(?:-d(\d+))?(?:-c(\d+))?"')
_STREAM = re.compile(rb'"stream":\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
_EDGE = 4096  # bytes at both ends of a body in which its fields are looked for before all of it is


def field_of(pattern: re.Pattern[bytes], body: bytes) -> re.Match[bytes] | None:
    """The field in `body`; the ends are read first, as fields mostly stand there."""
    return pattern.search(body[:_EDGE]) or pattern.search(body[-_EDGE:]) or pattern.search(body)


def rounds_done(messages: list[dict[str, Any]]) -> int:
    """How many replies with calls stand after the user's last text."""
    done = 0
    for message in reversed(messages):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        kinds = {block.get("type") for block in blocks if isinstance(block, dict)}
        if message.get("role") == "user" and "tool_result" not in kinds:
            break
        done += message.get("role") == "assistant" and bool(message.get("tool_calls") or "tool_use" in kinds)
    return done


def calls_for(body: bytes, rounds: int, number: int) -> list[tuple[str, str, str]]:
    """(id, tool, arguments) of the calls to make next; none when the rounds are over."""
    asked = orjson.loads(body)
    done = rounds_done(asked["messages"])
    offered = [tool.get("function", tool).get("name") for tool in asked.get("tools") or ()]
    tool = next((name for name in TOOLS if name in offered), offered[0] if offered else None)
    if tool is None or done >= rounds:
        return []
    arguments = '{"text":"item"}' if tool == "bench_echo" else '{"path":"."}'
    return [(f"call_{len(asked['messages'])}_{place}", tool, arguments) for place in range(number)]


def pieces_of(chunks: int) -> Iterable[str]:
    size = max(1, -(-len(TEXT) // chunks))
    return [TEXT[start : start + size] for start in range(0, len(TEXT), size)]


def events(objects: Iterable[dict[str, Any]], *, named: bool) -> bytes:
    parts = []
    for each in objects:
        name = b"event: " + str(each["type"]).encode() + b"\n" if named else b""
        parts.append(name + b"data: " + orjson.dumps(each) + b"\n\n")
    return b"".join(parts)


def chat_reply(calls: list[tuple[str, str, str]], chunks: int, *, stream: bool) -> bytes:
    """A reply of Chat Completions."""
    base = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "fake"}
    made = [
        {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for id, tool, arguments in calls
    ]
    reason = "tool_calls" if calls else "stop"
    if not stream:
        message = {"role": "assistant", "content": None if calls else TEXT, **({"tool_calls": made} if made else {})}
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return orjson.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": USAGE})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(made)]
    deltas += [] if calls else [{"content": piece} for piece in pieces_of(chunks)]
    base["object"] = "chat.completion.chunk"
    parts = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    parts.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    parts.append({**base, "choices": [], "usage": USAGE})
    return events(parts, named=False) + b"data: [DONE]\n\n"


def messages_reply(calls: list[tuple[str, str, str]], chunks: int, *, stream: bool) -> bytes:
    """A reply of the Messages API."""
    usage = {"input_tokens": 1000, "output_tokens": 20}
    content: list[dict[str, Any]] = [
        {"type": "tool_use", "id": id, "name": tool, "input": orjson.loads(arguments)} for id, tool, arguments in calls
    ] or [{"type": "text", "text": TEXT}]
    stop = "tool_use" if calls else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": content}
    message |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
    if not stream:
        return orjson.dumps(message)
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(content):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        parts.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(chunks)]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": orjson.dumps(block["input"]).decode()}]
        parts += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        parts.append({"type": "content_block_stop", "index": index})
    parts.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}})
    parts.append({"type": "message_stop"})
    return events(parts, named=True)


@lru_cache(maxsize=256)
def text_reply(chunks: int, *, chat: bool, stream: bool) -> bytes:
    return (chat_reply if chat else messages_reply)([], chunks, stream=stream)


class ModelProtocol(asyncio.Protocol):
    """One connection, HTTP/1.1 with keep-alive."""

    calls = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held: list[bytes] = []
        self.size = 0
        self.needed = 0
        self.chunked = False

    def data_received(self, data: bytes) -> None:
        self.held.append(data)
        self.size += len(data)
        if self.chunked or self.size >= self.needed:
            self._take()

    def _take(self) -> None:
        """Answer when a whole request is there."""
        received = b"".join(self.held)
        self.held = [received]
        end = received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = received[: end + 2]
        if _CHUNKED.search(head):
            self.chunked = True
            if not received.endswith(b"\r\n0\r\n\r\n"):
                return
            body = dechunked(received[end + 4 :])
        else:
            length = _LENGTH.search(head)
            self.needed = end + 4 + (int(length[1]) if length else 0)
            if len(received) < self.needed:
                return
            body = received[end + 4 : self.needed]
        self.held, self.size, self.needed, self.chunked = [], 0, 0, False
        self._answer(head.split(b" ", 2)[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path.startswith(b"/count"):
            self._send(orjson.dumps({"calls": ModelProtocol.calls}), b"application/json")
            return
        ModelProtocol.calls += 1
        found = field_of(_MODEL, body)
        rounds, number, delay, chunks = (int(each or 0) for each in (found.groups() if found else (0, 0, 0, 0)))
        stream, chat = field_of(_STREAM, body) is not None, b"chat/completions" in path
        calls = calls_for(body, rounds, number or 1) if rounds else []
        if calls:
            reply = (chat_reply if chat else messages_reply)(calls, chunks or 8, stream=stream)
        else:
            reply = text_reply(chunks or 8, chat=chat, stream=stream)
        kind = b"text/event-stream" if stream else b"application/json"
        if delay:
            asyncio.get_running_loop().call_later(delay / 1000, self._send, reply, kind)
        else:
            self._send(reply, kind)

    def _send(self, body: bytes, kind: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
            self.transport.write(head + body)


def dechunked(data: bytes) -> bytes:
    """The body of a request that came in chunks."""
    parts, place = [], 0
    while True:
        end = data.index(b"\r\n", place)
        size = int(data[place:end], 16)
        if not size:
            return b"".join(parts)
        parts.append(data[end + 2 : end + 2 + size])
        place = end + 4 + size


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    options = parser.parse_args()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(ModelProtocol, "127.0.0.1", options.port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # ends when whoever started this is gone
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
