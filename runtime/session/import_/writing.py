"""An imported session on disk: the whole file under another name, synced, then renamed.

Law: a session of that name is whole or not there, whatever happens while it is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from ...errors import SessionError
from ..blobs import BlobStore
from ..codec import encode_entry, encode_header
from ..entries import Entry, Header


def write_session(path: Path, header: Header, entries: Iterable[Entry], blobs: BlobStore | None = None) -> None:
    """A new session file. Raises `SessionError` when there is one already, or the disk refuses."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            raise FileExistsError(None, "it exists already")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode_header(header))
                for entry in entries:
                    file.write(_encoded(entry, blobs))
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(path)
        except BaseException:  # an interrupt too must not leave half a session behind
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise
        _sync(path.parent)
    except OSError as error:
        raise SessionError(f"cannot write the imported session {path}: {error.strerror or error}") from error


def _encoded(entry: Entry, blobs: BlobStore | None) -> bytes:
    return encode_entry(entry) if blobs is None else encode_entry(entry, blobs=blobs)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
