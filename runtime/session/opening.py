"""Making, opening and reading session files.

Synchronous on purpose, as `log.py` is. Laws:
- A file of that name has a whole header from its first moment on.
- Opening moves a torn tail to a file beside the log and copies broken lines beside it; it never rewrites.
- A symbolic link that leads out of the folder of sessions is not followed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from ..errors import SessionError
from .entries import Header
from .format.blobs import BlobStore
from .format.codec import BadLine, encode_header
from .format.reading import Finding, Reading, numbered, read_session
from .format.tail import read_from_tail
from .writing.disk import put_file
from .writing.locking import lock, unlock
from .writing.log import REAL_DISK, Disk, LogFile
from .writing.recovery import recover

_OPEN = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def create_log(path: Path, header: Header, disk: Disk = REAL_DISK, blobs: BlobStore | None = None) -> LogFile:
    """A new session file with `header`. Raises `SessionError` when it exists or cannot be made, `SessionLocked`."""
    held = lock(path)
    try:
        if os.path.lexists(path):
            raise FileExistsError(None, "it exists already")
        length = put_file(path, encode_header(header), disk)
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        unlock(held, path)
        raise SessionError(f"cannot create the session {path}: {error.strerror or error}") from error
    return LogFile(path, descriptor, length, held, disk, blobs=blobs, synced=length)


def open_log(
    path: Path, disk: Disk = REAL_DISK, *, blobs: BlobStore | None = None, tail: bool = True
) -> tuple[LogFile, Reading]:
    """Open a session file for writing and read it, from its tail if that is enough to resume and `tail` is true.

    Raises `SessionError` or `SessionLocked`.
    """
    path = _real(path)
    held = lock(path)
    try:
        recover(path, disk)
        descriptor = os.open(path, _OPEN)
    except SessionError:
        unlock(held, path)
        raise
    except OSError as error:
        unlock(held, path)
        raise SessionError(f"cannot open the session {path}: {error.strerror}") from error
    log = LogFile(path, descriptor, 0, held, disk, blobs=blobs)
    try:
        reading = _read(descriptor, blobs, tail)
        settle(log, reading)
    except BadLine as problem:
        log.close()
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}. It was left as it is") from None
    except OSError as error:
        log.close()
        raise SessionError(f"cannot open the session {path} for writing: {error.strerror or error}") from error
    return log, reading


def read_log(path: Path, blobs: BlobStore | None = None) -> Reading:
    """Read a whole session file without changing or locking it. Raises `SessionError`."""
    return _whole(path, blobs)[0]


def read_rest(path: Path, known: tuple[Finding, ...], blobs: BlobStore | None = None) -> Reading:
    """Read the whole of a session that is open, after it was read from its tail.

    `broken` also has what was `known` of it, by line; what is broken further up is copied beside the file. Raises
    `SessionError`.
    """
    reading, data = _whole(path, blobs)
    found = {finding.offset: finding for finding in numbered(sorted(known, key=lambda each: each.offset), data)}
    found.update({finding.offset: finding for finding in reading.broken})
    _keep_broken(path, reading)
    broken = tuple(found[offset] for offset in sorted(found))
    return Reading(reading.header, reading.entries, broken, None, reading.good_length, unterminated=False)


def settle(log: LogFile, reading: Reading) -> None:
    """Keep the broken lines of `reading` beside the file, move a torn tail there. Raises `OSError`."""
    _keep_broken(log.path, reading)
    log.length = reading.good_length
    if reading.torn is not None:
        _keep_beside(log.path, "torn", reading.torn)
        log.disk.cut(log.descriptor, log.length)
        log.disk.sync(log.descriptor)
    if reading.unterminated:
        log.write(b"\n")
        log.length += 1


def _read(descriptor: int, blobs: BlobStore | None, tail: bool) -> Reading:
    size = os.fstat(descriptor).st_size

    def read(offset: int, wanted: int) -> bytes:
        pieces: list[bytes] = []
        while wanted and (piece := os.pread(descriptor, wanted, offset)):
            pieces.append(piece)
            offset, wanted = offset + len(piece), wanted - len(piece)
        return b"".join(pieces)

    with _collector_paused():
        return read_from_tail(read, size, blobs) if tail else read_session(read(0, size), blobs)


def _whole(path: Path, blobs: BlobStore | None) -> tuple[Reading, bytes]:
    try:
        data = _real(path).read_bytes()
        with _collector_paused():
            return read_session(data, blobs), data
    except OSError as error:
        raise SessionError(f"cannot read the session {path}: {error.strerror}") from error
    except BadLine as problem:
        raise SessionError(f"{path} is not a session this Moonwake can read: {problem}") from None


def _real(path: Path) -> Path:
    """The file that `path` means. Says what stands there when it is none: opening a pipe, for one, would wait for ever.

    A link to another session is that session: it has one lock, whatever it is called.
    """
    try:
        if path.is_file():
            folder = path.parent.parent if path.parent.parent.name == "sessions" else path.parent
            real = path.resolve()
            if real.is_relative_to(folder.resolve()):
                return real if path.is_symlink() else path
            what = f"is a symbolic link out of {folder}, to {real}: it is not followed. Copy the session to here"
        elif path.is_dir():
            what = "is a folder"
        elif path.is_symlink():
            what = "is a symbolic link to nothing that could be read"
        else:
            what = "is not a file" if path.exists() else "does not exist"
    except OSError as error:
        what = f"cannot be reached: {error.strerror}"
    raise SessionError(f"the session file {path} {what}")


def _keep_broken(path: Path, reading: Reading) -> None:
    for finding in reading.broken:
        if finding.content:
            with contextlib.suppress(OSError):  # nothing is lost: the line stays where it is
                _keep_beside(path, "broken", finding)


def _keep_beside(path: Path, kind: str, finding: Finding) -> None:
    """Copy a line beside the file, once: the name holds its offset, so a second opening finds it there."""
    side = path.with_name(f"{path.name}.{kind}-{finding.offset}")
    number = 1
    while side.exists():
        if side.read_bytes() == finding.content:
            return
        number += 1
        side = path.with_name(f"{path.name}.{kind}-{finding.offset}-{number}")
    with side.open("xb") as file:
        file.write(finding.content)
        if kind == "torn":  # a tail is cut off only once its copy is safe
            file.flush()
            os.fsync(file.fileno())


class _Pauses:
    """How many readings hold the garbage collector off, and whether it was on before."""

    guard = threading.Lock()
    count = 0
    was_on = False


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Hundreds of thousands of new objects, none of them garbage, would be gone through again and again."""
    with _Pauses.guard:
        if _Pauses.count == 0:
            _Pauses.was_on = gc.isenabled()
            gc.disable()
        _Pauses.count += 1
    try:
        yield
    finally:
        with _Pauses.guard:
            _Pauses.count -= 1
            if _Pauses.count == 0 and _Pauses.was_on:
                gc.enable()
