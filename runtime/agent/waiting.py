"""Input that waits for its turn, and who follows it. What becomes of it is in the log before anyone hears of it."""

from __future__ import annotations

from collections.abc import Callable

from governors.messages import UserPart

from ..events import MessageRecorded
from ..session.entries import InboxRecord, InboxState
from ..session.session import Session
from ..session.view.standing import Standing
from .announce import Announcer
from .inbox import InboxItem, deliver, in_state, items_of
from .listeners import EventStream, Followers, Listeners


class WaitingInput:
    """Of one agent, which decides under its gate what happens to it."""

    def __init__(self, session: Session, standing: Callable[[], Standing], announcer: Announcer) -> None:
        self._session, self._standing, self._announcer = session, standing, announcer
        self.followers = Followers(announcer)

    def items(self) -> tuple[InboxItem, ...]:
        """What was recorded and not delivered yet (queued, steered or held)."""
        return items_of(self._standing())

    def due(self) -> tuple[InboxItem, ...]:
        """What is delivered as soon as that is possible."""
        return in_state(self.items(), "queued", "steered")

    async def keep(
        self, stream: EventStream, state: InboxState, content: tuple[UserPart, ...], context: str | None
    ) -> None:
        """Record input that arrived, and let `stream` follow it. Raises `SessionError`."""
        (entry,) = await self._session.append(InboxRecord(state=state, content=content, context=context))
        self.followers.follow(stream, entry, queued=state == "queued", saved=self._session.is_saved(entry.id))

    async def hold(self) -> None:
        """Keep what is due until a person says what becomes of it."""
        await self._change("held", self.due())

    async def drop(self) -> int:
        """Drop what is held; it stays in the log. Returns how many messages that were."""
        held = in_state(self.items(), "held")
        await self._change("dropped", held)
        return len(held)

    async def steer(self, listeners: Listeners) -> bool:
        """Deliver what was steered into the turn that `listeners` follow; whether there was any."""
        steered = in_state(self.items(), "steered")
        for item in steered:
            (entry,) = await self._session.append(deliver(item, steered=True))
            self.followers.join(entry.record, listeners)
            saved = self._session.is_saved(entry.id)
            self._announcer.emit(MessageRecorded(entry=entry.id, steered=True, saved=saved))
        return bool(steered)

    async def _change(self, state: InboxState, items: tuple[InboxItem, ...]) -> None:
        if items:
            await self._session.append(*(InboxRecord(state=state, item=item.entry) for item in items))
