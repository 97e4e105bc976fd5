"""Making and opening session files.

Synchronous on purpose, as `log.py` is. Laws:
- A file of that name has a whole header from its first moment on.
- Opening moves a torn tail to a file beside the log and copies broken lines beside it; it never rewrites.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..errors import SessionError
from .codec import BadLine, encode_header
from .entries import Header
from .locking import lock, unlock
from .log import REAL_DISK, Disk, LogFile
from .reading import Finding, Reading, read_session
from .recovery import recover


def create_log(path: Path, header: Header, disk: Disk = REAL_DISK) -> LogFile:
    """A new session file with `header`. Raises `SessionError` when it exists or cannot be made, `SessionLocked`."""
    held = lock(path)
    try:
        if os.path.lexists(path):
            raise FileExistsError(None, "it exists already")
        length = _put_header(path, encode_header(header), disk)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        unlock(held, path)
        raise SessionError(f"cannot create the session {path}: {error.strerror or error}") from error
    return LogFile(path, descriptor, length, held, disk, synced=length)


def open_log(path: Path, disk: Disk = REAL_DISK) -> tuple[LogFile, Reading]:
    """Open a session file for writing and read it. Raises `SessionError` or `SessionLocked`."""
    _require_file(path)
    held = lock(path)
    try:
        recover(path, disk)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except SessionError:
        unlock(held, path)
        raise
    except OSError as error:
        unlock(held, path)
        raise SessionError(f"cannot open the session {path}: {error.strerror}") from error
    log = LogFile(path, descriptor, 0, held, disk)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            reading = read_session(file.read())
        settle(log, reading)
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


def settle(log: LogFile, reading: Reading) -> None:
    """Keep the broken lines of `reading` beside the file, move a torn tail there. Raises `OSError`."""
    for finding in reading.broken:
        if finding.content:
            _keep_beside(log.path, "broken", finding)
    log.length = reading.good_length
    if reading.torn is not None:
        _keep_beside(log.path, "torn", reading.torn)
        log.disk.cut(log.descriptor, log.length)
        log.disk.sync(log.descriptor)
    if reading.unterminated:
        log.write(b"\n")
        log.length += 1


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


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
