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
from dataclasses import dataclass, field, replace

from .codec import BadLine, decode_entry, decode_header
from .entries import Entry, Header
from .tree import leaf_after


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a session file. `line` counts from 1, `offset` is in bytes from the start."""

    line: int
    offset: int
    problem: str
    content: bytes = b""

    def __str__(self) -> str:
        return f"line {self.line} (byte {self.offset:,}): {self.problem}"


@dataclass(frozen=True, slots=True)
class Reading:
    """`good_length`: how many bytes of the file stand; what lies beyond is `torn`. `unterminated`: the last
    line is an entry that lacks its newline."""

    header: Header
    entries: tuple[Entry, ...]
    broken: tuple[Finding, ...]
    torn: Finding | None
    good_length: int
    unterminated: bool


@dataclass(slots=True)
class _Line:
    number: int
    offset: int
    content: bytes
    ended: bool  # by a newline
    entry: Entry | None = None
    until: int | None = None


def read_session(data: bytes) -> Reading:
    """Read a whole session file. Raises `BadLine` when there is no usable header."""
    lines = _split(data)
    if not lines:
        raise BadLine("the file is empty")
    header = decode_header(lines[0].content)
    entry_lines = lines[1:]
    broken = _decode(entry_lines)
    torn = _torn(entry_lines)
    end = len(data) if torn is None else torn.offset
    entries = tuple(line.entry for line in entry_lines if line.entry is not None and line.offset < end)
    kept = tuple(finding for finding in broken if finding.offset < end)
    if torn is None:
        return Reading(header, entries, kept, None, end, unterminated=not data.endswith(b"\n"))
    finding = Finding(torn.number, end, "the file ends in the middle of a write", data[end:])
    return Reading(header, entries, kept, finding, end, unterminated=False)


def _split(data: bytes) -> list[_Line]:
    lines: list[_Line] = []
    offset = 0
    for number, content in enumerate(data.split(b"\n"), start=1):
        after = offset + len(content) + 1
        if content.strip(b" \t\r"):
            lines.append(_Line(number, offset, content, ended=after <= len(data)))
        offset = after
    return lines


@dataclass(slots=True)
class _Chain:
    """The entries read so far: their ids, and what the leaf was after each."""

    ids: list[int] = field(default_factory=list)
    leaves: list[int | None] = field(default_factory=list)

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, int):
            return False
        place = bisect_left(self.ids, identity)
        return place < len(self.ids) and self.ids[place] == identity

    def leaf_before(self, identity: int) -> int | None:
        place = bisect_left(self.ids, identity)
        return self.leaves[place - 1] if place else None

    def add(self, entry: Entry) -> None:
        leaf = leaf_after(entry, self.leaves[-1] if self.leaves else None, self)
        self.ids.append(entry.id)
        self.leaves.append(leaf)


def _decode(lines: list[_Line]) -> list[Finding]:
    """Fill in each line's entry; what is wrong comes back."""
    broken: list[Finding] = []
    chain = _Chain()
    for line in lines:
        try:
            entry, until = decode_entry(line.content)
            if chain.ids and entry.id <= chain.ids[-1]:
                raise BadLine(f"its id {entry.id} does not follow {chain.ids[-1]}")
        except BadLine as problem:
            broken.append(Finding(line.number, line.offset, str(problem), line.content))
            continue
        if entry.parent is not None and entry.parent not in chain:
            parent = chain.leaf_before(entry.parent)
            where = "the root" if parent is None else f"entry {parent}"
            problem_text = f"its parent {entry.parent} is missing; it hangs on {where} now"
            broken.append(Finding(line.number, line.offset, problem_text))
            entry = replace(entry, parent=parent)
        line.entry, line.until = entry, until
        chain.add(entry)
    return broken


def _torn(lines: list[_Line]) -> _Line | None:
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
