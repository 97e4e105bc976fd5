"""Which entry stands above which in the tree, answered at once however long the branches are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .entries import Entry


class Ancestry:
    """Of entries in the order of writing: every parent is among those before, or null.

    A walk through the tree enters each entry before all below it and leaves it after them; who is above whom follows
    from the two numbers.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._below: dict[int, int] = {}  # how many entries stand below one, itself included
        for entry in reversed(entries):
            below = self._below.setdefault(entry.id, 1)
            if entry.parent is not None:
                self._below[entry.parent] = self._below.get(entry.parent, 1) + below
        self._entered: dict[int, int] = {}
        free = 0  # where the next root, or the next child of an entry, enters
        next_child: dict[int, int] = {}
        for entry in entries:
            if entry.parent is None:
                place, free = free, free + self._below[entry.id]
            else:
                place = next_child[entry.parent]
                next_child[entry.parent] = place + self._below[entry.id]
            self._entered[entry.id] = place
            next_child[entry.id] = place + 1

    def is_above(self, above: int, below: int) -> bool:
        """Whether the branch that ends in `below` holds the entry `above`. Both may be the same."""
        if above not in self._entered or below not in self._entered:
            return False
        first = self._entered[above]
        return first <= self._entered[below] < first + self._below[above]
