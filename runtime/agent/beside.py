"""What people put beside a conversation: recorded at once while the agent rests, else when its turn is over.

In the middle of a turn it would stand before a reply whose model had not seen it. Laws: it is recorded in the order in
which it came, before any input that waits is delivered; what a model will see of it is on disk at once, as queued
input, so that a process that dies before the turn ends leaves it to go along with the next message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio

from ..session.entries import Entry, ExtensionRecord, InboxRecord
from ..session.session import Session
from ..session.view.wrapping import opening_of, wrapped


class Beside:
    """`gate` is held by whoever decides what happens to input, `resting` tells whether no turn runs."""

    def __init__(self, session: Session, gate: anyio.Lock, resting: Callable[[], bool]) -> None:
        self._session, self._gate, self._resting = session, gate, resting
        self._later: list[ExtensionRecord] = []

    async def record(self, record: ExtensionRecord) -> Entry | None:
        """Record it; None when that has to wait for the end of the turn. Raises `SessionError`."""
        async with self._gate:
            if not self._resting():
                seen = wrapped(opening_of(record.name, record.data), record.content, 0).content
                (item,) = await self._session.append(InboxRecord(state="queued", content=seen))
                self._later.append(replace(record, inbox=item.id))
                return None
            (entry,) = await self._session.append(record)
            return entry

    async def settle(self) -> None:
        """Record what waits; for whoever holds the gate at the end of a turn. Raises `SessionError`."""
        later, self._later = self._later, []
        if later:
            await self._session.append(*later)
