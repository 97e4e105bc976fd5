"""Large content lives once, by its hash, in a folder beside the sessions; a line names it."""

from __future__ import annotations

from typing import Protocol

from .entries import Blob


class BlobStore(Protocol):
    """Where large content lies. Blocks: call it in a thread."""

    def put(self, text: str) -> Blob:
        """Keep `text`; when this returns it is on disk. Raises `OSError`."""
        ...

    def get(self, blob: Blob) -> str | None:
        """The text, or None when it is not there or not what its name says."""
        ...
