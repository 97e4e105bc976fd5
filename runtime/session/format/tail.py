"""Reading a session file back from its end, as far as a resume needs.

Pure: the bytes come from a function that is handed in. What is read begins at the line of the `from` of the newest head
on the current branch; without a head it is everything. Laws:
- Projection, waiting input, settings, spending, the next id and where new entries hang are those of the whole file.
- The leaf is the one that `leaf_after` gives over the whole file: where an entry before the tail may be needed to know
  it, the tail is made longer. In the end that leads to the beginning of the file, and to a whole reading.
- A tail in which ids do not rise is not trusted: the whole file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from ..entries import Entry, HeadRecord
from .blobs import BlobStore
from .codec import BadLine
from .large import Shelf
from .lines import Line, entries_of, ids_rise, read_lines
from .reading import (
    UNKNOWN,
    Opening,
    Parents,
    Reading,
    before,
    hang_up,
    lost_parents,
    read_header,
    reading_of,
    torn_line,
    whole_reading,
)

#: `read(offset, size)`: that many bytes of the file from there on. Raises `OSError`.
Read: TypeAlias = Callable[[int, int], bytes]

_CHUNK: Final = 2**17  # bytes
_HEAD: Final = b'"head"'  # every head's line has it; no text holds these bytes, as a quotation mark in it is escaped
_LONGEST_HEADER: Final = 2**20


def read_from_tail(read: Read, size: int, blobs: BlobStore | None = None, *, chunk: int = _CHUNK) -> Reading:
    """Read a session file of `size` bytes, no further back than a resume needs, at least `chunk` bytes at a time.

    A short file is read whole. Raises `BadLine`.
    """
    opening = _header(read, size)
    tail = _Tail(read, opening.end, size, Shelf(blobs), chunk)
    hint = tail.hint(size)
    while hint is not None:
        tail.reach(hint)
        found = _look(tail.lines) if tail.low > opening.end else "all"
        if isinstance(found, _Found):
            return _reading(opening, found, tail)
        if found == "all":
            break
        doubled = max(opening.end, tail.low - max(chunk, size - tail.low))
        if found == "more":
            hint = doubled
        elif (hint := tail.hint(tail.low)) is not None:
            hint = min(hint, doubled)  # not head by head, where there are many
    tail.reach(opening.end)
    whole = read(0, opening.end) + tail.data
    return whole_reading(opening, tail.lines, whole)


def _header(read: Read, size: int) -> Opening:
    for most in (_CHUNK, _LONGEST_HEADER, size):
        data = read(0, min(size, most))
        if b"\n" in data.lstrip() or most >= size:
            return read_header(data)
    raise BadLine("the file is empty")


class _Tail:
    """The lines from the offset `low` to the end; `data` are their bytes."""

    def __init__(self, read: Read, first: int, size: int, shelf: Shelf, chunk: int) -> None:
        self.low = size
        self.lines: list[Line] = []
        self._read, self._first, self._shelf, self._chunk = read, first, shelf, chunk
        self._pieces: list[bytes] = []  # the latest first

    @property
    def data(self) -> bytes:
        return b"".join(reversed(self._pieces))

    def hint(self, below: int) -> int | None:
        """Where in the bytes before the offset `below` a head may stand, the last such place; None when none does."""
        overlap = b""
        while below > self._first:
            start = max(self._first, below - self._chunk)
            data = self._read(start, below - start)
            data += overlap
            place = data.rfind(_HEAD)
            if place >= 0:
                return start + place
            below, overlap = start, data[: len(_HEAD) - 1]
        return None

    def reach(self, offset: int) -> None:
        """Read down to the line in which `offset` stands."""
        if offset >= self.low:
            return
        start = self._line_start(offset)
        data = self._read(start, self.low - start)
        self.lines[:0] = read_lines(data, start, self._shelf)
        self._pieces.append(data)
        self.low = start

    def _line_start(self, offset: int) -> int:
        while offset > self._first:
            start = max(self._first, offset - self._chunk)
            place = self._read(start, offset - start).rfind(b"\n")
            if place >= 0:
                return start + place + 1
            offset = start
        return self._first


@dataclass(frozen=True, slots=True)
class _Found:
    """What a resume needs: the lines of the tail that stand before the `torn` one."""

    lines: list[Line]
    torn: Line | None


#: What is missing: a head on this branch, anything older, or the whole file.
_Missing: TypeAlias = Literal["head", "more", "all"]


def _look(lines: list[Line]) -> _Found | _Missing:
    """What a resume needs of `lines`, or what has to be read to know it. Lines are changed only when they are found."""
    if not ids_rise(lines):
        return "all"
    torn = torn_line(lines)
    standing = before(lines, torn)
    entries = entries_of(standing)
    if not entries:
        return "more"
    parents = Parents(entries[0].id, UNKNOWN)
    moves = lost_parents(standing, parents)
    if moves is None or parents.leaf == UNKNOWN:
        return "more"
    head = _newest_head(entries, parents.leaf, {move.entry.id: move.parent for move in moves})
    if not isinstance(head, HeadRecord):
        return head
    if head.start < entries[0].id:
        return "more"
    hang_up(moves)
    older = sum(1 for _ in takewhile(lambda line: line.entry is None or line.entry.id < head.start, standing))
    while older and standing[older - 1].entry is None:  # what is broken just before may be the line of `from`
        older -= 1
    return _Found(standing[older:], torn)


def _newest_head(entries: Sequence[Entry], leaf: int | None, moved: Mapping[int, int | None]) -> HeadRecord | _Missing:
    """The newest head of the branch that ends in `leaf`."""
    by_id = {entry.id: entry for entry in entries}
    while leaf is not None:
        entry = by_id.get(leaf)
        if entry is None:
            return "head"  # it is older
        if isinstance(entry.record, HeadRecord):
            return entry.record
        leaf = moved.get(leaf, entry.parent)
    return "all"  # the branch has none: spending and waiting input are nowhere summed up


def _reading(opening: Opening, found: _Found, tail: _Tail) -> Reading:
    begin = found.lines[0].offset
    reading = reading_of(opening, found.lines, found.torn, tail.data[begin - tail.low :], begin)
    return replace(reading, complete=False, begin=begin)
