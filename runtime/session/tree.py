"""The entries of a session as a tree, and the branch that is being talked on.

Laws: `leaf_after` alone says how an entry moves the leaf. Replaying the entries of a file in order gives the same
tree. Parents are older than their children, so ids rise along every branch. A tree that was read from the tail of its
file (`complete` is False) holds the newest entries, from some id on: what is older is taken to be there.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from .entries import OFF_BRANCH, Entry, LeafRecord, MessageRecord, RedactRecord, ResultRecord, UnknownRecord


class _Move(Enum):
    """What entries of a type do to the leaf; those of all other types become it."""

    STAY = auto()
    FOLLOW = auto()  # only from their own parent
    JUMP = auto()


_MOVES: Final[dict[type, _Move]] = {
    **dict.fromkeys(OFF_BRANCH, _Move.STAY),
    ResultRecord: _Move.FOLLOW,
    UnknownRecord: _Move.FOLLOW,
    LeafRecord: _Move.JUMP,
}


def leaf_after(entry: Entry, leaf: int | None, known: Container[int]) -> int | None:
    """The leaf once `entry` was written, when it was `leaf` before and the entries `known` were there.

    A `leaf` entry moves it where it says, if that is known; off-branch types never move it. A result (or an entry
    of an unknown type) moves it only from its own parent: it may belong to a branch that was left. Anything else
    is what the conversation went on with, so that even a lost `leaf` line does not hide what followed it.
    """
    move = _MOVES.get(type(entry.record))
    if move is None:
        return entry.id
    if move is _Move.FOLLOW:
        return entry.id if entry.parent == leaf else leaf
    record = entry.record
    if isinstance(record, LeafRecord) and (record.leaf is None or record.leaf in known):
        return record.leaf
    return leaf


def newest_tip(newest_first: Iterable[Entry], reply: int) -> int | None:
    """The tip of the branch through the entry `reply` that was written to last; None when that is no message."""
    later = []
    for entry in newest_first:
        if entry.id <= reply:
            if entry.id < reply or not isinstance(entry.record, MessageRecord):
                return None
            break
        later.append(entry)
    else:
        return None
    tip, family = reply, {reply}
    for entry in reversed(later):
        if entry.parent in family and not isinstance(entry.record, OFF_BRANCH):
            tip = entry.id
            family.add(tip)
    return tip


class Tree:
    """Grows by `add`; `leaf` is the id of the newest entry of the current branch, None before the first.

    `redacted` are the targets of all redactions in it; entries up to `copied` came from another session by a fork.
    """

    def __init__(self, entries: Sequence[Entry] = (), *, complete: bool = True, copied: int = 0) -> None:
        self.complete = complete
        self.copied = copied
        self.leaf: int | None = None
        self.redacted: frozenset[int] = frozenset()
        self._entries: dict[int, Entry] = {}
        self._branch: list[Entry] = []
        self._newest = 0
        self._first = entries[0].id if entries and not complete else 0
        for entry in entries:
            self._take(entry)
        self._follow_leaf()

    @property
    def next_id(self) -> int:
        return self._newest + 1

    @property
    def first(self) -> int:
        """The id from which on entries are here; 0 when all are."""
        return self._first

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, identity: object) -> bool:
        return identity in self._entries or (isinstance(identity, int) and 0 < identity < self._first)

    def get(self, identity: int) -> Entry | None:
        """The entry; None when there is none, or when it is older than what was read."""
        return self._entries.get(identity)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries that were read, in the order of writing."""
        return tuple(self._entries.values())

    def newest_first(self) -> Iterable[Entry]:
        return reversed(self._entries.values())

    def add(self, entry: Entry) -> None:
        """Take in the next entry: its id is higher than all before, its parent among them."""
        before = self.leaf
        self._take(entry)
        if self.leaf != before:
            self._follow_leaf()

    def snapshot(self) -> Tree:
        """The tree as it is now, for who reads it in a thread: it does not grow with this one."""
        taken = copy.copy(self)
        taken._entries, taken._branch = dict(self._entries), list(self._branch)
        return taken

    def complete_with(self, entries: Sequence[Entry]) -> None:
        """Take in all entries of the file, of which only the newest are here; these stay the same objects.

        Entries that are here and not among them are newer than the reading. One whose parent turns out to be lost hangs
        where `entries` say.
        """
        parents = {entry.id: entry.parent for entry in entries if entry.id >= self._first}
        older = [entry for entry in entries if entry.id < self._first]
        newer = [_moved(entry, parents.get(entry.id, entry.parent)) for entry in self._entries.values()]
        self._entries = {entry.id: entry for entry in (*older, *newer)}
        self.redacted |= {entry.record.target for entry in older if isinstance(entry.record, RedactRecord)}
        self._first, self.complete = 0, True
        self._branch = []
        self._follow_leaf()

    def branch(self) -> Sequence[Entry]:
        """The current branch, root to leaf (what was read of it). Do not change or keep it: it follows the leaf."""
        return self._branch

    def branch_to(self, leaf: int | None) -> list[Entry]:
        """The entries from the root to `leaf`, as far as they were read."""
        found: list[Entry] = []
        while leaf is not None and (entry := self._entries.get(leaf)) is not None:
            found.append(entry)
            leaf = entry.parent
        found.reverse()
        return found

    def holds(self, leaf: int | None, identity: int) -> bool:
        """Whether the branch that ends in `leaf` holds the entry `identity`, which must be among those read."""
        if leaf == self.leaf:
            return self._length_to(identity) is not None
        while leaf is not None and leaf > identity and (entry := self._entries.get(leaf)) is not None:
            leaf = entry.parent
        return leaf == identity

    def _take(self, entry: Entry) -> None:
        self.leaf = leaf_after(entry, self.leaf, self)
        self._entries[entry.id] = entry
        self._newest = max(self._newest, entry.id)
        if type(entry.record) is RedactRecord:
            self.redacted |= {entry.record.target}

    def _follow_leaf(self) -> None:
        """Take the branch back to where the leaf's branch left it, and go on from there."""
        new: list[Entry] = []
        leaf = self.leaf
        while (length := self._length_to(leaf)) is None and leaf is not None:
            entry = self._entries.get(leaf)
            if entry is None:  # older than what was read
                break
            new.append(entry)
            leaf = entry.parent
        del self._branch[length or 0 :]
        self._branch.extend(reversed(new))

    def _length_to(self, identity: int | None) -> int | None:
        """How long the current branch is up to the entry `identity`; None when it is not on it."""
        branch = self._branch
        if identity is None:
            return None
        if branch and branch[-1].id == identity:
            return len(branch)
        place = bisect_left(branch, identity, key=lambda entry: entry.id)
        return place + 1 if place < len(branch) and branch[place].id == identity else None


def _moved(entry: Entry, parent: int | None) -> Entry:
    """`entry` under `parent`, with what was made from it."""
    if entry.parent == parent:
        return entry
    moved = Entry(entry.id, parent, entry.at, entry.record)
    moved.memo.update(entry.memo)
    return moved
