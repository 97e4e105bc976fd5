"""Where the records of a batch go: their ids, and the entry that each hangs on.

Pure: the tree is only read. Laws: a record hangs on the leaf as the records before it left it; a result hangs there
only if that branch holds its call, else on the tip of the newest branch that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from .entries import Entry, HeadRecord, LeafRecord, Record, ResultRecord
from .tree import Tree, leaf_after, newest_tip


def place(tree: Tree, records: Sequence[Record], at: str) -> tuple[Entry, ...]:
    """The entries that `records` become when they are appended to `tree` as one batch at the time `at`."""
    batch = _Batch(tree)
    for record in records:
        batch.add(record, at)
    return tuple(batch.entries)


def needs_older(tree: Tree, records: Sequence[Record]) -> bool:
    """Whether it takes entries older than those in `tree` to tell where `records` go, or what is seen once they are
    there.

    The result of an older call may belong to a branch that was left; a `leaf` entry may lead behind the head that the
    tree begins with, and so may a head that takes another one back.
    """
    return not tree.complete and any(_leads_out(tree, record) for record in records)


def _leads_out(tree: Tree, record: Record) -> bool:
    match record:
        case ResultRecord(call=(reply, _)):
            return reply < tree.first
        case HeadRecord(start=start):
            return start < tree.first
        case LeafRecord(leaf=int() as leaf):
            return leaf < tree.next_id and not _stands_alone(tree, leaf)
        case _:
            return False


def _stands_alone(tree: Tree, leaf: int) -> bool:
    """Whether all that is seen of the branch that ends in `leaf` is in the tree."""
    branch = tree.branch_to(leaf)
    for entry in reversed(branch):
        if isinstance(entry.record, HeadRecord):
            return entry.record.start >= tree.first
    return bool(branch) and branch[0].parent is None


class _Batch:
    """What the tree would look like with the entries placed so far."""

    def __init__(self, tree: Tree) -> None:
        self.entries: list[Entry] = []
        self._tree = tree
        self._first = tree.next_id
        self._leaf = tree.leaf

    def __contains__(self, identity: object) -> bool:
        return identity in self._tree or any(entry.id == identity for entry in self.entries)

    def add(self, record: Record, at: str) -> None:
        identity = self._first + len(self.entries)
        if isinstance(record, HeadRecord) and record.resume == 0:
            record = replace(record, resume=identity)  # 0: the head itself, whose id is known only here
        parent = self._parent_of_result(record) if isinstance(record, ResultRecord) else self._leaf
        entry = Entry(identity, parent, at, record)
        self._leaf = leaf_after(entry, self._leaf, self)
        self.entries.append(entry)

    def _parent_of_result(self, record: ResultRecord) -> int | None:
        reply = record.call[0]
        if self._leaf_holds(reply):
            return self._leaf
        tip = newest_tip(chain(reversed(self.entries), self._tree.newest_first()), reply)
        return self._leaf if tip is None else tip

    def _leaf_holds(self, identity: int) -> bool:
        leaf = self._leaf
        while leaf is not None and leaf >= self._first:
            if leaf == identity:
                return True
            leaf = self.entries[leaf - self._first].parent
        return self._tree.holds(leaf, identity)
