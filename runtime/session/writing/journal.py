"""The journal: one file whose sync stands for the syncs of many session files.

When many sessions append at once, what each of them writes is written here too, and only this file is synced. It is a
line of JSON for each write (`path` from the folder above, `inode`, `offset`, `size`, `sum`), then the bytes that were
written. Laws:
- A record counts when its checksum is right; the first that is not ends the journal.
- A journal belongs to the process that holds its lock; when that process is dead, whoever opens a session next redoes
  what a power loss took (`recovery.py`).
- It is emptied only when each file that it answers for was synced by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from .disk import Disk, sync_folder, write_all
from .locking import lock, unlock
from .log import LogFile

FOLDER = ".journals"
SUFFIX = ".journal"


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """`data` was written to the session file `path` (from the folder above the journals) at `offset`. `inode` tells
    whether it is still the same file."""

    path: str
    inode: int
    offset: int
    data: bytes


def journal_folder(session: Path) -> Path:
    """Where the journals lie that may tell of a session file: in the folder `sessions`, else beside the file."""
    folder = Path(os.path.abspath(session)).parent  # noqa: PTH100 - resolving links would move the journals elsewhere
    return (folder.parent if folder.parent.name == "sessions" else folder) / FOLDER


def encode_record(record: JournalRecord) -> bytes:
    place = {"path": record.path, "inode": record.inode, "offset": record.offset, "size": len(record.data)}
    told = json.dumps({**place, "sum": _checksum(place, record.data)}, ensure_ascii=True, separators=(",", ":"))
    return told.encode() + b"\n" + record.data


def decode_records(content: bytes) -> Iterator[JournalRecord]:
    """The records up to the first that is not whole."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        try:
            raw = json.loads(content[start:end])
            place = {name: raw[name] for name in ("path", "inode", "offset", "size")}
            data = content[end + 1 : end + 1 + place["size"]]
            if len(data) != place["size"] or raw["sum"] != _checksum(place, data):
                return
        except (ValueError, TypeError, KeyError):
            return
        yield JournalRecord(place["path"], place["inode"], place["offset"], data)
        start = end + 1 + len(data)


def _checksum(place: dict[str, object], data: bytes) -> str:
    summed = blake2b(json.dumps(place, sort_keys=True).encode(), digest_size=16)
    summed.update(data)
    return summed.hexdigest()


class Journal:
    """A journal that this process writes; `length` in bytes. Making one raises `OSError` or `SessionError`."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.needed = False  # by a file that could not be synced: it stays when we go
        self._root = folder.parent
        self._disk = disk
        self.length = 0
        self._ragged = False
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        self.path = folder / f"{uuid4().hex}{SUFFIX}"
        self._lock = lock(self.path)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o600)
            sync_folder(folder)
        except OSError:
            unlock(self._lock, self.path)
            raise

    def write(self, logs: Sequence[LogFile]) -> None:
        """Hold what was put into `logs`, on disk. Raises `OSError`, and holds none of it."""
        self._cut_back()
        data = b"".join(self._record(log) for log in logs)
        self._ragged = True
        try:
            write_all(self._disk, self._descriptor, data)
            self._disk.sync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # it is tried again before the next write
                self._cut_back()
            raise
        self._ragged = False
        self.length += len(data)

    def empty(self) -> None:
        """Forget everything: each file was synced. Raises `OSError`."""
        if self.length or self._ragged:
            self.length, self._ragged = 0, True
            self._cut_back()

    def close(self) -> None:
        """Remove it, unless it is needed."""
        os.close(self._descriptor)
        if not self.needed:
            self.path.unlink(missing_ok=True)
        unlock(self._lock, self.path)

    def _record(self, log: LogFile) -> bytes:
        path = os.path.relpath(log.path, self._root)
        inode = os.fstat(log.descriptor).st_ino
        return encode_record(JournalRecord(path, inode, log.length, log.written))

    def _cut_back(self) -> None:
        if self._ragged:
            self._disk.cut(self._descriptor, self.length)
            self._ragged = False
