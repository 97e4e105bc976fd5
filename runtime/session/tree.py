"""The entries of a session as a tree, and the branch that is being talked on.

Laws: an entry moves the leaf exactly when it is not of an off-branch type and its parent is the leaf; a `leaf`
entry moves it where it says. Replaying the entries of a file in order gives the same tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from .entries import OFF_BRANCH, CallReference, Entry, LeafRecord, MessageRecord


class Tree:
    """Grows by `add`; `leaf` is the id of the newest entry of the current branch, None before the first."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries: dict[int, Entry] = {}
        self._branch: list[Entry] | None = []
        self._newest = 0
        self.leaf: int | None = None
        for entry in entries:
            self.add(entry)

    @property
    def next_id(self) -> int:
        return self._newest + 1

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, identity: int) -> Entry | None:
        return self._entries.get(identity)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order of writing."""
        return tuple(self._entries.values())

    def add(self, entry: Entry) -> None:
        self._entries[entry.id] = entry
        self._newest = max(self._newest, entry.id)
        if isinstance(entry.record, LeafRecord):
            if entry.record.leaf is None or entry.record.leaf in self._entries:
                self.leaf = entry.record.leaf
                self._branch = None
        elif not isinstance(entry.record, OFF_BRANCH) and entry.parent == self.leaf:
            self.leaf = entry.id
            if self._branch is not None:
                self._branch.append(entry)

    def branch(self) -> Sequence[Entry]:
        """The current branch, root to leaf. Do not change it; it grows with the next `add`."""
        if self._branch is None:
            self._branch = self.branch_to(self.leaf)
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

    def parent_for_result(self, call: CallReference) -> int | None:
        """Where the result of `call` hangs: on the leaf if its branch holds the call, else on its newest tip."""
        reply = self._entries.get(call[0])
        if reply is None or not isinstance(reply.record, MessageRecord) or self._holds(self.leaf, reply.id):
            return self.leaf
        tip = reply.id
        for entry in self._entries.values():
            if entry.parent == tip and not isinstance(entry.record, OFF_BRANCH):
                tip = entry.id
        return tip

    def _holds(self, leaf: int | None, identity: int) -> bool:
        while leaf is not None and leaf >= identity:
            if leaf == identity:
                return True
            leaf = self._entries[leaf].parent
        return False
