"""One conversation, whatever shows it: sends input, follows the agent, and carries out the commands.

Laws: what a person typed goes to the agent in the order it was typed; each event of the agent is shown once, however
many messages wait for it; a mistake of a person or a provider becomes a line, never an exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import anyio

from governors.errors import GovernorError
from governors.messages import Text, UserPart

from ..agent.agent import Agent
from ..agent.states import State
from ..errors import MoonwakeError
from ..events import CompactionStarted, Event, MessageRecorded, Notice, TurnFinished, TurnStarted
from ..session.entries import MessageRecord
from .attach_acts import ATTACH_ACTS, dragged_file, said_lines
from .base import Host
from .chat_acts import CHAT_ACTS
from .commands import Command, ShellLine, unknown_command
from .compact_acts import COMPACT_ACTS
from .cost_acts import COST_ACTS
from .mark_acts import MARK_ACTS
from .pending import Pending
from .recap import made_meanwhile
from .reducer import Line
from .sanitize import clean
from .seat import Act, Audience, Stream
from .shell_acts import run_shell
from .tree_acts import TREE_ACTS
from .wording import plural

ACTS: Mapping[str, Act] = MappingProxyType(
    {**CHAT_ACTS, **ATTACH_ACTS, **COMPACT_ACTS, **COST_ACTS, **TREE_ACTS, **MARK_ACTS}
)


@dataclass(slots=True)
class _Seen:
    """What was shown already."""

    turns: set[int] = field(default_factory=set)
    messages: set[int] = field(default_factory=set)


class Talk:
    """`follow` has to run as a task as long as the conversation lasts."""

    def __init__(self, runtime: Host, agent: Agent, audience: Audience) -> None:
        self.runtime = runtime
        self.over = False
        self.attached: list[UserPart] = []
        self.audience = audience
        self._agent = agent
        agent.saving.hear = self._heard
        self._seen = _Seen()
        self._waiting: tuple[tuple[str, int], list[tuple[str, str]]] = (("", 0), [])
        self._happening: Pending[Callable[[], Awaitable[None]]] = Pending()
        self._shell: anyio.CancelScope | None = None  # of the command that runs
        self._unfollowed = 0  # of what happens: what is not shown to its end
        self._waits_for_room = False  # a message does, and that is shown
        self._works: list[anyio.CancelScope] = []  # of what is done meanwhile
        self._followed = anyio.Event()

    @property
    def agent(self) -> Agent:
        """Whom the person talks to; giving another one goes on with that."""
        return self._agent

    @agent.setter
    def agent(self, agent: Agent) -> None:
        self._agent.saving.hear = None
        self._agent = agent
        agent.saving.hear = self._heard

    @property
    def working(self) -> bool:
        """Whether a turn or a command runs (and is not being stopped already)."""
        return self._shell is not None or self.agent.state in (State.RUN, State.COMPACT)

    def waiting(self) -> list[tuple[str, str]]:
        """Input that was received and not delivered: (`steered`, `queued` or `held`, text)."""
        session = self.agent.session
        now = (session.id, len(session.tree))
        if self._waiting[0] != now:  # asked for at each drawing, and all of the log is looked through
            items = self.agent.waiting()
            self._waiting = now, [(item.state, item.text) for item in items]
        return self._waiting[1]

    async def say(self, text: str) -> bool:
        """Give `text` to the agent, with what is attached; returns once it is on disk. False when it was refused, which
        is shown. The path of a picture or a document alone, as dragging one gives, attaches it."""
        if (path := await dragged_file(text)) is not None:
            await self.run(Command("/attach", path))
            return True
        quiet = not self._unfollowed
        stream = self.agent.send([*self.attached, Text(text)] if self.attached else text)
        try:
            first = await anext(stream, None)
        except (MoonwakeError, GovernorError) as error:
            self.audience.show(Line("error", clean(str(error))))
            return False
        self.attached.clear()
        if quiet and self.agent.state is State.COMPACT:  # by itself, while nobody talked: nothing of it was shown
            self._waits_for_room = True
            self.audience.happened(CompactionStarted(timing="idle", reason="", strategy=self.agent.desk().strategy))
        self.hand_on(first, stream)
        return True

    async def follow(self) -> None:
        """Hand what happens to the audience until cancelled."""
        while True:
            happens = await self._happening.take()
            await happens()
            self._unfollowed -= 1
            self._followed.set()
            self._followed = anyio.Event()

    async def settle(self) -> None:
        """Wait until all that happened was shown."""
        while self._unfollowed:
            await self._followed.wait()

    def hand_on(self, first: Event | None, stream: Stream) -> None:
        """Show the events of `stream`, which begins with `first`."""
        self._unfollowed += 1
        self._happening.put(partial(self._follow, first, stream))

    @property
    def occupied(self) -> bool:
        """Whether something that was handed to `meanwhile` is not done yet."""
        return bool(self._works)

    def meanwhile(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` once all that happened so far was shown; the person may go on typing. What goes wrong is shown."""
        scope = anyio.CancelScope()
        self._works.append(scope)

        async def done() -> None:
            with scope:
                await self._carried_out(work)
            self._works.remove(scope)

        self._unfollowed += 1
        self._happening.put(done)

    def see_again(self) -> None:
        """What was shown may be shown once more: it happens again, or on another session."""
        self._seen = _Seen()

    async def _follow(self, first: Event | None, stream: Stream) -> None:
        """The events of one message's stream, as far as no earlier stream brought them.

        A message that joined a running turn gets that turn's events too, and several messages may open one turn
        together: a stream is shown only from the first start of a turn that was not seen yet.
        """
        seen = self._seen
        fresh = False
        opening: list[int] = []
        event = first
        while event is not None:
            if isinstance(event, TurnStarted):
                fresh = event.entry not in seen.turns
                seen.turns.add(event.entry)
                if fresh:
                    self._tell_meanwhile(event.entry)
                    self.audience.happened(event)
                    for entry in opening:
                        self._said(entry)
            elif isinstance(event, MessageRecorded):
                opening.append(event.entry)
                if fresh:
                    self._said(event.entry)
            elif fresh:
                self.audience.happened(event)
                if isinstance(event, TurnFinished):
                    fresh = False
                    if event.stop == "aborted":
                        self._tell_held()
            event = await anext(stream, None)
        if self._waits_for_room and not fresh and self.agent.activity.at_rest:
            self._waits_for_room = False
            self.audience.moved(self.agent)  # a turn came of it, or it was stopped: nothing runs any more
            self._tell_held()

    def _said(self, entry: int) -> None:
        """Show the user's message that was delivered as `entry`, once."""
        found = self.agent.session.tree.get(entry)
        if found is None or not isinstance(found.record, MessageRecord) or entry in self._seen.messages:
            return
        self._seen.messages.add(entry)
        self.audience.show(Line("user", clean(said_lines(found.record.content))))

    def _tell_meanwhile(self, opening: int) -> None:
        """Show what room was made while nobody talked, before the entry `opening`."""
        made = made_meanwhile(self.agent.session.tree.entries, opening)
        if made:
            self.audience.moved(self.agent)  # its size and cost are other ones now
        self.audience.show(*made)

    def _tell_held(self) -> None:
        held = [text for state, text in self.waiting() if state == "held"]
        if held:
            self.audience.show(Line("info", f"Held back: {plural(len(held), 'message')}. /send sends, /drop drops."))

    async def run(self, command: Command) -> None:
        """Carry out a command. What goes wrong is shown, and that the disk did not take what it recorded."""
        action = ACTS.get(command.name)
        if action is None:
            self.audience.show(Line("warning", unknown_command(command.name)))
            return
        await self._carried_out(partial(action, self, command.argument))

    async def _carried_out(self, work: Callable[[], Awaitable[None]]) -> None:
        session, before, known = self.agent.session, self.agent.session.unsaved, self.agent.session.outage
        try:
            await work()
        except (MoonwakeError, GovernorError) as error:
            self.audience.show(Line("error", clean(str(error))))
        if session is self.agent.session and session.unsaved > before and known is not None:  # else it was just told
            text = f"Not on disk yet: {session.outage}. It holds in memory, and is saved as soon as that works."
            self.audience.show(Line("warning", clean(text)))

    def _heard(self, notice: Notice) -> None:
        """Show what happened between turns."""
        self.audience.show(Line("info" if notice.level == "info" else "warning", clean(notice.text)))

    async def shell(self, line: ShellLine) -> None:
        """Run a command of the person's, and return once it has ended. What goes wrong is shown."""
        with anyio.CancelScope() as self._shell:
            try:
                await run_shell(self, line)
            except MoonwakeError as error:
                self.audience.show(Line("error", clean(str(error))))
        self._shell = None

    async def stop(self) -> None:
        """Stop the command that runs, else the running turn."""
        if self._shell is not None:
            self._shell.cancel()
        else:
            await self.agent.stop()

    async def close(self) -> None:
        """Stop what runs, and wait until all of it was shown."""
        if self._shell is not None:
            self._shell.cancel()
        await self.agent.stop()
        for scope in self._works:  # of what had not begun when that was stopped
            scope.cancel()
        await self.settle()
