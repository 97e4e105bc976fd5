"""A session file that is there whole from its first moment on: a fork, an import.

Laws: the session's lock is held from before its first blob is put until the file stands there, so that nobody takes
those blobs for garbage, however long it takes; what fails or is interrupted leaves nothing behind but blobs, which are
collected later.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .disk import REAL_DISK, put_file
from .locking import lock, unlock


def found_session(path: Path, make: Callable[[], bytes]) -> None:
    """Put the bytes that `make` gives, header and lines, at `path`; `make` puts the blobs that they name.

    Blocks. Raises `OSError` when it exists or the disk refuses, `SessionError` when it cannot be locked.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held = lock(path)
    try:
        if os.path.lexists(path):
            raise FileExistsError(None, "it exists already")
        put_file(path, make(), REAL_DISK)
    finally:
        unlock(held, path)
