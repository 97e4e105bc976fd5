"""What an agent does at this moment: its state, how long it lasts, and what ends it.

Laws: the state moves only by the table of `states`, and every move is an event; `idle` is set exactly while nothing
runs; a stop cancels the scope of what runs, and waits for its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from ..events import StateChanged
from .announce import Announcer
from .states import State, Trigger, move


class Activity:
    """Of one agent. `scope` is that of what runs now, or ran last."""

    def __init__(self, announcer: Announcer) -> None:
        self.state = State.IDLE
        self.scope = anyio.CancelScope()
        self.idle = anyio.Event()
        self.idle.set()
        self._announcer = announcer

    @property
    def at_rest(self) -> bool:
        """Whether input would open a turn at once."""
        return self.state in (State.IDLE, State.FAILED)

    def move(self, trigger: Trigger, why: str) -> None:
        """Change the state, and say so. Raises `IllegalMove`."""
        before, self.state = self.state, move(self.state, trigger)
        self._announcer.emit(StateChanged(before=before.value, after=self.state.value, why=why))

    def begin(self, trigger: Trigger, why: str) -> anyio.CancelScope:
        """Something runs from here on, until `idle` is set."""
        self.idle = anyio.Event()
        self.move(trigger, why)
        return self.renew()

    def renew(self) -> anyio.CancelScope:
        """A scope for what runs next."""
        self.scope = anyio.CancelScope()
        return self.scope

    async def stop(self) -> None:
        """End what runs and wait until what must be recorded is; does nothing when nothing runs."""
        if self.state in (State.RUN, State.COMPACT):
            self.move(Trigger.STOP, "stopped by the user")
            self.scope.cancel()
        await self.idle.wait()

    def settle(self, why: str) -> bool:
        """What ran is over, and was no turn; whether it was told to stop."""
        stopped = self.state is State.STOPPING
        self.move(Trigger.STOPPED if stopped else Trigger.REST, why)
        return stopped

    @contextmanager
    def occupied(self, why: str) -> Iterator[None]:
        """Be busy with something that is no turn and that a stop ends; while nothing else may begin."""
        scope = self.begin(Trigger.FULL, why)
        try:
            with scope:
                yield
        finally:
            self.settle(f"{why}: over")
            self.idle.set()

    @contextmanager
    def making_room(self, why: str) -> Iterator[None]:
        """Make room, inside a turn: the state says so, and the turn goes on afterwards."""
        if self.state is not State.RUN:
            yield
            return
        self.move(Trigger.FULL, why)
        try:
            yield
        finally:
            if not self.scope.cancel_called:  # else it was told to stop
                self.move(Trigger.ROOM, "the turn goes on")
