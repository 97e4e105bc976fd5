"""The session file: append-only, one writer, every batch one write and one fdatasync.

Synchronous on purpose: `session.py` calls it from a worker thread. Laws:
- When `append` returns, the batch is on disk, and what it returns is what the file holds.
- When it raises, the file is as long as before; where even that fails, nothing is written until it is.
- A file of that name has a whole header from its first moment on.
- Opening moves a torn tail to a file beside the log and copies broken lines beside it; it never rewrites.
- One process writes: an OS lock, released when the process dies, however it dies. A lock's file goes with a session
  that nobody spoke in; whoever locks makes sure that the file locked is the one that stands there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from ..errors import SessionError, SessionLocked
from .codec import BadLine, decode_batch, encode_batch, encode_header
from .entries import Entry, Header
from .reading import Finding, Reading, read_session


class Disk(Protocol):
    """What a log asks of the disk; tests hand in one that fails. Each raises `OSError`."""

    def write(self, descriptor: int, data: bytes, /) -> int: ...

    def sync(self, descriptor: int, /) -> None: ...

    def cut(self, descriptor: int, length: int, /) -> None: ...


class _RealDisk:
    write = staticmethod(os.write)
    sync = staticmethod(getattr(os, "fdatasync", os.fsync))  # macOS has no fdatasync
    cut = staticmethod(os.ftruncate)


REAL_DISK: Disk = _RealDisk()

_MOST_TRIES = 20  # to lock a file that others remove just then


@dataclass(slots=True)
class LogFile:
    """An open session file. `length` is what is known to be whole, in bytes; `ragged`: more may stand behind it."""

    path: Path
    descriptor: int
    length: int
    lock: FileLock
    disk: Disk = REAL_DISK
    ragged: bool = False

    def append(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Write `entries` as one batch and wait for the disk; they come back as the file holds them.

        Raises `SessionError` when the disk refuses (nothing is half-written), `ValueError` or `TypeError` for a
        record that could not be read back.
        """
        data = encode_batch(entries)
        kept = decode_batch(data)
        try:
            self.cut_back()
            self.ragged = True
            self._write(data)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.cut_back()
            raise SessionError(
                f"cannot write to the session {self.path}: {error.strerror or error}. Free some space or make the "
                "folder writable; what was recorded before is safe"
            ) from error
        self.ragged = False
        self.length += len(data)
        return kept

    def cut_back(self) -> None:
        """Remove what a failed write left behind. Raises `OSError`."""
        if self.ragged:
            self.disk.cut(self.descriptor, self.length)
            self.ragged = False

    def settle(self, reading: Reading) -> None:
        """Keep the broken lines of `reading` beside the file, move a torn tail there. Raises `OSError`."""
        for finding in reading.broken:
            if finding.content:
                _keep_beside(self.path, "broken", finding)
        self.length = reading.good_length
        if reading.torn is not None:
            _keep_beside(self.path, "torn", reading.torn)
            self.disk.cut(self.descriptor, self.length)
            self.disk.sync(self.descriptor)
        if reading.unterminated:
            self._write(b"\n")
            self.length += 1

    def close(self, *, discard: bool = False) -> None:
        """Give up the file and its lock. `discard` removes a file that holds no entry: nobody said anything in it."""
        try:
            os.close(self.descriptor)
            if discard:
                self.path.unlink(missing_ok=True)
        finally:
            _unlock(self.lock, self.path)

    def _write(self, data: bytes) -> None:
        written = self.disk.write(self.descriptor, data)
        if written != len(data):
            raise OSError(f"only {written:,} of {len(data):,} bytes were written")
        self.disk.sync(self.descriptor)


def create_log(path: Path, header: Header, disk: Disk = REAL_DISK) -> LogFile:
    """A new session file with `header`. Raises `SessionError` when it exists or cannot be made, `SessionLocked`."""
    lock = _lock(path)
    try:
        if os.path.lexists(path):
            raise FileExistsError(None, "it exists already")
        length = _put_header(path, encode_header(header), disk)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        _unlock(lock, path)
        raise SessionError(f"cannot create the session {path}: {error.strerror or error}") from error
    return LogFile(path, descriptor, length, lock, disk)


def open_log(path: Path, disk: Disk = REAL_DISK) -> tuple[LogFile, Reading]:
    """Open a session file for writing and read it. Raises `SessionError` or `SessionLocked`."""
    _require_file(path)
    lock = _lock(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        _unlock(lock, path)
        raise SessionError(f"cannot open the session {path}: {error.strerror}") from error
    log = LogFile(path, descriptor, 0, lock, disk)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            reading = read_session(file.read())
        log.settle(reading)
    except BadLine as problem:
        log.close()
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}. It was left as it is") from None
    except OSError as error:
        log.close()
        raise SessionError(f"cannot open the session {path} for writing: {error.strerror or error}") from error
    return log, reading


def read_log(path: Path) -> Reading:
    """Read a session file without changing or locking it. Raises `SessionError`."""
    _require_file(path)
    try:
        return read_session(path.read_bytes())
    except OSError as error:
        raise SessionError(f"cannot read the session {path}: {error.strerror}") from error
    except BadLine as problem:
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}") from None


def _require_file(path: Path) -> None:
    """Say what stands at `path` when it is no file: opening a pipe, for one, would wait for ever."""
    try:
        if path.is_file():
            return
        what = "is a folder" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
    except OSError as error:
        what = f"cannot be reached: {error.strerror}"
    raise SessionError(f"the session file {path} {what}")


def _put_header(path: Path, data: bytes, disk: Disk) -> int:
    """Make the file under another name and rename it, so that no crash leaves half a header. Its length comes back."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        written = disk.write(descriptor, data)
        if written != len(data):
            raise OSError(f"only {written:,} of {len(data):,} bytes were written")
        disk.sync(descriptor)
        fresh.rename(path)  # the lock is ours: nobody else makes this session
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    finally:
        os.close(descriptor)
    _sync_folder(path.parent)
    return len(data)


def _keep_beside(path: Path, kind: str, finding: Finding) -> None:
    """Copy a line beside the file, once: the name holds its offset, so a second opening finds it there."""
    side = path.with_name(f"{path.name}.{kind}-{finding.offset}")
    number = 1
    while side.exists():
        if side.read_bytes() == finding.content:
            return
        number += 1
        side = path.with_name(f"{path.name}.{kind}-{finding.offset}-{number}")
    with side.open("wb") as file:
        file.write(finding.content)
        file.flush()
        os.fsync(file.fileno())  # a tail is cut off only once its copy is safe


def _lock(path: Path) -> FileLock:
    """The lock of a session. Its file holds the owner's process id, for whoever is refused."""
    name = path.with_name(path.name + ".lock")
    signed: list[bool] = []

    def sign(descriptor: int) -> None:
        signed.append(_sign(descriptor, name))

    try:
        for _ in range(_MOST_TRIES):
            signed.clear()
            lock = FileLock(name, thread_local=False, on_acquired=sign)
            lock.acquire(timeout=0)
            if all(signed):
                return lock
            lock.release()
        raise Timeout(str(name))
    except Timeout:
        raise SessionLocked(
            f"the session {path.stem} is open in {_owner(name)}. Close it there, or start another session"
        ) from None
    except OSError as error:
        raise SessionError(f"cannot lock the session {path}: {error.strerror or error}") from error


def _unlock(lock: FileLock, path: Path) -> None:
    """Give up a lock. Its file goes where there is no session, while the lock is still held: see `_sign`."""
    if not os.path.lexists(path):
        with contextlib.suppress(OSError):  # a stray file harms nobody
            Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def _sign(descriptor: int, name: Path) -> bool:
    """Write the owner into the lock's file. False when that file is no longer the one at `name`.

    Its last owner removed it after we had opened it: a lock on it keeps nobody out.
    """
    try:
        if not os.path.samestat(os.fstat(descriptor), name.stat()):
            return False
    except OSError:
        return False
    with contextlib.suppress(OSError):  # on a full disk the lock still holds, it only names nobody
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return True


def _owner(name: Path) -> str:
    try:
        identity = int(name.read_text())
    except (OSError, ValueError):
        return "another process"
    return "this process already" if identity == os.getpid() else f"another process (id {identity})"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
