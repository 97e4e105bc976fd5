"""Removes what no session needs: blobs that nobody names, and what processes that died left behind.

Synchronous on purpose: call it in a thread. It may run while sessions are open. Laws:
- A blob is needed as long as its name stands anywhere in the state folder: in any line of any session of any agent,
  broken ones and side files too. As long as some session cannot be read, every blob is needed.
- A young file is needed: whoever puts a blob names it soon after. Putting it again makes it young. While a session is
  being made (forked, imported), every blob is needed: it names them all at its end.
- What is removed is looked at once more at that moment, while no writer can put or open it.
- A dry run finds the same and touches nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...errors import SessionError
from ..format.blobs import FolderBlobs, StoredFile
from ..format.codec import BadLine
from ..format.reading import read_header
from ..writing.locking import lock, unlock
from .verify import is_locked

HOUR = 3_600.0
DAY = 24 * HOUR
_HEX_RUN = re.compile(rb"[0-9a-f]{64,}")
_ESCAPE = re.compile(rb"\\u00([0-9a-fA-F]{2})")
_CHUNK = 8 * 2**20
_OVERLAP = 64 * len(rb"\u0061")  # a name that stands across two chunks, even if every letter is escaped
_MIRRORS = ("index.sqlite",)  # what is made from the sessions needs nothing


@dataclass(frozen=True, slots=True)
class Garbage:
    """A file that nobody needs: why, and its size in bytes."""

    path: Path
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What went (or would go, in a dry run), and what could not be judged or removed."""

    removed: tuple[Garbage, ...]
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(each.size for each in self.removed)


def collect_garbage(state: Path, *, now: float, dry_run: bool = False, anyway: bool = False) -> Collected:
    """Remove what no session under the folder `state` needs; `now` in seconds since 1970.

    While a session cannot be read, no blob is removed, unless `anyway`. Raises nothing: what failed is told.
    """
    removed: list[Garbage] = []
    problems: list[str] = []
    for garbage in _left_behind(state / "sessions", now):
        problem = _looked_at(garbage) if dry_run else _remove_side_file(garbage)
        if problem is None:
            removed.append(garbage)
        else:
            problems.append(problem)
    try:
        removed.extend(_blobs(state, now, dry_run, anyway, problems))
    except OSError as error:
        problems.append(f"the blobs were left alone: {error}")
    return Collected(tuple(removed), tuple(problems))


def unnamed(state: Path, names: Iterable[str], besides: Collection[Path] = ()) -> tuple[set[str], list[str]]:
    """Those of the blobs `names` that no file in the state folder names, and which files could not be read.

    What the files `besides` name does not count.
    """
    left = set(names)
    problems: list[str] = []
    if left:
        for path in files_of(state, problems):
            if path not in besides:
                _take_named(path, left, problems)
    return left, problems


def chunks(file: BinaryIO, overlap: int) -> Iterator[bytes]:
    """A file piece by piece; each begins with the last `overlap` bytes of the one before."""
    tail = b""
    while chunk := file.read(_CHUNK):
        yield tail + chunk
        tail = (tail + chunk)[-overlap:]


def is_being_made(sessions: Path) -> bool:
    """Whether somebody holds the lock of a session that is not there yet.

    Ask after blobs are listed and before sessions are read: who began later makes the blobs young that it needs, and
    what was finished before is read.
    """
    locks = _inside(sessions, "*/*.jsonl.lock")
    return any(not os.path.lexists(_session_of(path)) and is_locked(_session_of(path)) for path in locks)


def _blobs(state: Path, now: float, dry_run: bool, anyway: bool, problems: list[str]) -> Iterator[Garbage]:
    """Remove the blobs that nobody names, and give them. Raises `OSError`."""
    blobs = FolderBlobs(state / "blobs")
    old = [stored for stored in blobs.stored() if now - stored.changed > HOUR]  # before the sessions are read
    if old and is_being_made(state / "sessions"):
        problems.append("all blobs were kept: a session is just being made and may name them. Do this again later")
        return
    left, unreadable = unnamed(state, {stored.blob for stored in old if stored.blob is not None})
    problems.extend(unreadable)
    if unreadable and not anyway:
        if left:
            problems.append(f"{len(left)} blobs may be needed by what could not be read, so all were kept")
        left = set()
    found = [stored for stored in old if stored.blob is None or stored.blob in left]
    if not found or dry_run:
        yield from map(_as_garbage, found)
        return
    with blobs.closed():
        for stored in found:
            if blobs.remove(stored):
                yield _as_garbage(stored)


def _as_garbage(stored: StoredFile) -> Garbage:
    if stored.blob is None:
        why = "a blob that was never finished"
    elif stored.path.name != stored.blob:
        why = "a damaged blob that no session names"
    else:
        why = "a blob that no session names"
    return Garbage(stored.path, stored.size, why)


def _left_behind(sessions: Path, now: float) -> Iterator[Garbage]:
    """What processes that died left beside the sessions."""
    for path in (*_inside(sessions, "*/*.jsonl.*"), *_inside(sessions.parent, "input_history.erasing-*")):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            age = now - facts.st_mtime
            kind = path.name.rsplit(".", 1)[1]
            if (kind == "new" or kind.startswith("new-")) and age > DAY:
                yield Garbage(path, facts.st_size, "a session that was never finished being made")
            elif kind.startswith("erasing-") and age > HOUR:
                yield Garbage(path, facts.st_size, "a file that was never finished being written anew")
            elif kind == "lock" and age > HOUR and not os.path.lexists(_session_of(path)):
                yield Garbage(path, facts.st_size, "the lock of a session that is not there")


def _session_of(side: Path) -> Path:
    return side.with_name(side.name.rsplit(".", 1)[0])


def _looked_at(garbage: Garbage) -> str | None:
    """Why it would not be removed, if not."""
    session = _session_of(garbage.path)
    return f"{garbage.path} was kept: the session {session.stem} is open" if is_locked(session) else None


def _remove_side_file(garbage: Garbage) -> str | None:
    """Remove it, under its session's lock where it has one; why not, if not."""
    session = _session_of(garbage.path)
    if session.suffix != ".jsonl":
        return _unlinked(garbage.path)
    try:
        held = lock(session)
    except SessionError as error:
        return f"{garbage.path} was kept: {error}"
    try:
        # its own lock goes when it is given up
        return None if garbage.path == Path(held.lock_file) else _unlinked(garbage.path)
    finally:
        unlock(held, session)


def _unlinked(path: Path) -> str | None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path} cannot be removed: {error.strerror or error}"
    return None


def files_of(state: Path, problems: list[str], *, everything: bool = False) -> Iterator[Path]:
    """Every file that may name a blob, or really every one. Links to files and folders that stand among the sessions
    are followed, as those who read sessions do. `problems` gets what cannot be read."""

    def told(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    linked = [path for path in _inside(state / "sessions", "*") if path.is_symlink() and path.is_dir()]
    for top in (state, *linked):
        for folder, folders, files in os.walk(top, onerror=told):
            at_top = Path(folder) == state and not everything
            folders[:] = [name for name in folders if not (at_top and name == "blobs")]
            for name in files:
                if not name.endswith(".lock") and not (at_top and name.startswith(_MIRRORS)):
                    yield Path(folder, name)


def _inside(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


def _take_named(path: Path, left: set[str], problems: list[str]) -> None:
    """Take from `left` the names that stand in the file at `path`."""
    is_session = path.suffix == ".jsonl"
    try:
        if not path.is_file():
            if is_session and path.is_symlink():
                problems.append(f"{path} leads nowhere")
            return
        with path.open("rb") as file:
            for number, chunk in enumerate(chunks(file, _OVERLAP)):
                if is_session and number == 0:
                    problems.extend(_not_ours(path, chunk))
                take_names(chunk, left)
    except FileNotFoundError:
        return  # it went while we looked: then it names nothing
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror or error}")


def _not_ours(path: Path, start: bytes) -> Iterator[str]:
    """Why the file may name blobs in a way that is not known here."""
    try:
        read_header(start)
    except BadLine as problem:
        yield f"{path} is no session that this Moonwake can read: {problem}"


def take_names(data: bytes, left: set[str]) -> None:
    """Take from `left` the names that stand in `data`, in plain letters or escaped."""
    if b"\\u00" in data:
        data = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data)
    for run in _HEX_RUN.findall(data):
        if len(run) > 1_000:  # a dump of some file
            left.difference_update([name for name in left if name.encode() in run])
        else:
            left.difference_update(run[place : place + 64].decode() for place in range(len(run) - 63))
