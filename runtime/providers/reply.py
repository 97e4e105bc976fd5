"""The reply to one call, as events: bytes of an HTTP response in, pieces and one `Finished` out.

Every way in which a call can fail ends here in a `Finished` with a problem. No cancel scope is open while an event
is handed out, so the iterator is safe on trio however it is left.

A stream that sends no byte for `timeout` seconds has stalled. One that sends only signs of life (comments, pings, empty
pieces) is waited for `PATIENCE` times as long, as a model may think that long and a gateway queue, and no longer: the
server's heart may beat while the model behind it is dead.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import orjson

from .assemble import Assembler, broken_off
from .base import Finished, Problem, StreamEvent
from .problems import Target, cut_short, from_exception, from_status, not_a_model, unsendable
from .sse import LineTooLong, SseDecoder, SseEvent

_DRAIN = 0.2  # seconds for what follows the end marker, so that the connection can be used again
_CLOSE = 2.0  # seconds for closing, whatever the peer does
_LARGEST_BODY = 64 * 1024 * 1024  # bytes of a reply that comes whole
_LARGEST_REFUSAL = 64 * 1024  # bytes of an error that are read

#: How many time-outs a stream may last that sends nothing but signs of life.
PATIENCE = 5

_HEARTBEATS = frozenset({"ping", "keepalive"})  # events of that type say nothing but that the server lives

#: What a connection raises when it breaks and the HTTP library passes it on as it is.
BROKEN: tuple[type[Exception], ...] = (OSError, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)

_SDK_ERRORS = {
    "httpx2": ("HTTPError", "InvalidURL", "StreamError"),
    "openai": ("OpenAIError",),
    "anthropic": ("AnthropicError",),
}


class Reply:
    """The events of one call, in order, ending after `Finished`."""

    def __init__(
        self,
        *,
        post: Callable[[], Awaitable[Any]],
        assembler: Assembler,
        target: Callable[[], Target],
        timeout: float,
        clock: Callable[[], float],
    ) -> None:
        self._post = post
        self._assembler = assembler
        self._target = target
        self._timeout = timeout
        self._clock = clock
        self._events: deque[StreamEvent] = deque()
        self._decoder = SseDecoder()
        self._whole: bytearray | None = None  # a reply that is one JSON document
        self._refused, self._error = False, bytearray()  # what is read is the body of an error
        self._spoke = 0.0  # when something came that was more than a sign of life (the loop's clock)
        self._response: Any = None
        self._chunks: AsyncGenerator[bytes, None] | None = None
        self._read_any = False
        self._finished = False

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._events:
            if self._finished:
                raise StopAsyncIteration
            await self._advance()
        return self._events.popleft()

    async def _advance(self) -> None:
        """Connect, or read once."""
        try:
            if self._chunks is None:
                await self._connect()
                return
            chunk = await anext(self._chunks, None)
        except BROKEN as error:
            self._break(from_exception(error, self._target(), self._timeout))
        except sdk_errors() as error:
            self._break(self._failed(error))
        else:
            self._take(chunk)

    async def _connect(self) -> None:
        try:
            self._response = await self._post()
        except (ImportError, ValueError, TypeError) as error:  # raised before anything was sent
            self._finish(unsendable(error, self._target()))
        else:
            self._chunks = self._response.aiter_bytes()
            self._spoke = anyio.current_time()
            if not self._response.is_success:
                self._refused = True

    def _take(self, chunk: bytes | None) -> None:
        """What to make of the bytes read; None: the connection ended."""
        if chunk is None:
            self._end()
            return
        if self._refused:
            self._error += chunk
            if len(self._error) > _LARGEST_REFUSAL:
                self._refuse()
            return
        if not self._read_any and chunk.strip():
            self._read_any = True
            self._recognise(chunk)
        if self._finished:
            return
        if self._whole is not None:
            self._whole += chunk
            if len(self._whole) > _LARGEST_BODY:
                self._finish(cut_short(self._target(), "the reply is larger than any model's"))
            return
        try:
            events = self._decoder.feed(chunk)
        except LineTooLong as error:
            self._finish(cut_short(self._target(), str(error)))
            return
        self._feed(events)
        self._lose_patience()

    def _lose_patience(self) -> None:
        silent = anyio.current_time() - self._spoke
        if silent > PATIENCE * self._timeout and not self._finished:
            text = f"{self._target().provider} sent nothing but signs of life for {silent:.3g} seconds"
            self._finish(Problem("network", text))

    def _recognise(self, chunk: bytes) -> None:
        """A stream of events, one JSON document, or no model's server at all."""
        kind = str(self._response.headers.get("content-type", "")).lower()
        start = chunk.lstrip()
        if "event-stream" in kind or start.startswith((b"data:", b"event:", b":", b"\xef\xbb\xbf")):
            return
        if "json" in kind or start.startswith(b"{"):
            self._whole = bytearray()
        else:
            self._finish(not_a_model(self._target(), kind, chunk.decode("utf-8", "replace")))

    def _feed(self, events: list[SseEvent]) -> None:
        for event in events:
            if event.data.strip() == "[DONE]":
                self._assembler.ended = True
            else:
                self._feed_json(event.data, event.name)
            if self._assembler.ended and not self._finished:
                self._settle()
            if self._finished:
                return

    def _feed_json(self, text: str | bytes, name: str = "") -> None:
        try:
            chunk = read_json(text)
        except (ValueError, RecursionError):
            said = text if isinstance(text, str) else text.decode("utf-8", "replace")
            self._finish(cut_short(self._target(), f"not JSON: {said[:500]}"))
            return
        if name == "error" and not (isinstance(chunk, dict) and chunk.get("error")):
            chunk = {"error": chunk}
        if not isinstance(chunk, dict):
            return
        pieces = self._assembler.feed(chunk)
        self._events.extend(pieces)
        kind = chunk.get("type")
        if pieces or (isinstance(kind, str) and kind not in _HEARTBEATS):
            self._spoke = anyio.current_time()
        if fault := self._assembler.fault:
            self._finish(from_status(fault.status, fault.body, self._target()))

    def _end(self) -> None:
        if self._refused:
            self._refuse()
            return
        if self._whole is not None:
            self._feed_json(bytes(self._whole))
        else:
            self._feed(self._decoder.finish())
        if not self._finished:
            if self._assembler.answered:
                self._settle()
            else:
                self._finish(cut_short(self._target()))

    def _settle(self) -> None:
        """The end came. Without a reason beside it, it counts only if what came can be whole."""
        if not self._assembler.answered:
            received = self._assembler.finish("aborted")
            if not received.content or not all(call.complete for call in received.calls):
                self._finish(cut_short(self._target(), "the end came without a reason"))
                return
        self._finished = True
        self._events.append(Finished(self._assembler.finish(), remote=self._assembler.remote))

    def _finish(self, problem: Problem) -> None:
        self._finished = True
        stop = "refused" if problem.kind == "refused" else broken_off(problem)
        self._events.append(Finished(self._assembler.finish(stop), problem))

    def _break(self, problem: Problem) -> None:
        """The connection broke, which matters little while it is only an error that is being read."""
        if self._refused:
            self._refuse()
        else:
            self._finish(problem)

    def _refuse(self) -> None:
        """The server answered with an error, and this much of its body came."""
        text = self._error.decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = text
        response = self._response
        self._finish(from_status(response.status_code, body, self._target(), response.headers, self._clock()))

    def _failed(self, error: Exception) -> Problem:
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None)
        if response is None or status is None:
            return from_exception(error, self._target(), self._timeout)
        body = getattr(error, "body", None)
        return from_status(status, "" if body is None else body, self._target(), response.headers, self._clock())

    async def aclose(self) -> None:
        """Give the connection back, or close it. Safe to call twice and while being cancelled."""
        response, self._response = self._response, None
        chunks, self._chunks = self._chunks, None
        if response is None or chunks is None:
            return
        if self._finished and self._assembler.ended:
            with anyio.move_on_after(_DRAIN, shield=True):
                await run_out(chunks)
        with anyio.move_on_after(_CLOSE, shield=True):
            await response.aclose()
            # The reader is a nest of generators. Run into the closed socket, each of them ends by itself; closed
            # from outside, the inner ones would be left to the garbage collector, which trio reports.
            await run_out(chunks)


def read_json(text: str | bytes) -> Any:
    """JSON as servers send it. Raises `ValueError` and `RecursionError`.

    The quick reader refuses what the standard library takes: half a surrogate pair, NaN, bytes that are not UTF-8.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))


async def run_out(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read to the end, or into the error that a closed connection gives."""
    try:
        async for _ in chunks:
            pass
    except BROKEN:
        return  # the connection is being given up anyway
    except sdk_errors():
        return


def sdk_errors() -> tuple[type[Exception], ...]:
    """What the HTTP library and the SDKs raise for a call that failed, of those that are loaded."""
    found: list[type[Exception]] = []
    for module, names in _SDK_ERRORS.items():
        loaded = sys.modules.get(module)
        found.extend(getattr(loaded, name) for name in names if hasattr(loaded, name))
    return tuple(found)
