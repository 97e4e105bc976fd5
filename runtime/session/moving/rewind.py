"""Moving about in the tree: what an undo, a retry or a switch of branches has to record. Pure.

Laws: nothing is deleted, the leaf moves; a move back along the branch takes along the newest head with a summary that
the branch left behind made, as long as all that it stands for is still there (what the governors decided is decided
anew); a head that is undone is answered by a head with the range before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import SessionError
from ..entries import (
    OFF_BRANCH,
    Entry,
    HeadRecord,
    LeafRecord,
    MessageRecord,
    Record,
    RequestRecord,
    SettingRecord,
    Waiting,
)
from ..tree import Tree
from ..view.projection import project
from ..view.redaction import REDACTED, STALE_SUMMARY, stale_summaries
from ..view.standing import carried_settings, standing_of
from .finding import find, hidden
from .turns import Turn, turns_of

#: Causes of heads that are made here.
UNDONE = "undo"  # the range before another head holds again
KEPT = "kept"  # a head of a branch that was left holds on this one too
_GOVERNORS = "snip"  # the cause of heads that are decided anew


@dataclass(frozen=True, slots=True)
class Move:
    """The leaf goes to `leaf`; `records` are the batch that says so, none when it is there already. `turns` are those
    that are left behind by an undo, or (of a retry) the one that runs again."""

    leaf: int | None
    records: tuple[Record, ...]
    turns: tuple[Turn, ...] = ()


def undo(tree: Tree, turns: int = 1, waiting: Sequence[Waiting] = ()) -> Move:
    """Take the last `turns` turns of the branch back. `waiting` is the input that is not delivered yet.

    Raises `SessionError` when there are not as many.
    """
    found = turns_of(tree.branch())
    if turns < 1:
        raise SessionError(f"an undo takes back 1 turn or more, not {turns}")
    if not found:
        raise SessionError("there is nothing to undo: nothing was said yet on this branch")
    if turns > len(found):
        raise SessionError(f"this branch has only {_count(len(found))}; /undo {len(found)} takes back all of it")
    taken = tuple(found[-turns:])
    return replace(move(tree, taken[0].before, waiting), turns=taken)


def retry(tree: Tree, waiting: Sequence[Waiting] = ()) -> Move:
    """The last turn once more: the leaf goes to the message that opened it, what was steered in follows.

    Raises `SessionError` when nothing was said yet.
    """
    found = turns_of(tree.branch())
    if not found:
        raise SessionError("there is nothing to try again: nothing was said yet on this branch")
    turn = found[-1]
    moved = move(tree, turn.opening[-1].id, waiting)
    unseen = hidden(tree)
    again = (entry.record for entry in turn.steered if entry.id not in unseen)
    return replace(moved, records=(*moved.records, *again), turns=(turn,))


def switch(tree: Tree, entry: int, waiting: Sequence[Waiting] = ()) -> Move:
    """Go on from where the entry's turn ended; on another branch, from the newest tip of it.

    Raises `SessionError` when there is no such entry.
    """
    here = find(tree, entry)
    if not tree.holds(tree.leaf, here.id):
        return move(tree, newest_tip_of(tree, here.id), waiting)
    return move(tree, turn_end(tree.branch(), here.id), waiting)


def before_turn(tree: Tree, entry: int, waiting: Sequence[Waiting] = ()) -> Move:
    """Go to right before the turn of the entry, on whatever branch, to say its message in other words.

    Raises `SessionError` when there is no such entry, or it belongs to no turn.
    """
    here = find(tree, entry)
    turns = turns_of(tree.branch_to(newest_tip_of(tree, here.id)))
    turn = next((turn for turn in reversed(turns) if turn.opening[0].id <= here.id), None)
    if turn is None:
        raise SessionError(f"entry {entry} stands before anything was said")
    return replace(move(tree, turn.before, waiting), turns=(turn,))


def move(tree: Tree, leaf: int | None, waiting: Sequence[Waiting] = ()) -> Move:
    """Put the leaf at `leaf`; on the way back along the branch, with the head that is kept."""
    if leaf == tree.leaf:
        return Move(leaf, ())
    if leaf is not None and not tree.holds(tree.leaf, leaf):
        return Move(leaf, (LeafRecord(leaf=leaf),))
    head = _kept_head(tree, leaf, waiting)
    return Move(leaf, (LeafRecord(leaf=leaf),) if head is None else (LeafRecord(leaf=leaf), head))


def undo_head(tree: Tree, waiting: Sequence[Waiting] = ()) -> HeadRecord:
    """The head after which the range before the newest head holds again, with all that was said since.

    Raises `SessionError` when no head holds.
    """
    branch = tree.branch()
    heads = _in_force(branch)
    if not heads:
        raise SessionError("nothing was cut or summarised on this branch")
    projection, standing = project(branch, tree.redacted), standing_of(tree.entries, tree.copied)
    if len(heads) > 1:
        identity, record = heads[-2]
        record = _untold(tree, identity, record)
    else:
        first = next((entry.id for entry in branch if isinstance(entry.record, MessageRecord)), None)
        if first is None:
            raise SessionError("nothing was said on this branch that could be shown again")
        record = HeadRecord(start=first, baseline=projection.state.baseline, cause=UNDONE, generation=0)
    return replace(
        record,
        baseline=projection.state.baseline,
        cause=UNDONE,
        generation=projection.generation + 1,
        settings=carried_settings(projection.settings, standing.settings),
        open_calls=tuple(dict.fromkeys((*record.open_calls, *projection.open_calls(record.start)))),
        inbox=tuple(waiting),
        spent=standing.spent,
        breaker=standing.breaker,
        before=0,
        after=0,
    )


def head_to_undo(branch: Sequence[Entry]) -> int | None:
    """The head that an undo would take back: the newest thing on the branch, made by hand or by a compaction. None
    when something was said or asked for after it."""
    for entry in reversed(branch):
        match entry.record:
            case HeadRecord(cause=cause):
                return None if cause in (UNDONE, KEPT, _GOVERNORS) else entry.id
            case MessageRecord() | RequestRecord(purpose="turn"):
                return None
            case _:
                continue
    return None


def _in_force(branch: Sequence[Entry]) -> list[tuple[int, HeadRecord]]:
    """The heads of a branch, with their ids, without those that were undone; the last holds."""
    heads: list[tuple[int, HeadRecord]] = []
    for entry in branch:
        if not isinstance(entry.record, HeadRecord):
            continue
        if entry.record.cause == UNDONE:
            del heads[-1:]
        else:
            heads.append((entry.id, entry.record))
    return heads


def _kept_head(tree: Tree, leaf: int | None, waiting: Sequence[Waiting]) -> HeadRecord | None:
    """The newest head with a summary of its own that was made after `leaf` and stands only for what is before it."""
    if leaf is None:
        return None
    for identity, head in reversed(_in_force(tree.branch())):
        if identity <= leaf:
            return None  # it stands where it is
        survives = head.start <= leaf and (head.resume is None or head.resume <= leaf)
        if head.summary is not None and head.cause != _GOVERNORS and survives:
            return _again(tree, leaf, _untold(tree, identity, head), waiting)
    return None


def _again(tree: Tree, leaf: int, head: HeadRecord, waiting: Sequence[Waiting]) -> HeadRecord:
    projection = project(tree.branch_to(leaf), tree.redacted)
    standing = standing_of(tree.entries, tree.copied)
    return replace(
        head,
        cause=KEPT,
        generation=projection.generation + 1,
        settings=carried_settings(projection.settings, standing.settings),
        open_calls=projection.open_calls(head.start),
        inbox=tuple(waiting),
        spent=standing.spent,
        breaker=standing.breaker,
    )


def _untold(tree: Tree, identity: int, head: HeadRecord) -> HeadRecord:
    """A head as it is made again: what was redacted since is not told on by it."""
    unseen = hidden(tree)
    if not unseen:
        return head
    told = head.quote is not None and (head.quoted in unseen or identity in unseen)
    stale = identity in stale_summaries(tree.entries)
    return replace(
        head,
        summary=STALE_SUMMARY if stale else head.summary,
        item=None if stale else head.item,
        pins=tuple(pin for pin in head.pins if pin.entry not in unseen),
        quote=REDACTED if told else head.quote,
        open_calls=tuple(call for call in head.open_calls if call[0] not in unseen),
    )


def turn_end(branch: Sequence[Entry], entry: int) -> int:
    """The last entry of the turn that `entry` of the branch belongs to."""
    for turn in turns_of(branch):
        if turn.opening[0].id > entry:
            assert turn.before is not None  # `entry` stands before it
            return turn.before
    return branch[-1].id


def fork_point(tree: Tree, entry: int) -> int:
    """Where a fork at `entry` ends: there; but a message that opened a turn stands for all of the turn.

    Raises `SessionError` when there is no such entry.
    """
    here = find(tree, entry)
    branch = tree.branch_to(newest_tip_of(tree, here.id))
    opened = any(each.id == here.id for turn in turns_of(branch) for each in turn.opening)
    return turn_end(branch, here.id) if opened else here.id


def newest_tip_of(tree: Tree, entry: int) -> int:
    """The tip of the branch through `entry` that was written to last."""
    tip, family = entry, {entry}
    for each in tree.entries:
        if each.id > entry and each.parent in family and not isinstance(each.record, OFF_BRANCH):
            tip = each.id
            family.add(tip)
    return tip


def fork_of(tree: Tree, one: int | None, other: int | None) -> int | None:
    """The last entry that the branches to `one` and `other` share."""
    shared = {entry.id for entry in tree.branch_to(one)}
    while other is not None and other not in shared:
        entry = tree.get(other)
        other = entry.parent if entry is not None else None
    return other


def session_model(branch: Sequence[Entry]) -> str | None:
    """The model that was chosen in the session itself, as `provider/model`; None when none was."""
    for entry in reversed(branch):
        match entry.record:
            case SettingRecord(name="model", value=value):
                return value if isinstance(value, str) else None
            case HeadRecord(settings=settings):  # all that were in force, so older ones do not count
                value = settings.get("model")
                return value if isinstance(value, str) else None
            case _:
                continue
    return None


def _count(turns: int) -> str:
    return "1 turn" if turns == 1 else f"{turns} turns"
