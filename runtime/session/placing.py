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
    """Whether it takes entries older than those in `tree` to tell where `records` go.

    The result of an older call may belong to a branch that was left; a `leaf` entry may lead to such a branch.
    """
    return not tree.complete and any(
        (isinstance(record, ResultRecord) and record.call[0] < tree.first)
        or (isinstance(record, LeafRecord) and record.leaf is not None and record.leaf < tree.first)
        for record in records
    )


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
