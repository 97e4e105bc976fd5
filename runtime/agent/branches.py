"""An agent's way about in the tree of its session: undo, retry, another branch.

Laws: a turn that runs is stopped first, and nothing begins until the leaf has moved; nothing is deleted; input that
waits goes on waiting; after a move the agent remembers nothing of the branch that it left, not even its model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from ..providers.base import ChosenModel
from ..session.entries import BranchSummaryRecord, Entry, SettingRecord, Waiting
from ..session.moving.finding import hidden
from ..session.moving.rewind import (
    Move,
    before_turn,
    fork_of,
    head_to_undo,
    retry,
    session_model,
    switch,
    undo,
    undo_head,
)
from ..session.moving.turns import is_user, pictures, said
from ..session.session import Session
from ..session.tree import Tree
from .activity import Activity
from .aside import AsideFailed, ask_aside
from .drafts import Drafts
from .ease import AT_ONCE, at_ease
from .equipment import Equipment
from .inbox import InboxItem, carried
from .listeners import EventStream
from .workroom import Workroom

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)

_MOST_QUOTED = 200  # characters of the message that a summary begins at
_QUESTION = """\
[The user goes back to an earlier point of this conversation and goes on from there in another way. Summarise for your \
other self there what happened on this way, from the message on that begins with: {begins}

Say what was asked, what was done and found out (names of files, decisions, facts, errors), and what is still open. At \
most 300 words of plain text. Do not call tools.]"""


class Ground(Protocol):
    """What of an agent is needed here."""

    session: Session
    room: Workroom
    model: ChosenModel
    first_model: ChosenModel
    equipment: Equipment

    def waiting(self) -> tuple[InboxItem, ...]: ...

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Stop what runs; nothing begins as long as this is held."""
        ...

    @property
    def activity(self) -> Activity: ...

    def begin_again(self, stream: EventStream, opening: int, messages: Sequence[Entry]) -> None:
        """Run a turn for the message `opening`, which is in the log, followed by `stream`."""
        ...


class Plan(Protocol[Made_co]):
    """What a move has to record."""

    def __call__(self, tree: Tree, /, waiting: tuple[Waiting, ...]) -> Made_co: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What became of a move.

    `turns` were taken back, `first` is the message of the oldest of them, `text` what was said in it (also while it
    ran), `pictures` how many pictures there were. `unheaded`: a head was undone and no turn. `changed`: the leaf was
    elsewhere before. `model` is to be talked to on this branch and not at hand; `summary` is the entry that tells of
    the branch that was left.
    """

    leaf: int | None
    turns: int = 0
    first: int | None = None
    text: str = ""
    pictures: int = 0
    unheaded: bool = False
    changed: bool = True
    model: str | None = None
    summary: int | None = None


class Branches:
    """Of one agent; all that is said of `Agent` holds."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def undo(self, turns: int = 1) -> Moved:
        """Take the last `turns` turns back: the leaf goes to before the message that opened the oldest of them.

        When the newest thing is a head that was made by hand or by a compaction, one turn is that head: what it took
        out of view is seen again. Raises `SessionError` when there are not as many turns.
        """
        async with self._ground.resting():
            tree = (await whole(self._ground.session)).tree
            if turns == 1 and head_to_undo(tree.branch()) is not None:
                return await self._undo_head()
            move = await self._planned(lambda tree, waiting: undo(tree, turns, waiting))
            return await self._go(move, turns=turns)

    async def undo_head(self) -> Moved:
        """Show the model again what the newest head took out of view. Raises `SessionError` when no head holds."""
        async with self._ground.resting():
            await whole(self._ground.session)
            return await self._undo_head()

    async def switch(self, entry: int, *, summarise: bool = False, edit: bool = False) -> Moved:
        """Go on from where the turn of `entry` ended; on another branch, from the newest tip of it.

        With `edit`, from right before that turn: its message is given back to be said in other words. With
        `summarise`, the model is asked for a summary of the branch that is left, for itself on the other one; when that
        fails, nothing moves. Raises `SessionError`, `AsideFailed`.
        """
        async with self._ground.resting():
            plan = before_turn if edit else switch
            move = await self._planned(lambda tree, waiting: plan(tree, entry, waiting))
            summary = await self._summary(move) if summarise and move.records else None
            return await self._go(move, turns=0, summary=summary)

    def retry(self, model: ChosenModel | None = None) -> EventStream:
        """Send the last turn's message once more, as it was, and follow the events until the agent rests.

        What was steered in meanwhile follows at once; `model` answers from here on. Begins when the first event is
        asked for, which raises `SessionError` when nothing was said yet.
        """

        async def begin(stream: EventStream) -> None:
            await self.try_again(stream, model)

        return EventStream(begin)

    async def try_again(self, stream: EventStream, model: ChosenModel | None = None) -> None:
        """What `retry` does at its first event, with `stream` among those who follow the turn."""
        async with self._ground.resting():
            await self._retry(stream, model)

    async def _retry(self, stream: EventStream, model: ChosenModel | None) -> None:
        session = self._ground.session
        move = await self._planned(retry)
        (turn,) = move.turns
        chosen = () if model is None else (SettingRecord(name="model", value=model.name),)
        before = session_model(session.branch())
        entries = await session.append(*move.records, *chosen)
        self._moved(before)
        if model is not None:
            self._ground.model = model
        self._ground.begin_again(stream, turn.opening[0].id, (*turn.opening, *filter(is_user, entries)))

    async def _planned(self, plan: Plan[Made]) -> Made:
        return await planned(self._ground.session, self._waiting, plan)

    def _waiting(self) -> tuple[Waiting, ...]:
        return tuple(carried(item) for item in self._ground.waiting())

    async def _undo_head(self) -> Moved:
        session = self._ground.session
        before = session_model(session.branch())
        await session.append(await self._planned(undo_head))
        model = self._moved(before)
        return Moved(leaf=session.tree.leaf, unheaded=True, model=model)

    async def _go(self, move: Move, *, turns: int, summary: BranchSummaryRecord | None = None) -> Moved:
        session = self._ground.session
        before = session_model(session.branch())
        unseen = hidden(session.tree)
        entries = await session.append(*move.records, *([] if summary is None else [summary]))
        asked = (*move.turns[0].opening, *move.turns[0].steered) if move.turns else ()
        opening = [entry for entry in asked if entry.id not in unseen]
        return Moved(
            leaf=session.tree.leaf,
            turns=turns,
            first=move.turns[0].opening[0].id if move.turns else None,
            text=said(*opening),
            pictures=pictures(*opening),
            changed=bool(entries),
            model=self._moved(before) if entries else None,
            summary=entries[-1].id if summary is not None else None,
        )

    async def _summary(self, move: Move) -> BranchSummaryRecord | None:
        """What the model says of the branch that `move` leaves; None when it leaves nothing that was said."""
        tree = self._ground.session.tree
        tip = tree.leaf
        assert tip is not None  # something was said, or there were nowhere to go
        fork = fork_of(tree, tip, move.leaf)
        left = [entry for entry in tree.branch() if entry.id > (fork or 0) and is_user(entry)]
        if not left:
            return None
        begins = " ".join(said(left[0]).split())[:_MOST_QUOTED]
        text = await self._ask(_QUESTION.format(begins=begins))
        return BranchSummaryRecord(text=text, tip=tip, fork=fork)

    async def _ask(self, question: str) -> str:
        ground, answer = self._ground, ""
        with ground.activity.occupied("a summary of the branch that is left"):
            drafts = Drafts(ground.equipment.counter)
            answer = await ask_aside(ground.room.desk(), drafts, "branch_summary", question)
        if not answer:
            raise AsideFailed("it was stopped")
        return answer

    def _moved(self, before: str | None) -> str | None:
        """The leaf has moved, from where the session's model was `before`: remember nothing of the branch that was
        left, and talk to the model of this one. The name of that, where it is not at hand."""
        ground = self._ground
        ground.room.forget()
        wanted = session_model(ground.session.branch())
        if wanted == before or (wanted or ground.first_model.name) == ground.model.name:
            return None
        if wanted not in (None, ground.first_model.name):
            return wanted
        ground.model = ground.first_model
        return None


async def planned(session: Session, waiting: Callable[[], tuple[Waiting, ...]], plan: Plan[Made]) -> Made:
    """What `plan` makes of the whole tree and the input that waits, while the agent rests: nothing else may change
    meanwhile, and when that did, it is planned anew."""
    while True:
        known = waiting()
        made = await with_tree(session, partial(plan, waiting=known))
        if waiting() == known:
            return made


async def with_tree(session: Session, work: Callable[[Tree], Made]) -> Made:
    """What `work` makes of the whole tree of `session`: of a long one in a thread, with a copy that does not grow."""
    tree = (await whole(session)).tree
    length = len(tree)
    return await at_ease(length, partial(work, tree.snapshot() if length > AT_ONCE else tree))


async def whole(session: Session) -> Session:
    """`session` with all of its tree in memory: a resume reads only what it needs."""
    read: Callable[[], Awaitable[object]] | None = getattr(session, "whole", None)
    if read is not None:
        await read()
    return session
