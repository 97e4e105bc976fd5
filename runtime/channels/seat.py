"""What the commands of a conversation need: the one that talks, and whoever shows it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeAlias

from governors.messages import UserPart

from ..agent.agent import Agent
from ..errors import SessionError
from ..events import Event
from .base import Host
from .reducer import Line, LineKind, Shown
from .sanitize import clean

Stream: TypeAlias = AsyncIterator[Event]


class Audience(Protocol):
    """Whoever shows the conversation."""

    def happened(self, event: Event) -> None:
        """Something happened in the turn that is shown."""
        ...

    def show(self, *shown: Shown) -> None: ...

    def began(self, agent: Agent) -> None:
        """The conversation goes on with `agent`, on a new session or another model."""
        ...

    def moved(self, agent: Agent) -> None:
        """The conversation goes on from another place of its tree."""
        ...

    def offer(self, text: str, otherwise: str) -> None:
        """Give `text` to the person to be changed and sent; where that cannot be, say `otherwise`."""
        ...


class Seat(Protocol):
    """One conversation, as its commands see it."""

    runtime: Host
    agent: Agent
    audience: Audience
    over: bool
    attached: list[UserPart]  # what goes with the next message

    @property
    def working(self) -> bool: ...

    def waiting(self) -> list[tuple[str, str]]: ...

    async def stop(self) -> None: ...

    async def settle(self) -> None:
        """Wait until all that happened was shown."""
        ...

    def hand_on(self, first: Event | None, stream: Stream) -> None:
        """Show the events of `stream`, which begins with `first`."""
        ...

    def see_again(self) -> None:
        """What was shown may be shown once more: it happens again."""
        ...

    @property
    def occupied(self) -> bool:
        """Whether something that was handed to `meanwhile` is not done yet."""
        ...

    def meanwhile(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` once all that happened so far was shown; the person may go on typing."""
        ...


Act: TypeAlias = Callable[[Seat, str], Awaitable[None]]


def tell(seat: Seat, text: str, kind: LineKind = "info") -> None:
    seat.audience.show(Line(kind, clean(text)))


_AN_ENTRY = "the number of an entry (/tree shows them)"
_NUMBERED = re.compile(r"#?(\d{1,15})(?:\s+(.*))?", re.DOTALL)


def numbered(argument: str) -> tuple[int | None, str]:
    """The number that `argument` begins with, and the rest: `12 beans`, `#12`, `beans`."""
    match = _NUMBERED.fullmatch(argument)
    return (None, argument) if match is None else (int(match[1]), (match[2] or "").strip())


def one_number(command: str, argument: str, what: str = _AN_ENTRY) -> int | None:
    """The number that `argument` is, None for none. Raises `SessionError` for anything else: it has to be `what`."""
    number, rest = numbered(argument)
    if rest:
        raise SessionError(f"{command} takes {what}, not {argument[:40]!r}")
    return number


def needed_number(command: str, argument: str) -> int:
    """As `one_number`, where there has to be one."""
    number = one_number(command, argument)
    if number is None:
        raise SessionError(f"{command} needs the number of an entry, such as {command} 12. /tree shows the numbers")
    return number
