"""From the bytes of a session file to its entries, whatever happened to the file.

Pure: bytes in, `Reading` out; what must be done about the file (cut a torn tail, copy a broken line aside) is
said, not done. Laws:
- Every readable line is kept, whatever stands beside it.
- A tail without newline that is a whole entry is an entry (an editor took the newline); any other is torn.
- A batch is all or nothing: one whose last line never came is torn, from its first line on.
- A broken line is left where it is and reported with its number and offset.
- An entry whose parent cannot be read hangs on what was the leaf when that parent was written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..entries import Entry, Header, LeafRecord, ResultRecord, UnknownRecord
from ..tree import leaf_after
from .blobs import BlobStore
from .codec import BadLine, decode_header
from .large import Shelf
from .lines import Line, entries_of, put_in_order, read_lines

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
UNKNOWN: Final = -1  # a leaf that only older entries could tell
_MOST_HEADER = 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a session file. `line` counts from 1 (None: the file was read from its tail), `offset` is in
    bytes from the start. `content` is what could not be read."""

    line: int | None
    offset: int
    problem: str
    content: bytes = b""

    def __str__(self) -> str:
        place = f"byte {self.offset:,}" if self.line is None else f"line {self.line} (byte {self.offset:,})"
        return f"{place}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Reading:
    """`good_length`: how many bytes of the file stand; what lies beyond is `torn`. `unterminated`: the last line that
    stands lacks its newline. `places` are the offset and size of each entry's line.

    From the tail (`complete` is False) it holds what stands from the offset `begin` on.
    """

    header: Header
    entries: tuple[Entry, ...]
    broken: tuple[Finding, ...]
    torn: Finding | None
    good_length: int
    unterminated: bool
    places: tuple[tuple[int, int], ...] = ()
    complete: bool = True
    begin: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.broken if self.torn is None else (*self.broken, self.torn)


@dataclass(frozen=True, slots=True)
class Opening:
    """The header of a file, the offset behind its line, and what is wrong with that line."""

    header: Header
    end: int
    findings: tuple[Finding, ...] = ()


def read_session(data: bytes, blobs: BlobStore | None = None) -> Reading:
    """Read a whole session file. Raises `BadLine` when there is no usable header."""
    opening = read_header(data)
    lines = read_lines(data[opening.end :], opening.end, Shelf(blobs))
    return whole_reading(opening, lines, data)


def read_header(data: bytes) -> Opening:
    """The header of a file that begins with `data`. Raises `BadLine`."""
    rest = data.lstrip(b" \t\r\n")
    if not rest:
        raise BadLine("the file is empty")
    begin = len(data) - len(rest)
    line = rest[:_MOST_HEADER].split(b"\n", 1)[0]
    findings: tuple[Finding, ...] = ()
    if line.startswith(BYTE_ORDER_MARK):
        findings = (Finding(None, begin, "a byte order mark stands before it, as some editors write one"),)
    try:
        return Opening(decode_header(line), min(begin + len(line) + 1, len(data)), findings)
    except BadLine:
        first = line.find(b'}{"id":') + 1  # the newline behind the header was lost
        if not first:
            raise
        welded = Finding(None, begin, "an entry stands on its line; both are read")
        return Opening(decode_header(line[:first]), begin + first, (*findings, welded))


def whole_reading(opening: Opening, lines: list[Line], data: bytes) -> Reading:
    """The reading of a whole file from its lines."""
    put_in_order(lines)
    torn = torn_line(lines)
    standing = before(lines, torn)
    hang_up(lost_parents(standing, Parents(0, None)) or ())
    reading = reading_of(opening, standing, torn, data, 0)
    return replace(
        reading,
        broken=tuple(numbered(reading.broken, data)),
        torn=None if reading.torn is None else next(numbered((reading.torn,), data)),
    )


def reading_of(opening: Opening, lines: Sequence[Line], torn: Line | None, data: bytes, base: int) -> Reading:
    """What `lines` say; `data` are the bytes from the offset `base` on. Findings have no line numbers."""
    end = base + len(data) if torn is None else torn.offset
    broken = [*opening.findings, *_line_ends(lines, data, base)]
    broken += [_finding(line, data, base) for line in lines if line.problem is not None]
    read = [line for line in lines if line.entry is not None]
    return Reading(
        opening.header,
        tuple(entries_of(read)),
        tuple(sorted(broken, key=lambda finding: finding.offset)),
        None if torn is None else Finding(None, end, "the file ends in the middle of a write", data[end - base :]),
        end,
        unterminated=data[: end - base][-1:] != b"\n",
        places=tuple([(line.offset, line.size) for line in read]),
    )


def before(lines: list[Line], torn: Line | None) -> list[Line]:
    """The lines that stand before a torn one."""
    return lines if torn is None else [line for line in lines if line.offset < torn.offset]


def numbered(findings: Iterable[Finding], data: bytes) -> Iterator[Finding]:
    """The findings, in order of their offsets, with the numbers of their lines in the file `data`."""
    number, offset = 1, 0
    for finding in findings:
        number += data.count(b"\n", offset, finding.offset)
        offset = finding.offset
        yield replace(finding, line=number)


def torn_line(lines: Sequence[Line]) -> Line | None:
    """The first line of what was being written when the writer died, if it did not finish."""
    if not lines:
        return None
    tail = lines[-1] if lines[-1].entry is None and not lines[-1].ended else None
    place = len(lines) - 1
    while place >= 0 and lines[place].entry is None:
        place -= 1
    last = lines[place] if place >= 0 else None
    if last is None or last.entry is None or last.until is None:
        return tail
    spoilt = sum(line.ended for line in lines[place + 1 :])  # whole lines that cannot be read may be the batch's rest
    if last.entry.id + spoilt >= last.until:
        return tail
    return next(line for line in lines if line.until == last.until)


@dataclass(frozen=True, slots=True)
class Move:
    """The `entry` of `line` lost its parent and hangs on `parent`."""

    line: Line
    entry: Entry
    parent: int | None


def lost_parents(lines: Sequence[Line], parents: Parents) -> list[Move] | None:
    """The entries whose parent is lost, each with what was the leaf when that parent was written; `parents` takes all
    entries in. None when only older entries could tell."""
    if parents.complete and _all_hang(lines):
        return []
    moves: list[Move] = []
    for line in lines:
        entry = line.entry
        if entry is None:
            continue
        parent = parents.of(entry)
        if parent == UNKNOWN:
            return None
        if parent != entry.parent:
            moves.append(Move(line, entry, parent))
            entry = replace(entry, parent=parent)
        parents.add(entry)
    return moves


def hang_up(moves: Iterable[Move]) -> None:
    """Change the entries of the lines, and say so."""
    for move in moves:
        where = "the root" if move.parent is None else f"entry {move.parent}"
        move.line.entry = replace(move.entry, parent=move.parent)
        move.line.problem = f"its parent {move.entry.parent} is missing; it hangs on {where} now"


def _all_hang(lines: Sequence[Line]) -> bool:
    """Whether every parent is among the entries before: as good as always."""
    known: set[int | None] = {None}
    for line in lines:
        entry = line.entry
        if entry is not None:
            if entry.parent not in known:
                return False
            known.add(entry.id)
    return True


class Parents:
    """The entries read so far, from the id `first` on: which there are, and what the leaf was after each.

    What is older than `first` is taken to be there; `leaf` is the leaf before.
    """

    def __init__(self, first: int, leaf: int | None) -> None:
        self.leaf = leaf
        self.complete = first == 0
        self._first, self._before = first, leaf
        self._ids: list[int] = []
        self._leaves: list[int | None] = []
        self._known: set[int] = set()

    def of(self, entry: Entry) -> int | None:
        """The parent that `entry` has, or gets since its own is lost; `UNKNOWN` where only older entries could tell."""
        parent = entry.parent
        if parent is None or parent in self._known or parent < self._first:
            return parent
        place = bisect_left(self._ids, parent)
        return self._leaves[place - 1] if place else self._before

    def add(self, entry: Entry) -> None:
        self.leaf = self._leaf_after(entry)
        self._ids.append(entry.id)
        self._leaves.append(self.leaf)
        self._known.add(entry.id)

    def _leaf_after(self, entry: Entry) -> int | None:
        record = entry.record
        if isinstance(record, LeafRecord):
            if record.leaf is not None and record.leaf < self._first:
                return UNKNOWN  # it may be lost
        elif isinstance(record, (ResultRecord, UnknownRecord)):
            older = entry.parent is not None and entry.parent < self._first
            if self.leaf == UNKNOWN or (self.leaf is None and older):  # its own parent may be lost
                return UNKNOWN
        return leaf_after(entry, self.leaf, self._known)


def _finding(line: Line, data: bytes, base: int) -> Finding:
    start = line.offset - base
    content = data[start : start + line.size] if line.entry is None else b""
    return Finding(None, line.offset, line.problem or "", content)


def _line_ends(lines: Sequence[Line], data: bytes, base: int) -> Iterator[Finding]:
    """Another system's line ends are told once."""
    ends = [line for line in lines if data[line.offset - base + line.size - 1] == 13]
    if ends:
        problem = f"it ends in CR LF, as Windows editors write it; so do {len(ends) - 1:,} lines after it"
        yield Finding(None, ends[0].offset, problem)
