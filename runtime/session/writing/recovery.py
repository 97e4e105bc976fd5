"""Redoing from the journals of dead processes what a power loss took from session files.

Laws: a journal whose owner lives is left alone; a journal goes when each file that it tells of holds its bytes and was
synced; a file that was replaced or removed since is left alone. Blocks: call it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import SessionError, SessionLocked
from .disk import REAL_DISK, Disk
from .journal import SUFFIX, JournalRecord, decode_records, journal_folder
from .locking import lock, unlock

_PATIENCE = 30.0  # seconds for another process that recovers; a journal has a few megabytes


def recover(session: Path, disk: Disk = REAL_DISK) -> None:
    """Bring the file `session`, whose lock the caller holds, up to what the journals of dead processes say.

    Other sessions that those tell of are recovered too, where nobody has them open. Raises `SessionError`.
    """
    folder = journal_folder(session)
    if not _journals(folder):
        return
    try:
        with FileLock(folder / "recovery.lock", thread_local=False, timeout=_PATIENCE):
            for journal in _journals(folder):
                _recover_from(journal, session, disk)
    except Timeout:
        raise SessionError(
            f"another process has been recovering sessions in {folder.parent} for {_PATIENCE:.0f} seconds. "
            "Wait for it, or end it"
        ) from None
    except OSError as error:
        raise SessionError(
            f"cannot recover the session {session} from {folder}: {error.strerror or error}. Both were left as they are"
        ) from error


def _journals(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def _recover_from(journal: Path, session: Path, disk: Disk) -> None:
    try:
        held = lock(journal)
    except SessionLocked:
        return  # its owner lives, and has the files that it tells of open or synced
    try:
        if journal.is_file() and _redo_all(journal, session, disk):
            journal.unlink()
    finally:
        unlock(held, journal)


def _redo_all(journal: Path, session: Path, disk: Disk) -> bool:
    """Whether nothing is left that needs the journal."""
    root = journal.parent.parent
    by_path: dict[Path, list[JournalRecord]] = {}
    for record in decode_records(journal.read_bytes()):
        path = Path(os.path.normpath(root / record.path))
        if path.is_relative_to(root):  # a journal that was tampered with could name any file
            by_path.setdefault(path, []).append(record)
    finished = True
    for path, records in by_path.items():
        if path == Path(os.path.abspath(session)):  # noqa: PTH100 - as in `journal_folder`
            _redo(path, records, disk)
        elif path.is_file():
            finished = _redo_other(path, records, disk) and finished
    return finished


def _redo_other(path: Path, records: Sequence[JournalRecord], disk: Disk) -> bool:
    try:
        held = lock(path)
    except SessionError:
        return False  # who has it open recovers it
    try:
        _redo(path, records, disk)
    except OSError:
        return False  # said to whoever opens that session
    finally:
        unlock(held, path)
    return True


def _redo(path: Path, records: Sequence[JournalRecord], disk: Disk) -> None:
    """Write what `path` lacks of `records`, and sync it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for record in records:
            if os.fstat(descriptor).st_ino == record.inode:
                _redo_one(descriptor, record)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)


def _redo_one(descriptor: int, record: JournalRecord) -> None:
    if os.pread(descriptor, len(record.data), record.offset) == record.data:
        return
    size = os.fstat(descriptor).st_size
    if size < record.offset:
        raise OSError(f"it has {size:,} bytes, and the next that the journal holds begin at {record.offset:,}")
    written = os.pwrite(descriptor, record.data, record.offset)
    if written != len(record.data):
        raise OSError(f"only {written:,} of {len(record.data):,} bytes were written")
