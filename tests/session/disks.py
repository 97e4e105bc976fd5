"""Disks for tests: one that refuses on demand and remembers what was synced, and one that waits to be let through."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

from runtime.session.writing.disk import REAL_DISK

FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")
READ_ONLY = OSError(errno.EROFS, "Read-only file system")


class FakeDisk:
    """The real disk, watched. `refuse` says which operations fail, and `for_file` narrows that to one file's; `room`
    is how many bytes there is place for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.syncs: list[str] = []  # the names of the files, in order
        self.refuse: dict[str, OSError] = {}
        self.for_file: Callable[[str], bool] = lambda name: True
        self.room: int | None = None
        self.synced: dict[int, int] = {}  # bytes, by inode
        self.emptied = threading.Event()  # a journal was
        self.threads: list[int] = []  # that waited for a sync

    def write(self, descriptor: int, data: bytes, /) -> int:
        self._ask("write", descriptor)
        if self.room is None or not self.for_file(name_of(descriptor)):
            return REAL_DISK.write(descriptor, data)
        if not self.room:
            raise FULL
        written = REAL_DISK.write(descriptor, data[: self.room])
        self.room -= written
        return written

    def sync(self, descriptor: int, /) -> None:
        self._ask("sync", descriptor)
        self.threads.append(threading.get_ident())
        size = os.fstat(descriptor).st_size
        REAL_DISK.sync(descriptor)
        self.syncs.append(name_of(descriptor))
        self.synced[os.fstat(descriptor).st_ino] = size

    def cut(self, descriptor: int, length: int, /) -> None:
        self._ask("cut", descriptor)
        REAL_DISK.cut(descriptor, length)
        if name_of(descriptor).endswith(".journal") and not length:
            self.emptied.set()
        self.synced[os.fstat(descriptor).st_ino] = min(length, self.synced.get(os.fstat(descriptor).st_ino, 0))

    def lose(self, path: Path) -> None:
        """The power fails: what was not synced of `path` is gone."""
        os.truncate(path, self.synced.get(path.stat().st_ino, 0))

    def heal(self) -> None:
        self.refuse, self.room = {}, None

    def _ask(self, what: str, descriptor: int) -> None:
        self.asked.append(what)
        if what in self.refuse and self.for_file(name_of(descriptor)):
            raise self.refuse[what]


def name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name.removesuffix(" (deleted)")


class GatedDisk(FakeDisk):
    """Its first sync of a file called `name` waits until it is let through; `arrived` tells that it came."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.arrived = threading.Event()
        self.open = threading.Event()

    def sync(self, descriptor: int, /) -> None:
        if name_of(descriptor) == self.name and not self.open.is_set():
            self.arrived.set()
            assert self.open.wait(10), "nobody opened the gate"
        super().sync(descriptor)
