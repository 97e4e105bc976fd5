"""Events to whoever listens, without ever waiting for a listener.

A listener may leave at any moment, in whatever way: nothing has to be closed, and what nobody reads is not kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakSet

import anyio

from ..events import Event, MessageRecorded, Notice
from ..session.entries import Entry, MessageRecord
from .announce import Announcer


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


class Followers:
    """Who follows input that waits for its turn, by the entry that holds it."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._by_entry: dict[int, Listeners] = {}

    def follow(self, stream: EventStream, entry: Entry, *, queued: bool, saved: bool) -> None:
        """Let `stream` follow the input that `entry` holds, and tell it that this is recorded."""
        listeners = self._by_entry[entry.id] = Listeners()
        listeners.add(stream)
        recorded = MessageRecorded(entry=entry.id, queued=queued, steered=not queued, saved=saved)
        listeners.emit(self._announcer.stamp(recorded))

    def join(self, record: object, listeners: Listeners) -> None:
        """Let those who wait for the input that `record` delivers follow its turn."""
        item = record.inbox if isinstance(record, MessageRecord) else None
        if item is not None and item in self._by_entry:
            self._by_entry.pop(item).move_to(listeners)

    def release(self, *, held: bool) -> None:
        """Nobody waits for input that is held (a person decides) or goes out with the next message."""
        what = "stopped; this message is held" if held else "ended by a fault; this message goes out with the next one"
        for listeners in self._by_entry.values():
            listeners.emit(self._announcer.stamp(Notice(level="info", text=f"The turn was {what}.")))
            listeners.end()
        self._by_entry.clear()
