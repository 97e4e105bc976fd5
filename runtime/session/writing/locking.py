"""The lock of a session: one process writes.

An OS lock, released when the process dies, however it dies. A lock's file goes when the lock is given up; whoever locks
makes sure that the file locked is the one that stands there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import SessionError, SessionLocked
from ..names import name_in

_MOST_TRIES = 20  # to lock a file that others remove just then


def lock(path: Path) -> FileLock:
    """The lock of a session. Its file holds the owner's process id, for whoever is refused."""
    name = path.with_name(path.name + ".lock")
    signed: list[bool] = []

    def sign(descriptor: int) -> None:
        signed.append(_sign(descriptor, name))

    try:
        for _ in range(_MOST_TRIES):
            signed.clear()
            held = FileLock(name, thread_local=False, on_acquired=sign)
            held.acquire(timeout=0)
            if all(signed):
                return held
            held.release()
        raise Timeout(str(name))
    except Timeout:
        raise SessionLocked(
            f"the session {name_in(path.stem)} is open in {_owner(name)}. Close it there, or start another session"
        ) from None
    except OSError as error:
        raise SessionError(f"cannot lock the session {path}: {error.strerror or error}") from error


def unlock(held: FileLock, path: Path) -> None:
    """Give up the lock of the session `path`. Its file goes while it is still held: see `_sign`.

    So a folder of many sessions has no second name for each, which whoever lists them had to look at.
    """
    with contextlib.suppress(OSError):  # a stray file harms nobody
        Path(held.lock_file).unlink(missing_ok=True)
    held.release()


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
