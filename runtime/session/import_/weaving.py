"""A tree out of lines that name their parents, in whatever order they come.

Laws: every line is made once, after the line that it hangs on; a line may come before its parent, and waits; one
whose parent never comes hangs on the nearest line before it, and that is reported; a line with the id of an earlier
one is left.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass

from .book import Account
from .drafts import Spot
from .parts import Object

#: Makes the entries of a line under a spot; the spot where its children hang comes back.
Make = Callable[[int, Object, Spot], Spot]


@dataclass(frozen=True, slots=True)
class Woven:
    """A line and its place: its own name, and the name of the line it hangs on (None: on the nearest before it)."""

    number: int
    value: Object
    name: str | None
    parent: str | None
    is_root: bool = False


class Weaver:
    def __init__(self, account: Account, make: Make) -> None:
        self._account = account
        self._make = make
        self._spots: dict[str, Spot] = {}
        self._lines: dict[str, int] = {}
        self._waiting: dict[str, list[Woven]] = {}
        self._numbers: list[int] = []
        self._by_number: dict[int, Spot] = {}

    def take(self, line: Woven) -> None:
        if line.is_root:
            self._weave(line, Spot())
        elif line.parent is None:
            self._weave(line, self.nearest(line.number))
        elif line.parent in self._spots:
            self._weave(line, self._spots[line.parent])
        else:
            self._waiting.setdefault(line.parent, []).append(line)

    def spot(self, name: object) -> Spot | None:
        """The spot of the line with that name, if it came."""
        return self._spots.get(name) if isinstance(name, str) else None

    def rename(self, name: str, spot: Spot) -> None:
        """From now on the line of that name is at `spot`."""
        self._spots[name] = spot

    def nearest(self, number: int) -> Spot:
        """The spot of the nearest line before that number."""
        place = bisect_right(self._numbers, number)
        return self._by_number[self._numbers[place - 1]] if place else Spot()

    def put(self, number: int, spot: Spot) -> None:
        """The line of that number, which has no name, is at `spot`."""
        if number not in self._by_number:
            insort(self._numbers, number)
        self._by_number[number] = spot

    def finish(self) -> None:
        """Make what still waits: no parent will come any more."""
        order = sorted(self._waiting, key=lambda parent: self._waiting[parent][0].number)
        for parent in order:
            for line in self._waiting.pop(parent, ()):
                if line.name is None or line.name not in self._lines:
                    self._account.lose(line.number, "the line it hangs on is missing: it hangs on the one before it")
                self._weave(line, self.nearest(line.number))

    def _weave(self, line: Woven, spot: Spot) -> None:
        ready = [(line, spot)]
        while ready:
            line, spot = ready.pop()
            if line.name is not None and line.name in self._lines:
                self._account.leave(line.number, f"it repeats line {self._lines[line.name]}: their ids are the same")
                continue
            own = self._make(line.number, line.value, spot)
            self.put(line.number, own)
            if line.name is not None:
                self._lines[line.name] = line.number
                self._spots.setdefault(line.name, own)
                ready += [(each, self._spots[line.name]) for each in reversed(self._waiting.pop(line.name, []))]
