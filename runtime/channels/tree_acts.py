"""The commands that move about in the tree of a session: /undo, /retry, /tree, /fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from ..agent.aside import AsideFailed
from ..agent.branches import Moved, whole, with_tree
from ..errors import SessionError
from ..session.moving.finding import find, hidden
from ..session.moving.forking import fork_tree
from ..session.moving.outline import outline
from ..session.moving.rewind import session_model
from ..session.moving.turns import turns_of
from ..session.naming import short_id
from ..session.tree import Tree
from .chat_acts import leave
from .compact_acts import tell_unheaded
from .recap import recap
from .reducer import Line, Shown
from .resume import use_own_model
from .sanitize import clean
from .seat import Act, Seat, numbered, one_number, tell
from .tree_lines import tree_lines
from .wording import plural


async def undo(seat: Seat, argument: str) -> None:
    turns = one_number("/undo", argument, "how many turns to take back")
    moved = await seat.agent.branches.undo(1 if turns is None else turns)
    await _arrived(seat, moved)
    if moved.unheaded:
        await tell_unheaded(seat)
        return
    count = plural(moved.turns, "turn")
    tell(seat, f"Took back {count}, from #{moved.first} on. Nothing is deleted: /tree {moved.first} goes back there.")
    _offer(seat, moved)


async def retry(seat: Seat, argument: str) -> None:
    model = await seat.runtime.choose(argument) if argument else None
    await seat.agent.stop()
    await seat.settle()
    stream = seat.agent.branches.retry(model)
    first = await anext(stream, None)
    seat.see_again()
    seat.audience.moved(seat.agent)
    if model is not None:
        tell(seat, f"Now {model.name} answers.")
    seat.hand_on(first, stream)


async def tree(seat: Seat, argument: str) -> None:
    number, rest = numbered(argument)
    if number is None:
        if rest not in ("", "all"):
            raise SessionError("/tree shows the turns, /tree all every branch; /tree N, /tree N edit, /tree N summary")
        lines = await with_tree(seat.agent.session, partial(_lines, whole=rest == "all"))
        if not lines:
            tell(seat, "Nothing was said yet.")
            return
        seat.audience.show(Line("tree", clean("\n".join(lines))))
        tell(seat, "/tree N goes on from there, /tree N edit says it in other words.")
    elif rest in ("", "edit", "summary"):
        await _switch(seat, number, rest)
    else:
        raise SessionError(f"/tree {number} takes `edit` or `summary` after it, not {rest[:40]!r}")


async def _switch(seat: Seat, number: int, how: str) -> None:
    agent = seat.agent
    if how == "summary":
        tell(seat, f"{agent.model.name} is asked for a summary of the branch that you leave …")
    here = await with_tree(agent.session, _turns)
    try:
        moved = await agent.branches.switch(number, summarise=how == "summary", edit=how == "edit")
    except AsideFailed as error:
        why = str(error).rstrip(".")
        tell(seat, f"No summary: {why}. You are where you were; /tree {number} goes there without one.", "error")
        return
    if not moved.changed:
        tell(seat, "You are there already.")
        return
    await _arrived(seat, moved)
    shown, now = await with_tree(agent.session, _arrival)
    seat.audience.show(*shown)
    left = sorted(set(here).difference(now))
    back = f" /tree {left[-1]} goes back to where you were." if left else ""
    tell(seat, f"You are {f'at the end of #{now[-1]}' if now else 'before the first message'}.{back}")
    told = agent.session.tree.get(moved.summary) if moved.summary is not None else None
    if told is not None:
        tell(seat, f"The model was told of the branch that you left: {getattr(told.record, 'text', '')}")
    elif how == "summary":
        tell(seat, "Nothing is left behind that was said, so there is no summary.")
    _offer(seat, moved)


def _lines(tree: Tree, *, whole: bool) -> list[str]:
    return tree_lines(outline(tree), whole=whole)


def _turns(tree: Tree) -> list[int]:
    """The turns of the branch, by the messages that opened them."""
    return [turn.opening[0].id for turn in turns_of(tree.branch())]


def _arrival(tree: Tree) -> tuple[Sequence[Shown], list[int]]:
    """What was said last on the branch, for who has just come to it, and its turns."""
    return recap(tree.branch(), 1, hidden(tree)), _turns(tree)


async def fork(seat: Seat, argument: str) -> None:
    old, supervisor = seat.agent, seat.runtime.supervisor
    number = one_number("/fork", argument)
    session = await whole(old.session)
    if number is not None:
        find(session.tree, number)  # a slip of the keys stops nothing
    await old.stop()
    await seat.settle()
    forked = await fork_tree(supervisor.store, session.header, session.tree, number, session.blobs)
    agent = await supervisor.agent(old.name, forked)
    await leave(seat, old)
    wanted = session_model(agent.session.branch())
    notes: tuple[str, ...] = ()
    if wanted == old.model.name or (wanted is None and session_model(session.branch()) is None):
        agent.model = old.model
    elif wanted is not None:
        notes = await use_own_model(seat.runtime, agent)
    seat.agent = agent
    seat.see_again()
    seat.audience.began(agent)
    tip = (agent.session.header.origin or {}).get("entry")
    place = f" up to #{tip}" if number is not None else ""
    back = f"The one before, {short_id(old.session.id)}, is kept as it was."
    for text in (f"New session {short_id(agent.session.id)}, with this branch{place}. {back}", *notes):
        tell(seat, text)


async def _arrived(seat: Seat, moved: Moved) -> None:
    """Show what a stop showed first, then that the leaf has moved, with the model of this branch."""
    await seat.settle()
    if moved.model is not None:
        for note in await use_own_model(seat.runtime, seat.agent):
            tell(seat, note)
    seat.audience.moved(seat.agent)


def _offer(seat: Seat, moved: Moved) -> None:
    if moved.pictures:
        tell(seat, f"Its {plural(moved.pictures, 'picture')} cannot be put back; /tree {moved.first} has it as it was.")
    if moved.text:
        seat.audience.offer(clean(moved.text), f"It said: {clean(moved.text)}")


TREE_ACTS: Mapping[str, Act] = MappingProxyType({"/undo": undo, "/retry": retry, "/tree": tree, "/fork": fork})
