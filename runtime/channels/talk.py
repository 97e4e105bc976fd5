"""One conversation, whatever shows it: sends input, follows the agent, and carries out the commands.

Laws: what a person typed goes to the agent in the order it was typed; each event of the agent is shown once, however
many messages wait for it; a mistake of a person or a provider becomes a line, never an exception.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread

from governors.errors import GovernorError
from governors.messages import Text
from governors.tokens import load_vocabulary

from ..agent.agent import Agent
from ..agent.listeners import EventStream
from ..agent.states import State
from ..errors import MoonwakeError
from ..events import Event, MessageRecorded, TurnFinished, TurnStarted
from ..session.entries import MessageRecord
from .base import Host
from .commands import COMMANDS, KEYS, Command, unknown_command
from .opening import TOOLS_OFF, short_id, tools_off
from .pending import Pending
from .recap import used_tokens
from .reducer import Line, Shown
from .sanitize import clean
from .window import window_lines, window_use

Stream = AsyncIterator[Event]


class Audience(Protocol):
    """Whoever shows the conversation."""

    def happened(self, event: Event) -> None:
        """Something happened in the turn that is shown."""
        ...

    def show(self, *shown: Shown) -> None: ...

    def began(self, agent: Agent) -> None:
        """The conversation goes on with `agent`, on a new session or another model."""
        ...


@dataclass(slots=True)
class _Seen:
    """What was shown already."""

    turns: set[int] = field(default_factory=set)
    messages: set[int] = field(default_factory=set)


class Talk:
    """`follow` has to run as a task as long as the conversation lasts."""

    def __init__(self, runtime: Host, agent: Agent, audience: Audience) -> None:
        self.runtime = runtime
        self.agent = agent
        self.over = False
        self._audience = audience
        self._seen = _Seen()
        self._waiting: tuple[tuple[str, int], list[tuple[str, str]]] = (("", 0), [])
        self._streams: Pending[tuple[Event | None, Stream]] = Pending()
        self._unfollowed = 0  # streams that are not shown to their end
        self._followed = anyio.Event()

    @property
    def working(self) -> bool:
        """Whether a turn runs (and is not being stopped already)."""
        return self.agent.state in (State.RUN, State.COMPACT)

    def waiting(self) -> list[tuple[str, str]]:
        """Input that was received and not delivered: (`steered`, `queued` or `held`, text)."""
        session = self.agent.session
        now = (session.id, len(session.tree))
        if self._waiting[0] != now:  # asked for at each drawing, and all of the log is looked through
            items = self.agent.waiting()
            self._waiting = now, [(item.state, item.text) for item in items]
        return self._waiting[1]

    async def say(self, text: str) -> bool:
        """Give `text` to the agent; returns once it is on disk. False when it was refused, which is shown."""
        stream = self.agent.send(text)
        try:
            first = await anext(stream, None)
        except (MoonwakeError, GovernorError) as error:
            self._audience.show(Line("error", clean(str(error))))
            return False
        self._hand_on(first, stream)
        return True

    async def follow(self) -> None:
        """Hand what happens to the audience until cancelled."""
        while True:
            first, stream = await self._streams.take()
            await self._follow(first, stream)
            self._unfollowed -= 1
            self._followed.set()
            self._followed = anyio.Event()

    async def settle(self) -> None:
        """Wait until all that happened was shown."""
        while self._unfollowed:
            await self._followed.wait()

    def _hand_on(self, first: Event | None, stream: Stream) -> None:
        self._unfollowed += 1
        self._streams.put((first, stream))

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
                    self._audience.happened(event)
                    for entry in opening:
                        self._said(entry)
            elif isinstance(event, MessageRecorded):
                opening.append(event.entry)
                if fresh:
                    self._said(event.entry)
            elif fresh:
                self._audience.happened(event)
                if isinstance(event, TurnFinished):
                    fresh = False
                    if event.stop == "aborted":
                        self._tell_held()
            event = await anext(stream, None)

    def _said(self, entry: int) -> None:
        """Show the user's message that was delivered as `entry`, once."""
        found = self.agent.session.tree.get(entry)
        if found is None or not isinstance(found.record, MessageRecord) or entry in self._seen.messages:
            return
        self._seen.messages.add(entry)
        text = "\n\n".join(part.text for part in found.record.content if isinstance(part, Text))
        self._audience.show(Line("user", clean(text)))

    def _tell_held(self) -> None:
        held = [text for state, text in self.waiting() if state == "held"]
        if held:
            self._audience.show(Line("info", f"Held back: {_count(len(held))}. /send sends, /drop drops."))

    async def run(self, command: Command) -> None:
        """Carry out a command. What goes wrong is shown."""
        actions: dict[str, Callable[[str], Awaitable[None]]] = {
            "/new": self._new,
            "/stop": self._stop,
            "/model": self._model,
            "/tokens": self._tokens,
            "/held": self._held,
            "/send": self._send,
            "/drop": self._drop,
            "/help": self._help,
            "/quit": self._quit,
        }
        action = actions.get(command.name)
        if action is None:
            self._audience.show(Line("warning", unknown_command(command.name)))
            return
        try:
            await action(command.argument)
        except (MoonwakeError, GovernorError) as error:
            self._audience.show(Line("error", clean(str(error))))

    async def stop(self) -> None:
        """Stop the running turn."""
        await self.agent.stop()

    async def close(self) -> None:
        """Stop what runs, and wait until all of it was shown."""
        await self.agent.stop()
        await self.settle()

    async def _new(self, argument: str) -> None:
        old = self.agent
        supervisor = self.runtime.supervisor
        agent = await supervisor.agent(old.name)
        await old.stop()
        await self.settle()
        await supervisor.leave(old)
        if agent.model is not old.model:
            await agent.switch_model(old.model)
        self.agent, self._seen = agent, _Seen()
        self._audience.began(agent)
        told = f"New session {short_id(agent.session.id)}. The one before is kept."
        self._audience.show(Line("info", told))

    async def _stop(self, argument: str) -> None:
        if not self.working:
            self._audience.show(Line("info", "Nothing is running."))
        await self.stop()

    async def _model(self, argument: str) -> None:
        if not argument:
            model = self.agent.model
            why = f" ({model.why})" if model.why else ""
            how = "Another one: /model PROVIDER/MODEL, such as /model anthropic or /model ollama/NAME."
            self._audience.show(Line("info", clean(f"{model.name}{why}. {how}")))
            return
        model = await self.runtime.choose(argument)
        await self.agent.switch_model(model)
        self._audience.began(self.agent)
        self._audience.show(Line("info", clean(f"Now talking to {model.name}, from the next step on.")))
        if tools_off(model):
            self._audience.show(Line("info", TOOLS_OFF))

    async def _tokens(self, argument: str) -> None:
        agent = self.agent
        await anyio.to_thread.run_sync(load_vocabulary)
        branch = tuple(agent.session.branch())
        use = await anyio.to_thread.run_sync(partial(window_use, branch, agent.model, agent.equipment.counter))
        self._audience.show(window_lines(use, used_tokens(branch)))

    async def _held(self, argument: str) -> None:
        held = [text for state, text in self.waiting() if state == "held"]
        if not held:
            self._audience.show(Line("info", "Nothing is held back."))
            return
        self._audience.show(*(Line("queued", clean(text)) for text in held))
        self._audience.show(Line("info", "/send sends, /drop drops."))

    async def _send(self, argument: str) -> None:
        stream: EventStream | None = await self.agent.release()
        if stream is not None:
            self._hand_on(await anext(stream, None), stream)
        elif any(state == "held" for state, _ in self.waiting()):
            self._audience.show(Line("info", "A turn is running; stop it or wait for its end, then /send."))
        else:
            self._audience.show(Line("info", "Nothing is held back."))

    async def _drop(self, argument: str) -> None:
        dropped = await self.agent.drop()
        text = f"Dropped {_count(dropped)}; the session file keeps it." if dropped else "Nothing is held back."
        self._audience.show(Line("info", text))

    async def _help(self, argument: str) -> None:
        rows = [*COMMANDS.items(), ("", ""), *KEYS]
        self._audience.show(Line("plain", "\n".join(f"{name:<20}{purpose}".rstrip() for name, purpose in rows)))

    async def _quit(self, argument: str) -> None:
        self.over = True


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"
