"""Tells without opening a file whether the files behind a prompt changed.

A stamp is (mtime in nanoseconds, size, inode, mode); the mode, as a file that may be read again has changed in nothing
else. A file system's clock ticks in steps, so two writes within one tick
can leave the same stamp: a file that was modified within 50 ms of its read is not trusted and is read again next
time, until a read finds it at rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

Stamp: TypeAlias = tuple[int, int, int, int] | None

SETTLE_NS = 50_000_000


def stamp(path: str) -> Stamp:
    """The stamp of a file or folder; None where there is none, or none that can be reached."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a Path would cost more than the call itself, and hits must be cheap)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def stamps(paths: Iterable[str]) -> tuple[Stamp, ...]:
    return tuple([stamp(path) for path in paths])


def is_settled(seen: Stamp, read_at: int) -> bool:
    """Whether a file that had the stamp `seen` before it was read at `read_at` (ns) can be told from a later one."""
    return seen is None or abs(read_at - seen[0]) > SETTLE_NS
