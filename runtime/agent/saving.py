"""What an agent does while the disk refuses its session: it says so, once, and tries again until all is saved.

Laws: one notice when an outage begins and one when it is over, told when somebody listens: to a turn, or between turns
(`hear`); the task that tries again
belongs to the task group of the agent and runs only while something is unsaved.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from ..events import Notice
from ..session.session import Session

_FIRST_PAUSE = 0.5  # seconds between attempts; each is twice the one before
_LONGEST_PAUSE = 30.0


class Saving:
    """`listening`: whether somebody hears now what `emit` says. `hear` is for whoever shows the conversation: it is
    called with what nobody hears so, as no turn runs."""

    def __init__(
        self, session: Session, group: TaskGroup, emit: Callable[[Notice], None], listening: Callable[[], bool]
    ) -> None:
        self._session = session
        self._group = group
        self._emit = emit
        self._listening = listening
        self.hear: Callable[[Notice], None] | None = None
        self._untold: list[Notice] = []
        self._trying = False
        session.when_saving_changes(self._changed)

    def tell(self) -> None:
        """Say what was not said yet, as somebody listens now."""
        untold, self._untold = self._untold, []
        for notice in untold:
            self._emit(notice)

    def _changed(self) -> None:
        why = self._session.outage
        if why is None:
            self._untold.append(Notice(level="info", text="The session can be saved again, and nothing is missing."))
        else:
            self._untold.append(
                Notice(
                    level="warning",
                    text=f"The session cannot be saved: {why} ({self._session.path}). The conversation goes on in "
                    "memory and is saved as soon as that works; until then tools that change things are refused. "
                    "Free some space or make the folder writable.",
                )
            )
            if not self._trying:
                self._trying = True
                self._group.start_soon(self._try_again)
        if self._listening():
            self.tell()
        elif self.hear is not None:
            untold, self._untold = self._untold, []
            for notice in untold:
                self.hear(notice)

    async def _try_again(self) -> None:
        pause = _FIRST_PAUSE
        try:
            while self._session.unsaved and not self._session.closed:
                with anyio.move_on_after(pause) as waiting:
                    await self._session.wait_settled()
                if waiting.cancelled_caught:
                    await self._session.save()
                pause = min(2 * pause, _LONGEST_PAUSE) if waiting.cancelled_caught else _FIRST_PAUSE
        finally:
            self._trying = False
