"""An imported session on disk.

Law: a session of that name is whole or not there, whatever happens while it is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import SessionError
from ..entries import Entry, Header
from ..format.blobs import BlobStore
from ..format.codec import encode_entry, encode_header
from ..writing.founding import found_session


def write_session(path: Path, header: Header, entries: Iterable[Entry], blobs: BlobStore | None = None) -> None:
    """A new session file. Raises `SessionError` when there is one already, or the disk refuses."""

    def made() -> bytes:
        return encode_header(header) + b"".join(encode_entry(entry, blobs=blobs) for entry in entries)

    try:
        found_session(path, made)
    except OSError as error:
        raise SessionError(f"cannot write the imported session {path}: {error.strerror or error}") from error
