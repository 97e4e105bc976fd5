"""Says what happens, in the name of an agent and its session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..events import Event


@dataclass(frozen=True, slots=True)
class Announcer:
    """Stamps events with the agent and session they belong to and hands them on."""

    agent: str
    session: str
    sink: Callable[[Event], None]

    def stamp(self, event: Event) -> Event:
        return replace(event, agent=self.agent, session=self.session)

    def emit(self, event: Event) -> None:
        self.sink(self.stamp(event))
