"""Says what happens, in the name of an agent and its session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..events import Event, Retrying, TextDelta, ThinkingDelta, ToolCallDelta
from ..providers.base import CallPiece, Retry, StreamEvent, TextPiece, ThinkingPiece


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

    def tell(self, piece: StreamEvent) -> None:
        """What comes of an answer, as people may see it."""
        match piece:
            case TextPiece(text):
                self.emit(TextDelta(text=text))
            case ThinkingPiece(text):
                self.emit(ThinkingDelta(text=text))
            case CallPiece(index, tool, arguments):
                self.emit(ToolCallDelta(index=index, tool=tool, arguments=arguments))
            case Retry(why, delay, attempt):
                self.emit(Retrying(why=why, delay=delay, attempt=attempt))
            case _:
                pass
