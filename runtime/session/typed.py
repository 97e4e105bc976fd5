"""What a person typed at the terminal is kept in a file of its own, `input_history`, for the arrow keys: what was
erased in a session is forgotten there too.

The file is that of prompt_toolkit's `FileHistory`: each input is a blank line, a line `# time`, and its lines, each
behind a `+`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from uuid import uuid4

NAME = "input_history"
_LEAST = 12  # characters: a shorter text is looked for as a whole input only


def forget_typed(path: Path, texts: Collection[str]) -> int:
    """Remove the inputs that are, or hold, one of `texts`; how many went. Raises `OSError`, and leaves the file as it
    was. An input that is typed at this very moment may be forgotten too."""
    if not texts or path.is_symlink() or not path.is_file():
        return 0
    data = path.read_bytes()
    blocks = list(_blocks(data))
    kept = [block for block in blocks if not _holds(block, texts)]
    if len(kept) == len(blocks):
        return 0
    fresh = path.with_name(f"{path.name}.erasing-{uuid4().hex}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(b"".join(kept))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
    return len(blocks) - len(kept)


def _blocks(data: bytes) -> Iterator[bytes]:
    """The inputs with what stands before each; together they are `data`."""
    block = b""
    typed = False
    for line in _lines(data):
        if typed and not line.startswith(b"+"):
            yield block
            block, typed = b"", False
        block += line
        typed = typed or line.startswith(b"+")
    if block:
        yield block


def _lines(data: bytes) -> list[bytes]:
    """As `FileHistory` reads them: at `\\n` alone."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


def _holds(block: bytes, texts: Collection[str]) -> bool:
    lines = block.decode("utf-8", "replace").split("\n")
    typed = "\n".join(line[1:] for line in lines if line.startswith("+")).strip()
    return any(text.strip() == typed or (len(text) >= _LEAST and text.strip() in typed) for text in texts)
