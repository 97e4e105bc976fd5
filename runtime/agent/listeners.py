"""Events to whoever listens, without ever waiting for a listener.

A listener may leave at any moment, in whatever way: nothing has to be closed, and what nobody reads is not kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakSet

import anyio

from ..events import Event


class EventStream(AsyncIterator[Event]):
    """The events of a turn, in order, ending after the last. One reader at a time.

    `begin` runs at the first event asked for; it is what puts the stream among the listeners.
    """

    def __init__(self, begin: Callable[[EventStream], Awaitable[None]] | None = None) -> None:
        self._begin = begin
        self._events: deque[Event] = deque()
        self._news = anyio.Event()
        self._ended = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            await begin(self)
        while not self._events:
            if self._ended:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._events.popleft()

    def push(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()


class Listeners:
    """The listeners of a turn, or of input that waits for one."""

    def __init__(self) -> None:
        self._streams: WeakSet[EventStream] = WeakSet()

    def add(self, stream: EventStream) -> None:
        self._streams.add(stream)

    def emit(self, event: Event) -> None:
        for stream in list(self._streams):
            stream.push(event)

    def move_to(self, other: Listeners) -> None:
        other._streams |= self._streams
        self._streams.clear()

    def end(self) -> None:
        """End every listener's iteration."""
        for stream in list(self._streams):
            stream.end()
        self._streams.clear()
