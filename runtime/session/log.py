"""The session file: append-only, one writer, every batch one write and one fdatasync.

Synchronous on purpose: `session.py` calls it from a worker thread. Laws:
- When `append` returns, the batch is on disk, and what it returns is what the file holds.
- When it raises, the file is as long as before; where even that fails, nothing is written until it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock

from ..errors import SessionError
from .codec import decode_batch, encode_batch
from .entries import Entry
from .locking import unlock


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
            self.write(data)
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

    def close(self, *, discard: bool = False) -> None:
        """Give up the file and its lock. `discard` removes a file that holds no entry: nobody said anything in it."""
        try:
            os.close(self.descriptor)
            if discard:
                self.path.unlink(missing_ok=True)
        finally:
            unlock(self.lock, self.path)

    def write(self, data: bytes) -> None:
        written = self.disk.write(self.descriptor, data)
        if written != len(data):
            raise OSError(f"only {written:,} of {len(data):,} bytes were written")
        self.disk.sync(self.descriptor)
