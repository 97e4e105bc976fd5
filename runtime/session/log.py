"""The session file: append-only, one writer, every batch one write and one fdatasync.

Synchronous on purpose: `session.py` calls it from a worker thread. Laws:
- When `append` returns, the batch is on disk. When it raises, the file is as long as before.
- Opening moves a torn tail to a file beside the log and copies broken lines beside it; it never rewrites.
- One process writes: an OS lock, released when the process dies, however it dies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import SessionError, SessionLocked
from .codec import BadLine, encode_batch, encode_header
from .entries import Entry, Header
from .reading import Finding, Reading, read_session


@dataclass(slots=True)
class LogFile:
    """An open session file. `length` is what is known to be whole, in bytes."""

    path: Path
    descriptor: int
    length: int
    lock: FileLock

    def append(self, entries: Sequence[Entry]) -> None:
        """Write `entries` as one batch and wait for the disk. Raises `SessionError`; nothing is half-written."""
        data = encode_batch(entries)
        try:
            written = os.write(self.descriptor, data)
            if written != len(data):
                raise OSError(f"only {written:,} of {len(data):,} bytes were written")
            os.fdatasync(self.descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self.descriptor, self.length)
            raise SessionError(
                f"cannot write to the session {self.path}: {error.strerror or error}. Free some space or make the "
                "folder writable; what was recorded before is safe"
            ) from error
        self.length += len(data)

    def close(self) -> None:
        os.close(self.descriptor)
        self.lock.release()


def create_log(path: Path, header: Header) -> LogFile:
    """A new session file with `header`. Raises `SessionError` when it exists or cannot be made."""
    lock = _lock(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        lock.release()
        raise SessionError(f"cannot create the session {path}: {error.strerror}") from error
    data = encode_header(header)
    log = LogFile(path, descriptor, 0, lock)
    try:
        os.write(descriptor, data)
        os.fdatasync(descriptor)
        _sync_folder(path.parent)
    except OSError as error:
        log.close()
        raise SessionError(f"cannot write to the session {path}: {error.strerror}") from error
    log.length = len(data)
    return log


def open_log(path: Path) -> tuple[LogFile, Reading]:
    """Open a session file for writing and read it. Raises `SessionError` or `SessionLocked`."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise SessionError(f"the session file {path} {what}")
    lock = _lock(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        lock.release()
        raise SessionError(f"cannot open the session {path}: {error.strerror}") from error
    log = LogFile(path, descriptor, 0, lock)
    try:
        reading = read_session(path.read_bytes())
        _settle(log, reading)
    except BadLine as problem:
        log.close()
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}. It was left as it is") from None
    except OSError as error:
        log.close()
        raise SessionError(f"cannot read the session {path}: {error.strerror}") from error
    return log, reading


def read_log(path: Path) -> Reading:
    """Read a session file without changing or locking it. Raises `SessionError`."""
    try:
        return read_session(path.read_bytes())
    except OSError as error:
        raise SessionError(f"cannot read the session {path}: {error.strerror}") from error
    except BadLine as problem:
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}") from None


def _settle(log: LogFile, reading: Reading) -> None:
    """Do what the reading asks for: keep broken lines beside the file, move a torn tail there."""
    for finding in reading.broken:
        if finding.content:
            _keep_beside(log.path, "broken", finding)
    if reading.torn is not None:
        _keep_beside(log.path, "torn", reading.torn)
        os.ftruncate(log.descriptor, reading.good_length)
        os.fdatasync(log.descriptor)
    log.length = reading.good_length
    if reading.unterminated:
        os.write(log.descriptor, b"\n")
        os.fdatasync(log.descriptor)
        log.length += 1


def _keep_beside(path: Path, kind: str, finding: Finding) -> None:
    """Copy a line beside the file, once: the name holds its offset, so a second opening finds it there."""
    side = path.with_name(f"{path.name}.{kind}-{finding.offset}")
    number = 1
    while side.exists():
        if side.read_bytes() == finding.content:
            return
        number += 1
        side = path.with_name(f"{path.name}.{kind}-{finding.offset}-{number}")
    side.write_bytes(finding.content)


def _lock(path: Path) -> FileLock:
    name = path.with_name(path.name + ".lock")
    lock = FileLock(name, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SessionLocked(
            f"the session {path.stem} is open in another process. Close it there, or start another session"
        ) from None
    except OSError as error:
        raise SessionError(f"cannot lock the session {path}: {error.strerror}") from error
    return lock


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
