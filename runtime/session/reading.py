"""From the bytes of a session file to its entries, whatever happened to the file.

Pure: bytes in, `Reading` out; what must be done about the file (cut a torn tail, copy a broken line aside) is
said, not done. Laws:
- Every readable line is kept, whatever stands beside it.
- A tail without newline that is a whole entry is an entry (an editor took the newline); any other is torn.
- A batch is all or nothing: one whose last line never came is torn, from its first line on.
- A broken line is left where it is and reported with its number and offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .codec import BadLine, decode_entry, decode_header
from .entries import Entry, Header


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
    entry: Entry | None = None
    until: int | None = None


def read_session(data: bytes) -> Reading:
    """Read a whole session file. Raises `BadLine` when there is no usable header."""
    lines = _split(data)
    if not lines:
        raise BadLine("the file is empty")
    header = decode_header(lines[0].content)
    unterminated = not data.endswith(b"\n")
    broken = _decode(lines[1:])
    torn = _torn(lines[1:], unterminated)
    end = len(data) if torn is None else torn.offset
    entries = tuple(line.entry for line in lines if line.entry is not None and line.offset < end)
    kept = tuple(finding for finding in broken if finding.offset < end)
    if torn is None:
        return Reading(header, entries, kept, None, end, unterminated)
    finding = Finding(torn.number, end, "the file ends in the middle of a write", data[end:])
    return Reading(header, entries, kept, finding, end, unterminated=False)


def _split(data: bytes) -> list[_Line]:
    lines: list[_Line] = []
    offset = 0
    for number, content in enumerate(data.split(b"\n"), start=1):
        if content.strip(b" \t\r"):
            lines.append(_Line(number, offset, content))
        offset += len(content) + 1
    return lines


def _decode(lines: list[_Line]) -> list[Finding]:
    """Fill in each line's entry; what is wrong comes back."""
    broken: list[Finding] = []
    known: list[int] = []
    identities: set[int] = set()
    for line in lines:
        try:
            entry, line.until = decode_entry(line.content)
        except BadLine as problem:
            broken.append(Finding(line.number, line.offset, str(problem), line.content))
            continue
        if known and entry.id <= known[-1]:
            problem_text = f"its id {entry.id} does not follow {known[-1]}"
            broken.append(Finding(line.number, line.offset, problem_text, line.content))
            continue
        if entry.parent is not None and entry.parent not in identities:
            nearest = known[-1] if known else None
            problem_text = f"its parent {entry.parent} is missing; it hangs on {nearest or 'the root'} now"
            broken.append(Finding(line.number, line.offset, problem_text))
            entry = replace(entry, parent=nearest)
        line.entry = entry
        known.append(entry.id)
        identities.add(entry.id)
    return broken


def _torn(lines: list[_Line], unterminated: bool) -> _Line | None:
    """The first line of what was being written when the writer died, if it did not finish."""
    if not lines:
        return None
    last = lines[-1]
    if last.entry is None:
        if not unterminated:
            return None
        return _batch_start(lines, len(lines) - 1, _until_before(lines))
    if last.until is not None and last.until > last.entry.id:
        return _batch_start(lines, len(lines), last.until)
    return None


def _until_before(lines: list[_Line]) -> int | None:
    return lines[-2].until if len(lines) > 1 else None


def _batch_start(lines: list[_Line], end: int, until: int | None) -> _Line:
    start = end
    while until is not None and start > 0 and lines[start - 1].until == until:
        start -= 1
    return lines[min(start, len(lines) - 1)]
