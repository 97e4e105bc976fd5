"""Erases for good what was redacted: the one place where a session's file gives way to another.

Synchronous on purpose: call it in a thread. Laws:
- The new file is written beside the old one, synced, read back and compared with it entry by entry before it takes its
  place: at every moment the old or the new one stands there, whole.
- Nobody else writes the session meanwhile, and nothing that was acknowledged is lost, but what was redacted.
- What cannot be erased is told: copies that another program, the file system or a backup made are beyond reach.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from ...errors import SessionError
from ..format.blobs import FolderBlobs, StoredFile
from ..format.codec import BadLine
from ..format.located import read_unopened
from ..format.reading import Reading
from ..typed import NAME, forget_typed
from ..writing.locking import lock, unlock
from ..writing.recovery import recover
from .erasure import Erased, erase, redacted_in
from .gc import HOUR, is_being_made, take_names, unnamed
from .leftovers import still_holding
from .unharmed import harm
from .verify import is_locked


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased in a session, or would be (a dry run). `redacted`: how many entries are.

    `entries` said something that is gone now, `derived` held something made from it (heads, edits, labels, summaries).
    `dropped` are lines that could not be read and are gone, `removed` the files that went: side files and blobs.
    `problems` is what was not erased, and where it still stands. `texts` is what was erased, for whoever looks for it.
    """

    path: Path
    redacted: int = 0
    entries: tuple[int, ...] = ()
    derived: tuple[int, ...] = ()
    dropped: tuple[str, ...] = ()
    removed: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)


def erase_redacted(path: Path, blobs: FolderBlobs, *, now: float, dry_run: bool = False) -> Erasure:
    """Erase from the session file `path` what was redacted in it; `now` in seconds since 1970.

    The folder above that of `blobs` is searched for what is left of it. A session without redactions is left as it
    is. Raises `SessionError` (nothing was changed, unless it says so) and `SessionLocked`.
    """
    facts = _require_file(path)
    if dry_run:
        return _erase(path, blobs, facts, now, dry_run)
    held = lock(path)
    try:
        recover(path)
        return _erase(path, blobs, facts, now, dry_run)
    finally:
        unlock(held, path)


def erase_all(folder: Path, blobs: FolderBlobs, *, now: float, dry_run: bool = False) -> Iterator[Erasure]:
    """Erase what was redacted in every session under `folder` (`sessions/`); what cannot be is told as a problem."""
    for path in sorted(folder.glob("*/*.jsonl")):
        try:
            erasure = erase_redacted(path, blobs, now=now, dry_run=dry_run)
        except SessionError as error:
            yield Erasure(path, problems=(str(error),))
        else:
            if erasure.redacted:
                yield erasure


def _erase(path: Path, blobs: FolderBlobs, facts: os.stat_result, now: float, dry_run: bool) -> Erasure:
    try:
        data = path.read_bytes()
        reading = read_unopened(data)
    except OSError as error:
        raise SessionError(f"cannot read the session {path}: {error.strerror or error}") from error
    except BadLine as problem:
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}. It was left as it is") from None
    redacted = redacted_in(reading.entries)
    if not redacted:
        return Erasure(path)
    erased = erase(data, reading, _iso(now))
    side = _side_files(path)
    problems = list(erased.problems)
    if facts.st_nlink > 1:
        problems.append(f"{path} has {facts.st_nlink} names (hard links): under the others the old file stays")
    if not dry_run:
        if erased.data != data:
            _replace(path, reading, erased)
        _remove(path.parent, side, problems)
    gone = _remove_blobs(path, erased.data, side, blobs, now, problems, dry_run)
    if not dry_run and erased.data != data:
        state = blobs.folder.parent
        _forget(state, erased, problems)
        problems.extend(still_holding(state, erased.texts))
    return Erasure(
        path,
        len(redacted),
        erased.entries,
        erased.derived,
        erased.dropped,
        (*side, *gone),
        tuple(problems),
        erased.texts,
    )


def _iso(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _require_file(path: Path) -> os.stat_result:
    try:
        facts = path.lstat()
    except OSError as error:
        raise SessionError(f"the session file {path} cannot be reached: {error.strerror}") from error
    if stat.S_ISLNK(facts.st_mode):
        target = path.readlink()
        raise SessionError(f"the session file {path} is a link to {target}: what was redacted is to be erased there")
    if not stat.S_ISREG(facts.st_mode):
        raise SessionError(f"the session file {path} is not a file")
    return facts


def _replace(path: Path, before: Reading, erased: Erased) -> None:
    """Put the new file in the place of the old one. Raises `SessionError`; then the old one stands there."""
    fresh = path.with_name(f"{path.name}.erasing-{uuid4().hex}")
    try:
        _write(fresh, erased.data, stat.S_IMODE(path.stat().st_mode))
        wrong = harm(before, read_unopened(fresh.read_bytes()), {*erased.entries, *erased.derived})
        if wrong is not None:
            raise SessionError(f"cannot erase in {path}: {wrong}. That is a fault in Moonwake; nothing was changed")
        fresh.rename(path)
        _sync_folder(path.parent)
    except (OSError, BadLine) as error:
        raise SessionError(f"cannot write the session {path} anew: {error}. The old file stands as it was") from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _write(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _side_files(path: Path) -> tuple[Path, ...]:
    """What was kept of damaged lines, or left by processes that died: it may hold what was redacted."""
    kinds = tuple(path.name + kind for kind in (".torn-", ".broken-", ".erasing-"))
    beside = sorted(path.parent.glob("*.jsonl.*"))
    unfinished = (each for each in beside if each.name.startswith(path.name) and each.suffix == ".new")
    return (*(each for each in beside if each.name.startswith(kinds)), *unfinished)


def _remove(folder: Path, files: Iterable[Path], problems: list[str]) -> None:
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{file} cannot be removed: {error.strerror}")
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _forget(state: Path, erased: Erased, problems: list[str]) -> None:
    """Take what was erased out of what was made from the sessions, and of what was typed."""
    from ..index.schema import Refused, throw_away  # with SQLite, which nothing else here needs

    try:
        throw_away(state / "index.sqlite")  # whoever lists next makes it again; rows that went leave traces in it
    except Refused as refused:
        problems.append(f"{state / 'index.sqlite'} may still hold it: it cannot be removed ({refused.reason})")
    try:
        forget_typed(state / NAME, erased.texts)
    except OSError as error:
        problems.append(f"{state / NAME} may still hold it: {error.strerror or error}")


def _remove_blobs(
    path: Path, data: bytes, side: Collection[Path], blobs: FolderBlobs, now: float, problems: list[str], dry_run: bool
) -> list[Path]:
    """Remove every blob that no session names, once `data` is what stands at `path`; also young ones, where no other
    session is open: a writer has a session open from before it puts a blob until after it has named it. So that is
    asked between listing blobs and reading sessions."""
    state = blobs.folder.parent
    try:
        stored = list(blobs.stored())
        writing, making = _is_anybody_writing(path, now), is_being_made(path.parent.parent)
        left, unreadable = unnamed(state, {each.blob for each in stored if each.blob is not None}, {path, *side})
        take_names(data, left)
        if unreadable:
            problems.extend(unreadable)
            problems.append("every blob was kept: what could not be read may need it")
            return []
        found = [each for each in stored if each.blob is None or each.blob in left]
        if not found:
            return []
        with contextlib.nullcontext() if dry_run else blobs.closed():
            gone, young = _old_enough(found, now, writing or _is_anybody_writing(path, now))
            gone, young = ([], found) if making else (gone, young)
            problems.extend(
                f"the blob {each.path.name} was kept, as another session is being made, or is open and the blob is "
                "young. Close that, and do this again"
                for each in young
            )
            return [each.path for each in gone if dry_run or blobs.remove(each)]
    except OSError as error:
        problems.append(f"blobs were kept: {error}")
        return []


def _old_enough(found: list[StoredFile], now: float, writing: bool) -> tuple[list[StoredFile], list[StoredFile]]:
    """Those that nobody can be about to name, and the others; `writing`: somebody has another session open."""
    if not writing:
        return found, []
    gone = [each for each in found if now - each.changed > HOUR]
    return gone, [each for each in found if now - each.changed <= HOUR]


def _is_anybody_writing(path: Path, now: float) -> bool:
    """Whether a session other than `path` is open, or being made or imported."""
    sessions = path.parent.parent
    for lock_file in sessions.glob("*/*.jsonl.lock"):
        session = lock_file.with_name(lock_file.name.removesuffix(".lock"))
        if session != path and is_locked(session):
            return True
    return any(now - fresh.stat().st_mtime < HOUR for fresh in sessions.glob("*/*.new"))
