"""What to do with entries that no attempt brought to the disk of their session: they go to another place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkstemp

from ..entries import Entry, Header
from ..format.codec import encode_batch, encode_header


def rescue(header: Header, batches: Sequence[Sequence[Entry]], folder: Path | None = None) -> Path:
    """Write `batches` as a session file of their own in `folder` (None: the system's temporary folder). Its lines
    behind the header are what the session lacks. Readable by its owner alone. Raises `OSError`."""
    descriptor, name = mkstemp(prefix="moonwake-unsaved-", suffix=".jsonl", dir=folder)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode_header(header) + b"".join(encode_batch(batch) for batch in batches))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


def told(session: Path, count: int, why: str, saved: Path | OSError) -> str:
    """What became of `count` unsaved entries, for a person."""
    many = f"{count:,} {'entry' if count == 1 else 'entries'}"
    if isinstance(saved, OSError):
        return (
            f"{many} of the session {session} are lost: its disk refused them ({why}), and so did the temporary "
            f"folder ({saved.strerror or saved}). Free some space before you go on; what was saved before is safe"
        )
    return (
        f"{many} of the session {session} could not be saved there ({why}); they are in {saved}. To put them back "
        f"before the session goes on, free some space and run: tail -n +2 '{saved}' >> '{session}'"
    )
