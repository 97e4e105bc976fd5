"""What changed in a session file since it was read, with as little reading as is sound.

Synchronous. Laws: a file that only grew is read from where the last reading ended, if what stands before that is what
was read; anything else is read whole. A stamp that is younger than the clock of a file system can tell apart is not
`settled`: the file is looked at again, although its stamp stays the same.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

from ...errors import SessionError
from ..entries import Header
from ..format.blobs import BlobStore
from ..format.codec import BadLine
from ..format.reading import read_session
from ..names import file_name
from .indexing import Facts, Said, go_on, new_entries, read_facts

Stamp: TypeAlias = tuple[int, int, int, int]  # inode, size, mtime_ns, ctime_ns

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_UNSETTLED = 100_000_000  # ns; kernels and file systems keep times in steps of up to some 10 ms
_TAIL = 4_096  # bytes before the end of the last reading that must still be the same
_SMALL = 2**20  # bytes up to which all of them must be: checking them takes a millisecond
NOBODY = Header(id="", agent="", created="")
_MOST = 2**63  # inode numbers may be larger, SQLite's integers may not


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a file was read: up to `offset`; `check` and `tail` are the CRC-32 of all bytes and of the last ones
    before it. `whole`: whatever comes next, the file must be read from its beginning."""

    stamp: Stamp
    settled: bool
    offset: int = 0
    check: int = 0
    tail: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file as the index knows it. `skipped` says why it is no session; then `header` and `facts` mean nothing."""

    mark: Mark
    header: Header = NOBODY
    facts: Facts
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is now. `said` is all of it when `anew`, otherwise what was said since."""

    seen: Seen
    said: tuple[Said, ...] = ()
    anew: bool = True


def stamp_of(facts: os.stat_result) -> Stamp:
    return (facts.st_ino % _MOST, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def look_of(stamp: Stamp) -> int:
    """A stamp as one number of 64 bits, which another process may find different: then the file is looked at again."""
    return hash(stamp)


def look_at(facts: os.stat_result) -> int:
    """`look_of` the stamp of a file, quickly: it is asked of every file there is."""
    return hash((facts.st_ino % _MOST, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))


def is_settled(stamp: Stamp, now: int) -> bool:
    """Whether a later change would give another stamp. `now` is the time of the stamp (nanoseconds since 1970)."""
    return now - stamp[3] > _UNSETTLED and not 0 <= now - stamp[2] <= _UNSETTLED


def follow(
    path: Path, before: Seen | None, blobs: BlobStore | None = None, clock: Callable[[], int] = time.time_ns
) -> Change | None:
    """The file at `path` as it is now, when `before` is what was known; None when there is none."""
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _skipped(_why(error), _lstat(path), settled=False)
    try:
        facts = os.fstat(descriptor)
        stamp = stamp_of(facts)
        if not stat.S_ISREG(facts.st_mode):
            return _skipped("folder" if stat.S_ISDIR(facts.st_mode) else "no file", stamp)
        mark = Mark(stamp=stamp, settled=is_settled(stamp, clock()))
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            known = before if before is not None and before.skipped is None else None
            return (known and _more(file, known, mark, blobs)) or _all(file, path, mark, blobs)
    except OSError:  # of a disk that fails
        return _skipped("unreadable", _lstat(path), settled=False)
    finally:
        os.close(descriptor)


def _more(file: io.FileIO, before: Seen, mark: Mark, blobs: BlobStore | None) -> Change | None:
    """The change if the file is the same as before or only grew; None when only reading it whole can tell."""
    old = before.mark
    if old.whole or mark.stamp[0] != old.stamp[0] or mark.stamp[1] < old.offset:
        return None
    checked = old.offset if old.offset <= _SMALL or mark.stamp[1] == old.offset else _TAIL
    file.seek(old.offset - checked)
    read = _read(file, checked + mark.stamp[1] - old.offset)
    known, new = read[:checked], read[checked:]
    if len(read) != checked + mark.stamp[1] - old.offset:
        return None
    if crc32(known) != (old.check if checked == old.offset else old.tail):
        return None
    entries = new_entries(new, blobs)
    went_on = None if entries is None else go_on(before.header, before.facts, entries)
    if went_on is None:
        return None
    facts, said = went_on
    place = _mark(mark, old.offset + len(new), crc32(new, old.check), read[-_TAIL:])
    return Change(Seen(mark=place, header=before.header, facts=facts), said, anew=False)


def _all(file: io.FileIO, path: Path, mark: Mark, blobs: BlobStore | None) -> Change:
    file.seek(0)
    data = _read(file, mark.stamp[1])
    try:
        reading = read_session(data, blobs)
        if file_name(reading.header.id) != path.stem or file_name(reading.header.agent) != path.parent.name:
            return _skipped("copy", mark.stamp, settled=mark.settled)
    except (BadLine, SessionError):
        return _skipped("other format", mark.stamp, settled=mark.settled)
    facts, said = read_facts(reading.header, reading.entries)
    good = data[: reading.good_length]
    place = _mark(mark, len(good), crc32(good), good[-_TAIL:], whole=reading.unterminated)
    return Change(Seen(mark=place, header=reading.header, facts=facts), said)


def _mark(mark: Mark, offset: int, check: int, end: bytes, *, whole: bool = False) -> Mark:
    return Mark(stamp=mark.stamp, settled=mark.settled, offset=offset, check=check, tail=crc32(end), whole=whole)


def _skipped(why: str, stamp: Stamp, *, settled: bool = True) -> Change:
    return Change(Seen(mark=Mark(stamp=stamp, settled=settled), facts=Facts(), skipped=why))


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "link"
    return "no file" if error.errno in (errno.ENXIO, errno.EOPNOTSUPP) else "unreadable"


def _lstat(path: Path) -> Stamp:
    try:
        return stamp_of(path.lstat())
    except OSError:
        return (0, 0, 0, 0)


def _read(file: io.FileIO, length: int) -> bytes:
    """Up to `length` bytes: what was written after the file's stamp was taken is for the next time."""
    pieces = []
    while length > 0 and (piece := file.read(length)):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
