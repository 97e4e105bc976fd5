"""Things that wait for their turn: put from anywhere on the loop, taken in order by one task."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")


class Pending(Generic[Item]):
    """Never full, and nothing has to be closed."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._news = anyio.Event()

    def put(self, item: Item) -> None:
        self._items.append(item)
        self._news.set()

    async def take(self) -> Item:
        """The oldest item; waits for one. For one task at a time."""
        while not self._items:
            self._news = anyio.Event()
            await self._news.wait()
        return self._items.popleft()
