"""What people put beside a conversation: recorded at once while the agent rests, else when its turn is over.

In the middle of a turn it would stand before a reply whose model had not seen it. Law: it is recorded in the order in
which it came, before any input that waits is delivered.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from ..session.entries import Entry, Record
from ..session.session import Session


class Beside:
    """`gate` is held by whoever decides what happens to input, `resting` tells whether no turn runs."""

    def __init__(self, session: Session, gate: anyio.Lock, resting: Callable[[], bool]) -> None:
        self._session, self._gate, self._resting = session, gate, resting
        self._later: list[Record] = []

    async def record(self, record: Record) -> Entry | None:
        """Record it; None when that has to wait for the end of the turn. Raises `SessionError`."""
        async with self._gate:
            if not self._resting():
                self._later.append(record)
                return None
            (entry,) = await self._session.append(record)
            return entry

    async def settle(self) -> None:
        """Record what waits; for whoever holds the gate at the end of a turn. Raises `SessionError`."""
        later, self._later = self._later, []
        if later:
            await self._session.append(*later)
