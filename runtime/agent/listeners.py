"""Events to whoever listens, without ever waiting for a listener."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ..events import Event


class Listeners:
    """The listeners of one turn (or of an agent). A listener that went away is forgotten."""

    def __init__(self) -> None:
        self._streams: list[MemoryObjectSendStream[Event]] = []

    def add(self) -> EventStream:
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        self._streams.append(send)
        return EventStream(receive)

    def emit(self, event: Event) -> None:
        for stream in list(self._streams):
            try:
                stream.send_nowait(event)
            except anyio.BrokenResourceError:
                stream.close()
                self._streams.remove(stream)

    def move_to(self, other: Listeners) -> None:
        other._streams.extend(self._streams)
        self._streams.clear()

    def close(self) -> None:
        """End every listener's iteration."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()


class EventStream(AsyncIterator[Event]):
    """The events of a turn, ending after `TurnFinished`. Leaving it early does not stop the turn."""

    def __init__(self, receive: MemoryObjectReceiveStream[Event]) -> None:
        self._receive = receive

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            self._receive.close()
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._receive.close()
