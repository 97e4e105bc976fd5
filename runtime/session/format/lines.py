"""From the bytes of a stretch of a session file to its lines, each an entry or a finding.

Pure. Laws: every byte that is no blank stands in one line; what is whole on a damaged line is read (two entries that
lost the line end between them, an entry behind a block of NULs), the rest of it is broken; ids rise.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..entries import Entry
from .codec import BadLine, decode_entry
from .large import Shelf

_START = re.compile(rb'\{"id":')  # where an entry may begin; no text in it holds these bytes
_BLANK = b" \t\r"
_MOST_TRIES = 200  # on one damaged line


@dataclass(slots=True)
class Line:
    """`size` bytes at `offset`, without the newline (`ended`: there is one). Without `entry` it is broken; `problem` is
    what there is to tell."""

    offset: int
    size: int
    ended: bool
    entry: Entry | None
    until: int | None = None
    problem: str | None = None


def read_lines(data: bytes, base: int, shelf: Shelf) -> list[Line]:
    """The lines of `data`, which begins at the offset `base` of its file and at the beginning of a line. Blank lines
    are nothing."""
    lines: list[Line] = []
    offset, end = base, base + len(data)
    for content in data.split(b"\n"):
        size = len(content)
        ended = offset + size < end
        if content:
            try:
                entry, until = decode_entry(content, shelf)
            except BadLine as problem:
                lines.extend(_damaged(content, offset, ended, str(problem), shelf))
            else:
                lines.append(Line(offset, size, ended, entry, until))
            if shelf.missing:
                _tell_missing(lines[-1], shelf)
        offset += size + 1
    return lines


def entries_of(lines: Iterable[Line]) -> list[Entry]:
    return [line.entry for line in lines if line.entry is not None]


def ids_rise(lines: Iterable[Line]) -> bool:
    last = 0
    for line in lines:
        if line.entry is not None:
            if line.entry.id <= last:
                return False
            last = line.entry.id
    return True


def put_in_order(lines: Sequence[Line]) -> None:
    """Make ids rise: as few entries as possible become broken.

    So a line whose id jumps far ahead does not take those after it along, and of two lines with one id the first stays.
    """
    if ids_rise(lines):
        return
    read = [line for line in lines if line.entry is not None]
    ids = [entry.id for entry in entries_of(read)]
    kept = _rising(ids)
    last = 0
    for index, line in enumerate(read):
        place = bisect_left(kept, index)
        if place < len(kept) and kept[place] == index:
            last = ids[index]
            continue
        line.entry = line.until = None
        if ids[index] <= last:
            line.problem = f"its id {ids[index]} does not follow {last}"
        else:
            line.problem = f"its id {ids[index]} runs ahead of {ids[kept[place]]}, which comes after it"


def _rising(ids: Sequence[int]) -> list[int]:
    """The indices of the longest rising sequence of `ids`; of several the one with the smallest ids, the first of each.

    O(n log n), by how long a sequence can begin at each index.
    """
    lengths = [0] * len(ids)
    heads: list[int] = []  # of the sequences of each length that begin further on: the largest first id, negated
    for index in range(len(ids) - 1, -1, -1):
        place = bisect_left(heads, -ids[index])
        heads[place : place + 1] = [-ids[index]]
        lengths[index] = place + 1
    by_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(index)
    kept: list[int] = []
    for length in range(len(heads), 0, -1):
        last, newest = (ids[kept[-1]], kept[-1]) if kept else (0, -1)
        kept.append(min((ids[index], index) for index in by_length[length] if index > newest and ids[index] > last)[1])
    return kept


def _damaged(content: bytes, offset: int, ended: bool, problem: str, shelf: Shelf) -> Iterator[Line]:
    """What there is on a line that is no entry: the whole entries in it, and what is broken between them."""
    if not content.strip(_BLANK):
        return
    end = 0
    pieces = list(_pieces(content, shelf))
    for start, stop, entry, until in pieces:
        if content[end:start].strip(_BLANK):
            why = f"{start - end:,} bytes of a damaged line are no entry"
            yield Line(offset + end, start - end, True, None, problem=why)
        told = "it stands on one line with the entry before it; both are read" if end else None
        yield Line(offset + start, stop - start, ended or stop < len(content), entry, until, told)
        end = stop
    if not pieces:
        yield Line(offset, len(content), ended, None, problem=problem)
    elif content[end:].strip(_BLANK):
        why = f"{len(content) - end:,} bytes of a damaged line are no entry"
        yield Line(offset + end, len(content) - end, ended, None, problem=why)


def _pieces(content: bytes, shelf: Shelf) -> Iterator[tuple[int, int, Entry, int | None]]:
    """The entries that stand whole on a damaged line, each at its place."""
    text = content.decode("latin-1")  # a character a byte
    end = tries = 0
    for found in _START.finditer(content):
        start = found.start()
        if start < end:
            continue
        tries += 1
        if tries > _MOST_TRIES:
            return
        try:
            _, stop = json.JSONDecoder().raw_decode(text, start)
            if not _ends_well(content, stop):
                continue
            entry, until = decode_entry(content[start:stop], shelf)
        except (ValueError, RecursionError):  # BadLine is one
            continue
        end = stop
        yield start, stop, entry, until


def _ends_well(content: bytes, stop: int) -> bool:
    """Whether an object that ends at `stop` may be an entry: one within another object is followed by more of that."""
    rest = content[stop : stop + 64].lstrip(_BLANK + b"\0")
    return not rest or rest.startswith(b"{")


def _tell_missing(line: Line, shelf: Shelf) -> None:
    names = ", ".join(dict.fromkeys(blob.name[:12] for blob in shelf.missing))
    line.problem = f"the blobs that it names are missing or damaged: {names}"
    shelf.missing.clear()
