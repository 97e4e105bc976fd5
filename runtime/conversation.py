"""An agent on one session, for programs: what a person does in a conversation, as methods."""

from __future__ import annotations

from collections.abc import Iterable

from governors.messages import UserPart

from .agent.agent import Agent
from .agent.branches import Moved, whole, with_tree
from .agent.compacting import STRATEGIES, Receipt
from .agent.listeners import EventStream
from .agent.marking import Redacted
from .errors import ConfigError, TurnFailed
from .events import TurnFinished
from .providers.base import ChosenModel
from .session.moving.forking import fork_tree
from .session.moving.outline import Outline, outline
from .supervisor import Supervisor


class Conversation:
    """The session is opened at the first use. Entries are named by their numbers in the session's log.

    Every method that takes an entry raises `SessionError` when there is none of that number; it names the nearest.
    """

    def __init__(self, supervisor: Supervisor, name: str, session: str | None) -> None:
        self._supervisor = supervisor
        self._name = name
        self._session = session
        self._agent: Agent | None = None

    async def open(self) -> Agent:
        """The agent itself. Raises `SessionError`, `SessionLocked`."""
        if self._agent is None:
            self._agent = await self._supervisor.agent(self._name, self._session)
        return self._agent

    def send(self, message: str | Iterable[UserPart], *, sender: str | None = None, queue: bool = False) -> EventStream:
        """Say something and follow the events until the agent rests; the last is `TurnFinished`.

        The message is sent when the first event is asked for. Leaving the iteration does not stop the turn.
        """

        async def begin(stream: EventStream) -> None:
            agent = await self.open()
            await agent.receive(stream, message, sender=sender, queue=queue)

        return EventStream(begin)

    async def ask(self, message: str) -> str:
        """Say something and get the text of the answer. Raises `TurnFailed` when there is none."""
        return await _answer(self.send(message))

    async def stop(self) -> None:
        """End the running turn; every finished step stays."""
        if self._agent is not None:
            await self._agent.stop()

    async def undo(self, turns: int = 1) -> Moved:
        """Take the last turns back; `Moved.text` is what was said in the oldest of them. A running turn is stopped.

        Nothing is deleted: `switch(moved.first)` goes back. Raises `SessionError` when there are not as many turns.
        """
        return await (await self.open()).branches.undo(turns)

    async def undo_head(self) -> Moved:
        """Show the model again what the newest head took out of its view. Raises `SessionError` when none holds."""
        return await (await self.open()).branches.undo_head()

    async def compact(self, focus: str | None = None, strategy: str | None = None) -> Receipt:
        """Make room now: what was said becomes a summary, which keeps `focus` above all.

        A running turn is stopped; what is said meanwhile waits. `strategy` is `summary`, `provider` or `blank` (None:
        that of the config). The receipt says what came of it, also when that failed; `undo_head` takes it back. Raises
        `SessionError`, and `ConfigError` for a strategy that there is not.
        """
        if strategy is not None and strategy not in STRATEGIES:
            raise ConfigError(f"there is no strategy {strategy!r} for making room; there are: {', '.join(STRATEGIES)}")
        return await (await self.open()).compactions.by_hand(focus, strategy)

    def retry(self, model: ChosenModel | None = None) -> EventStream:
        """Send the last message once more, as `send` would; `model` answers from here on.

        The iteration raises `SessionError` when nothing was said yet.
        """

        async def begin(stream: EventStream) -> None:
            await (await self.open()).branches.try_again(stream, model)

        return EventStream(begin)

    async def switch(self, entry: int, *, summarise: bool = False, edit: bool = False) -> Moved:
        """Go on from the end of the entry's turn; on another branch, from where that was written to last.

        `edit`: from right before the turn instead; `Moved.text` is what was said in it. `summarise`: the model is
        asked for a summary of the branch that is left, and told of it on the other. Raises `AsideFailed` when there is
        none; then nothing has moved.
        """
        return await (await self.open()).branches.switch(entry, summarise=summarise, edit=edit)

    async def fork(self, entry: int | None = None) -> Conversation:
        """Another conversation, on a new session that holds this branch up to `entry` (None: all of it)."""
        agent = await self.open()
        session = await whole(agent.session)
        forked = await fork_tree(self._supervisor.store, session.header, session.tree, entry, session.blobs)
        return Conversation(self._supervisor, self._name, forked)

    async def outline(self) -> Outline:
        """The turns of the session, and its branches."""
        return await with_tree((await self.open()).session, outline)

    async def pin(self, entry: int | None = None, *, on: bool = True) -> int:
        """Keep an entry (None: the last message) in view when a head cuts it off, or no longer."""
        return await (await self.open()).marks.pin(entry, on=on)

    async def label(self, text: str, entry: int | None = None, *, on: bool = True) -> int:
        """Give an entry (None: the last message) a name to find it by, or take it away."""
        return await (await self.open()).marks.label(text, entry, on=on)

    async def note(self, text: str) -> int:
        """Write something for people, which no model sees."""
        return await (await self.open()).marks.note(text)

    async def omit(self, entry: int) -> int:
        """Leave an entry out of the model's view from here on. A running turn is stopped."""
        return await (await self.open()).marks.omit(entry)

    async def restore(self, entry: int) -> int:
        """Show the model an entry again as it was recorded. A running turn is stopped."""
        return await (await self.open()).marks.restore(entry)

    async def redact(self, entry: int) -> Redacted:
        """Hide an entry for good, on every branch. A running turn is stopped."""
        return await (await self.open()).marks.redact(entry)


async def _answer(events: EventStream) -> str:
    async for event in events:
        if isinstance(event, TurnFinished):
            if event.error is not None:
                raise TurnFailed(event.error)
            return event.text
    raise TurnFailed("the turn was stopped before it answered")
