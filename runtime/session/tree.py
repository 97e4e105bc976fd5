"""The entries of a session as a tree, and the branch that is being talked on.

Laws: `leaf_after` alone says how an entry moves the leaf. Replaying the entries of a file in order gives the same
tree. Parents are older than their children, so ids rise along every branch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence

from .entries import OFF_BRANCH, Entry, LeafRecord, MessageRecord, ResultRecord, UnknownRecord


def leaf_after(entry: Entry, leaf: int | None, known: Container[int]) -> int | None:
    """The leaf once `entry` was written, when it was `leaf` before and the entries `known` were there.

    A `leaf` entry moves it where it says, if that is known; off-branch types never move it. A result (or an entry
    of an unknown type) moves it only from its own parent: it may belong to a branch that was left. Anything else
    is what the conversation went on with, so that even a lost `leaf` line does not hide what followed it.
    """
    match entry.record:
        case LeafRecord(leaf=target):
            return target if target is None or target in known else leaf
        case ResultRecord() | UnknownRecord():
            return entry.id if entry.parent == leaf else leaf
        case record:
            return leaf if isinstance(record, OFF_BRANCH) else entry.id


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
    """Grows by `add`; `leaf` is the id of the newest entry of the current branch, None before the first."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries: dict[int, Entry] = {}
        self._branch: list[Entry] = []
        self._newest = 0
        self.leaf: int | None = None
        for entry in entries:
            self.add(entry)

    @property
    def next_id(self) -> int:
        return self._newest + 1

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, identity: object) -> bool:
        return identity in self._entries

    def get(self, identity: int) -> Entry | None:
        return self._entries.get(identity)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order of writing."""
        return tuple(self._entries.values())

    def newest_first(self) -> Iterable[Entry]:
        return reversed(self._entries.values())

    def add(self, entry: Entry) -> None:
        """Take in the next entry: its id is higher than all before, its parent among them."""
        before, self.leaf = self.leaf, leaf_after(entry, self.leaf, self._entries)
        self._entries[entry.id] = entry
        self._newest = max(self._newest, entry.id)
        if self.leaf != before:
            self._follow_leaf()

    def branch(self) -> Sequence[Entry]:
        """The current branch, root to leaf. Do not change or keep it: it follows the leaf."""
        return self._branch

    def branch_to(self, leaf: int | None) -> list[Entry]:
        """The entries from the root to `leaf`."""
        found: list[Entry] = []
        while leaf is not None:
            entry = self._entries[leaf]
            found.append(entry)
            leaf = entry.parent
        found.reverse()
        return found

    def holds(self, leaf: int | None, identity: int) -> bool:
        """Whether the branch that ends in `leaf` holds the entry `identity`."""
        if leaf == self.leaf:
            return self._length_to(identity) is not None
        while leaf is not None and leaf > identity:
            leaf = self._entries[leaf].parent
        return leaf == identity

    def _follow_leaf(self) -> None:
        """Take the branch back to where the leaf's branch left it, and go on from there."""
        new: list[Entry] = []
        leaf = self.leaf
        while (length := self._length_to(leaf)) is None and leaf is not None:
            new.append(self._entries[leaf])
            leaf = new[-1].parent
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
