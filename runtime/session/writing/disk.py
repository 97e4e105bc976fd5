"""What the session files ask of the disk, so that tests can hand in one that fails or forgets."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Protocol

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore]  # macOS has it, others do not
except ImportError:
    F_FULLFSYNC = None


class Disk(Protocol):
    """Each raises `OSError`. `write` appends and returns how many bytes were taken, perhaps not all; `sync` returns
    once what was written lies on the disk itself."""

    def write(self, descriptor: int, data: bytes, /) -> int: ...

    def sync(self, descriptor: int, /) -> None: ...

    def cut(self, descriptor: int, length: int, /) -> None: ...


def _full_sync(descriptor: int) -> None:
    """On macOS `fsync` reaches the drive's cache only (its fsync(2) says so); some file systems refuse the other."""
    try:
        fcntl(descriptor, F_FULLFSYNC)
    except OSError:
        os.fsync(descriptor)


class _RealDisk:
    write = staticmethod(os.write)
    sync = staticmethod(getattr(os, "fdatasync", os.fsync) if F_FULLFSYNC is None else _full_sync)
    cut = staticmethod(os.ftruncate)


REAL_DISK: Disk = _RealDisk()


def write_all(disk: Disk, descriptor: int, data: bytes) -> None:
    """Write all of `data`, or raise `OSError`. Of a write that took only a part, the next one says why."""
    while data:
        written = disk.write(descriptor, data)
        if written <= 0:
            raise OSError(f"{len(data):,} bytes were not written")
        data = data[written:]


def sync_folder(folder: Path) -> None:
    """Wait until the names in `folder` are on disk. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_file(path: Path, data: bytes, disk: Disk) -> int:
    """A new file with `data`: whoever finds it there finds it whole, also after a crash. Its length comes back.

    Nobody else makes a file of that name: callers hold a lock. Raises `OSError`; then it is not there.
    """
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(disk, descriptor, data)
        disk.sync(descriptor)
        fresh.rename(path)
    except BaseException:  # an interrupt too leaves no half file behind
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    finally:
        os.close(descriptor)
    sync_folder(path.parent)
    return len(data)
