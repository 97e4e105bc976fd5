"""Large content lives once, by its hash, in a folder beside the sessions; a line names it.

A blob is the file `<folder>/<first two hex digits>/<SHA-256 of its UTF-8>`. Synchronous on purpose: call it in a
thread. Laws:
- What stands at a blob's name is whole: it is written elsewhere, synced, and renamed.
- When `put` returns, the blob is on disk, also when another process had just put it there.
- What `get` returns has the hash that was asked for. A file that has not is moved aside as `.damaged`.
- A name is 64 hex digits or it is nobody's: no line of a session can make us read another path, and no symbolic link
  in the folder is followed.
- `put` and removal exclude each other (a lock on `<folder>/.lock`), and `put` refreshes a blob's time: a blob that is
  about to be named is never taken for an old one.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Literal, Protocol

from governors.scrub import scrub

from ..entries import Blob

_NAME = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(r"[0-9a-f]{2}")
_CACHED = 16 * 2**20  # characters of text that are kept in memory

BlobState = Literal["whole", "missing", "damaged"]


class BlobStore(Protocol):
    """Where large content lies. Blocks: call it in a thread."""

    def put(self, text: str) -> Blob:
        """Keep `text`; when this returns it is on disk. Raises `OSError`."""
        ...

    def get(self, blob: Blob) -> str | None:
        """The text, or None when it is not there or not what its name says."""
        ...


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file under the blobs' folder. `blob`: the name of the blob that it is, or was before it was damaged; None for
    what a writer left behind when it died. `size` in bytes, `changed` in seconds since 1970."""

    path: Path
    blob: str | None
    size: int
    changed: float


class FolderBlobs:
    """Blobs under `folder`, which need not exist yet. Any number of threads and processes may share it.

    `get` keeps up to `cached` characters of what was read last, so that an image that several sessions show is read
    once.
    """

    def __init__(self, folder: Path, *, cached: int = _CACHED) -> None:
        self.folder = folder
        self._room = cached
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._synced: set[str] = set()  # blobs that this process knows to be whole and on disk
        self._guard = threading.Lock()  # of the two above

    def put(self, text: str) -> Blob:
        """Keep `text` (lone surrogates become U+FFFD); when this returns it is on disk. Raises `OSError`: nothing new
        stands there then."""
        data = scrub(text).encode()
        blob = Blob(sha256(data).hexdigest(), len(data))
        shard = self.folder / blob.name[:2]
        _make_folder(shard)
        with self._held(alone=False), _opened(shard) as folder:
            refreshed = self._refresh(blob, folder)
            if not refreshed:
                _write(shard, blob.name, data)
            if not refreshed or blob.name not in self._synced:
                os.fsync(folder)  # also for one that another process put there: it may not have come to this yet
        with self._guard:
            self._synced.add(blob.name)
        return blob

    def get(self, blob: Blob) -> str | None:
        """The text, or None when it is not there, cannot be read, or is not what its name says."""
        with self._guard:
            if blob.name in self._texts:
                self._texts.move_to_end(blob.name)
                return self._texts[blob.name]
        text = self._read(blob.name)
        if text is not None:
            self._remember(blob.name, text)
        return text

    def state(self, blob: Blob) -> BlobState:
        """What stands at the blob's name; nothing is changed. Raises `OSError` when it cannot be read."""
        if not _NAME.fullmatch(blob.name):
            return "missing"
        try:
            data, _ = _content(self.folder / blob.name[:2], blob.name)
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        return "whole" if data is not None and sha256(data).hexdigest() == blob.name else "damaged"

    def stored(self) -> Iterator[StoredFile]:
        """Every file under the folder, blobs or not, but for the lock. Raises `OSError`."""
        for shard in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            if not _SHARD.fullmatch(shard.name) or shard.is_symlink() or not shard.is_dir():
                continue
            for path in sorted(shard.iterdir()):
                with contextlib.suppress(FileNotFoundError):  # a writer's own file comes and goes
                    facts = path.lstat()
                    named = path.name.removesuffix(".damaged")
                    blob = named if _NAME.fullmatch(named) else None
                    yield StoredFile(path, blob, facts.st_size, facts.st_mtime)

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Keeps every `put`, of any process, waiting while files are removed. Raises `OSError`."""
        with self._held(alone=True):
            yield

    def remove(self, stored: StoredFile) -> bool:
        """Remove a file that nobody refreshed since `stored` was seen; whether it went. Call it while `closed`."""
        try:
            if stored.path.lstat().st_mtime != stored.changed:
                return False
            stored.path.unlink()
        except FileNotFoundError:
            return False
        with self._guard:
            self._synced.discard(stored.path.name)
            self._texts.pop(stored.path.name, None)
        return True

    def _refresh(self, blob: Blob, folder: int) -> bool:
        """Make a blob that is there already young. False when it has to be written."""
        try:
            facts = os.stat(blob.name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size != blob.size:
                return False
            if blob.name not in self._synced and self.state(blob) != "whole":
                return False
            os.utime(blob.name, dir_fd=folder, follow_symlinks=False)
        except OSError:  # cannot be read, or is somebody else's: writing it anew says what is really wrong
            return False
        return True

    def _read(self, name: str) -> str | None:
        if not _NAME.fullmatch(name):
            return None
        try:
            data, facts = _content(self.folder / name[:2], name)
        except OSError:
            return None
        if data is not None and sha256(data).hexdigest() == name:
            return data.decode(errors="replace")
        with contextlib.suppress(OSError):  # a folder that cannot be written keeps it where it is
            self._set_aside(name, facts)
        return None

    def _set_aside(self, name: str, seen: os.stat_result) -> None:
        path = self.folder / name[:2] / name
        with self.closed():
            if os.path.samestat(path.lstat(), seen):  # else somebody has put a whole one there by now
                path.rename(path.with_name(name + ".damaged"))
        with self._guard:
            self._synced.discard(name)

    def _remember(self, name: str, text: str) -> None:
        with self._guard:
            self._texts[name] = text
            while sum(map(len, self._texts.values())) > self._room:
                self._texts.popitem(last=False)

    @contextlib.contextmanager
    def _held(self, *, alone: bool) -> Iterator[None]:
        import fcntl  # not everywhere; the log imports this module, and needs no blobs to work

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.folder / ".lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)


def _content(shard: Path, name: str) -> tuple[bytes | None, os.stat_result]:
    """The bytes at `name`, None when that is no regular file. Raises `OSError`."""
    with _opened(shard) as folder:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode):
            return None, facts
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not wait
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            return file.read(), os.fstat(file.fileno())


def _write(shard: Path, name: str, data: bytes) -> None:
    """Write beside it, sync, rename. Raises `OSError`; the file beside is gone then."""
    descriptor, fresh = mkstemp(dir=shard, prefix=".", suffix=".new")  # its mode is 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(fresh).rename(shard / name)
    except BaseException:  # an interrupt too must not leave half a blob behind
        with contextlib.suppress(OSError):
            Path(fresh).unlink()
        raise


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of `folder`, which must not be a symbolic link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make `folder` and what is missing above it, each on disk before this returns. Raises `OSError`."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # another thread made it
        folder.mkdir(mode=0o700)
    descriptor = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
