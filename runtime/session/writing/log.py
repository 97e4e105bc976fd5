"""The session file: append-only, one writer, a batch all or nothing.

Synchronous on purpose: it is called in a thread. Laws:
- When `append` returns, the batch is on disk, and what it returns is what the file holds.
- When it raises, the file is as long as before; where even that fails, nothing is written until it is.
- After a sync that failed, nothing written since the last good one is trusted: the file is cut back to there, and what
  was acknowledged since then (a journal holds it, see `journal.py`) is written again.

`append` is `put` (write), then `sync`; `commit.py` takes the two apart, so that one sync can serve many files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from ...errors import SessionError
from ..entries import Entry
from ..format.blobs import BlobStore
from ..format.codec import decode_batch, encode_batch
from ..format.faithful import reads_back
from .disk import REAL_DISK, Disk, write_all
from .locking import unlock


@dataclass(slots=True, eq=False)
class LogFile:
    """An open session file. `length` is what is acknowledged, in bytes; `ragged`: more may stand behind it.

    `synced` is how much of it was synced by itself, None where that is not known (a file that was just opened: its
    last writer may have been killed before its sync). `loose` are the acknowledged bytes behind `synced`, which the
    journal answers for; `doubtful`: they may be gone from the file.
    """

    path: Path
    descriptor: int
    length: int
    lock: FileLock
    disk: Disk = REAL_DISK
    ragged: bool = False
    blobs: BlobStore | None = None
    synced: int | None = None
    loose: bytearray = field(default_factory=bytearray)
    doubtful: bool = False
    written: bytes = b""  # not acknowledged yet

    def encode(self, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], bytes]:
        """The entries as the file will hold them, and their lines. Writes large content to its own place.

        Raises `OSError` where that is refused, `ValueError` or `TypeError` for what could not be read back.
        """
        data = encode_batch(entries, self.blobs)
        if all(reads_back(entry.record) for entry in entries):
            return tuple(entries), data
        return decode_batch(data, self.blobs), data

    def append(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Write `entries` as one batch and wait for the disk; they come back as the file holds them.

        Raises `SessionError` when the disk refuses (nothing is half-written), `ValueError` or `TypeError` for a
        record that could not be read back.
        """
        try:
            kept, data = self.encode(entries)
            self.put(data)
            self.sync()
        except OSError as error:
            raise SessionError(
                f"cannot write to the session {self.path}: {why(error)}. Free some space or make the "
                "folder writable; what was recorded before is safe"
            ) from error
        return kept

    def put(self, data: bytes) -> None:
        """Write `data` behind what is acknowledged. Raises `OSError`, and leaves the file as it was."""
        self.cut_back()
        self.ragged = True
        try:
            write_all(self.disk, self.descriptor, data)
        except OSError:
            self.give_up()
            raise
        self.written = data

    def sync(self) -> None:
        """Wait for the disk: what was put is acknowledged now. Raises `OSError`, and leaves the file as it was."""
        try:
            self.disk.sync(self.descriptor)
        except OSError:
            self.ragged = self.doubtful = True
            self.give_up()
            raise
        self.length += len(self.written)
        self.synced = self.length
        self.loose.clear()
        self.written, self.ragged = b"", False

    def vouched(self) -> None:
        """A journal that is on disk holds what was put: it is acknowledged."""
        self.length += len(self.written)
        self.loose += self.written
        self.written, self.ragged = b"", False

    def give_up(self) -> None:
        """Forget what was put and is not acknowledged."""
        self.written = b""
        with contextlib.suppress(OSError):  # it is tried again before the next write
            self.cut_back()

    def cut_back(self) -> None:
        """Remove what a failed write or sync left behind. Raises `OSError`."""
        if not self.ragged:
            return
        if self.doubtful:
            self.disk.cut(self.descriptor, self.length - len(self.loose))
            if self.loose:
                write_all(self.disk, self.descriptor, bytes(self.loose))
            self.doubtful = False
        else:
            self.disk.cut(self.descriptor, self.length)
        self.ragged = False

    def write(self, data: bytes) -> None:
        """Write and sync at once. Raises `OSError`."""
        write_all(self.disk, self.descriptor, data)
        self.disk.sync(self.descriptor)

    def close(self, *, discard: bool = False) -> None:
        """Give up the file and its lock. `discard` removes a file that holds no entry: nobody said anything in it."""
        try:
            os.close(self.descriptor)
            if discard:
                self.path.unlink(missing_ok=True)
        finally:
            unlock(self.lock, self.path)


def why(error: OSError) -> str:
    """What the system says."""
    return error.strerror or str(error)


__all__ = ["REAL_DISK", "Disk", "LogFile", "why"]
