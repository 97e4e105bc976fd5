"""An agent: one session, one state, one turn at a time.

Laws:
- Input is on disk before its sender hears that it was received and saved, whether it opens a turn or waits for one.
- A turn belongs to the runtime's task group, not to whoever listens: a listener may leave, the turn goes on.
- `stop` cancels the turn; every finished step stays, every call that began has a result, and queued input is held.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup

from governors.messages import Text, UserPart

from ..attachments import check_sizes
from ..errors import SessionError
from ..events import Event, MessageRecorded, TurnStarted
from ..providers.base import ChosenModel
from ..session.entries import Entry, InboxState, MessageRecord, NoteRecord, SettingRecord
from ..session.session import Session
from .activity import Activity
from .announce import Announcer
from .beside import Beside
from .branches import Branches
from .compactions import Compactions
from .desk import Desk
from .equipment import Equipment
from .inbox import InboxItem, deliver, in_state
from .listeners import EventStream, Listeners
from .marking import Marks
from .saving import Saving
from .states import Ending, State, Trigger
from .turn import Tally, Turn, run_turn
from .waiting import WaitingInput
from .warming import Warming
from .workroom import Workroom

logger = logging.getLogger(__name__)


class Agent:
    """Made by the supervisor, which owns `group`, the task group that turns run in. `branches` moves about in the tree,
    `marks` pins, labels, redacts, `saving` tells of a disk that refuses."""

    def __init__(self, session: Session, equipment: Equipment, model: ChosenModel, group: TaskGroup) -> None:
        self.session = session
        self.equipment = equipment
        self.model = self.first_model = model
        self._group = group
        self._gate = anyio.Lock()  # who may decide what happens to input
        self._listeners = Listeners()  # of the turn that runs
        self._announcer = Announcer(session.agent, session.id, self._emit)
        self.activity = Activity(self._announcer)
        self.room = Workroom(
            session, lambda: self.equipment, lambda: self.model, self._announcer, group, self.activity.making_room
        )
        self._waiting = WaitingInput(session, self.room.standing, self._announcer)
        self.branches, self.marks = Branches(self), Marks(self)
        self.beside = Beside(session, self._gate, lambda: self.activity.at_rest)
        self._warming = Warming(session, self.room, group, self._announcer.emit)
        self.compactions = Compactions(self, group, lambda: self.room.sleep)
        self.saving = Saving(session, group, self._announcer.emit, lambda: not self.activity.idle.is_set())

    @property
    def name(self) -> str:
        return self.session.agent

    @property
    def state(self) -> State:
        return self.activity.state

    def waiting(self) -> tuple[InboxItem, ...]:
        """Input that was recorded and not delivered yet (queued, steered or held)."""
        return self._waiting.items()

    def send(self, message: str | Iterable[UserPart], *, sender: str | None = None, queue: bool = False) -> EventStream:
        """Say something and follow what happens until the agent rests again. Sent when the first event is asked for.

        While a turn runs the message joins it after the step at hand; with `queue` it waits for a turn of its own.
        The iteration raises `SessionError` when the message cannot be recorded. Leaving it does not stop the turn.
        """

        async def begin(stream: EventStream) -> None:
            await self.receive(stream, message, sender=sender, queue=queue)

        return EventStream(begin)

    async def stop(self) -> None:
        """End the running turn and wait until what must be recorded is; does nothing when none runs."""
        await self.activity.stop()
        await self._warming.end()

    async def rest(self) -> None:
        """Wait until no turn runs."""
        await self.activity.idle.wait()

    @asynccontextmanager
    async def resting(self) -> AsyncIterator[None]:
        """Stop what runs; nothing begins as long as this is held."""
        while True:
            await self.stop()
            async with self._gate:
                if self.activity.idle.is_set():
                    yield
                    return

    @asynccontextmanager
    async def holding_input(self) -> AsyncIterator[bool]:
        """Whether nothing runs; nothing begins as long as this is held."""
        async with self._gate:
            yield self.activity.at_rest

    async def release(self) -> EventStream | None:
        """Run what a stop held back, as a turn of its own; None when nothing is held or a turn runs."""
        async with self._gate:
            held = in_state(self.waiting(), "held")
            if not held or not self.activity.at_rest:
                return None
            stream = EventStream()
            self._listeners.add(stream)
            await self._open_turn([deliver(item, steered=False) for item in held], "held input was released")
            return stream

    async def drop(self) -> int:
        """Drop what a stop held back; it stays in the log. Returns how many messages that were."""
        return await self._waiting.drop()

    async def switch_model(self, model: ChosenModel) -> None:
        """Talk to another model from the next step on."""
        await self.session.append(SettingRecord(name="model", value=model.name))
        self.model = model

    def begin_again(self, stream: EventStream, opening: int, messages: Sequence[Entry]) -> None:
        """Run a turn for the message `opening`, which is in the log, followed by `stream`; while `resting` is held."""
        self._listeners.add(stream)
        self._begin_turn(opening, messages, "the message is sent again")

    def desk(self) -> Desk:
        """What model calls need."""
        return self.room.desk()

    def occupy(self, why: str) -> anyio.CancelScope:
        """Be busy with something that is no turn, until `vacate`; while nothing can begin. A stop cancels the scope."""
        self._warming.cancel()
        return self.activity.begin(Trigger.FULL, why)

    async def vacate(self, why: str) -> None:
        """Be busy no more: what was said meanwhile opens a turn, or is held after a stop."""
        async with self._gate:
            idle, stopped = self.activity.idle, self.activity.settle(why)
            await self.beside.settle()
            if stopped:
                await self._waiting.hold()
            elif waiting := self._waiting.due():
                await self._open_turn([deliver(item, steered=False) for item in waiting], "input came meanwhile")
            self._waiting.followers.release(held=stopped)
            idle.set()

    async def receive(
        self, stream: EventStream, message: str | Iterable[UserPart], *, sender: str | None, queue: bool
    ) -> None:
        """Record what was said and put `stream` among those who follow it; what `send` does at its first event."""
        content = (Text(message),) if isinstance(message, str) else check_sizes(message)
        tiny = self.model.info.profile == "tiny"  # it would talk about the clock and nothing else
        context = None if tiny else self.equipment.context(sender)
        async with self._gate:
            if self.activity.at_rest:
                self._listeners.add(stream)
                left = [deliver(item, steered=False) for item in self._waiting.due()]
                said = MessageRecord(role="user", content=content, context=context)
                await self._open_turn([*left, said], "input came")
                return
            state: InboxState = "queued" if queue or self.state is State.STOPPING else "steered"
            await self._waiting.keep(stream, state, content, context)

    async def _open_turn(self, messages: list[MessageRecord], why: str) -> None:
        entries = await self.session.append(*messages)
        self._begin_turn(entries[0].id, entries, why)

    def _begin_turn(self, opening: int, messages: Sequence[Entry], why: str) -> None:
        self._warming.cancel()
        self.compactions.cancel()
        for entry in messages:
            self._waiting.followers.join(entry.record, self._listeners)
            self._announcer.emit(MessageRecorded(entry=entry.id, saved=self.session.is_saved(entry.id)))
        self.activity.begin(Trigger.INPUT, why)
        self._group.start_soon(self._work, opening)

    async def _work(self, opening: int) -> None:
        """Turn after turn until nothing is queued: the task that owns them."""
        next_opening: int | None = opening
        try:
            while next_opening is not None:
                next_opening = await self._one_turn(next_opening)
        finally:
            self.activity.idle.set()

    async def _one_turn(self, opening: int) -> int | None:
        tally, began = Tally(), anyio.current_time()
        self._announcer.emit(TurnStarted(entry=opening, model=self.model.name))
        self.saving.tell()
        self.room.rested(opening)
        turn = Turn(
            desk=self.room.desk(),
            bench=self.room.bench,
            refresh=self.room.refresh,
            deliver=self._deliver_steered,
            max_steps=self.equipment.max_steps,
            step_in=self.room.fallback.step_in,
        )
        ending = Ending()
        try:
            with self.activity.scope:
                try:
                    await self._warming.close_gap()
                    await run_turn(turn, opening, tally)
                except Exception as error:  # the task boundary of a turn: a fault of ours ends it, not the program
                    logger.exception("a turn of %s failed", self.name)
                    ending = Ending(Trigger.FAULT, f"{type(error).__name__}: {error}")
                    tally.stop, tally.error = "error", f"The turn ended on a fault in Moonwake itself ({ending.why})."
                    ending = replace(ending, trace=traceback.format_exc())
                else:
                    ending = Ending(Trigger.REST, "the turn is finished")
        finally:
            with anyio.CancelScope(shield=True):
                following = await self._end_turn(tally, began, ending)
        return following

    async def _end_turn(self, tally: Tally, began: float, ending: Ending) -> int | None:
        """Say how the turn ended; the entry that opens the next one, if input waits."""
        async with self._gate:
            try:
                following = await self._settle_waiting(ending)
            except SessionError as error:
                following, tally.stop, tally.error = None, "error", str(error)
            if self.state is State.STOPPING:
                following = None  # told to stop while it was recorded: it stays said, and nothing runs
            if ending.trigger is Trigger.STOPPED:
                tally.stop = "aborted"
                if self.state is State.RUN:
                    self.activity.move(Trigger.STOP, "the runtime is closing")
            elif self.state is State.STOPPING:
                ending = Ending()  # it came to rest by itself just as it was told to stop
            self.activity.move(ending.trigger, ending.why)
            await self.session.save()
            seconds = anyio.current_time() - began
            self._announcer.emit(replace(tally.finished(seconds), saved=not self.session.unsaved))
            self._listeners.end()
            if following is None:
                self._waiting.followers.release(held=ending.trigger is Trigger.STOPPED)
                if ending.trigger is Trigger.REST:
                    self._warming.begin()
                    self.compactions.begin()
                return None
            self._waiting.followers.join(following.record, self._listeners)
            self._announcer.emit(MessageRecorded(entry=following.id, saved=self.session.is_saved(following.id)))
            self.activity.move(Trigger.INPUT, "queued input came up")
            self.activity.renew()
            return following.id

    async def _settle_waiting(self, ending: Ending) -> Entry | None:
        """Hold what waits when the user stopped the turn; otherwise deliver the first of it."""
        await self.beside.settle()
        if ending.trace is not None:
            await self.session.append(NoteRecord(text=ending.why, data={"traceback": ending.trace}))
        waiting = self._waiting.due()
        if self.state is State.STOPPING:
            await self._waiting.hold()
        elif waiting and ending.trigger is Trigger.REST:
            (entry,) = await self.session.append(deliver(waiting[0], steered=False))
            return entry
        return None

    async def _deliver_steered(self) -> bool:
        async with self._gate:
            return await self._waiting.steer(self._listeners)

    def _emit(self, event: Event) -> None:
        self._listeners.emit(event)
        self.room.hooks.heard(event)
