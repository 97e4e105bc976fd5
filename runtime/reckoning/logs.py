"""The bills of a folder of sessions, read from their files without a lock. Blocks: call it in a thread.

Only lines that tell of a call are taken apart, and files that were written last before the time asked for are not
opened: a year of sessions takes a second or so. What cannot be read is told, and the rest counted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..session.entries import Entry, Header
from ..session.format.codec import BadLine, decode_entry, decode_header
from ..session.names import name_in
from .bills import Bill, bills_of, is_import

ENDING = ".jsonl"
_OF_CALLS = (b'"request"', b'"outcome"')
_LEEWAY = 120.0  # seconds that the clock of a disk may be off


@dataclass(frozen=True, slots=True)
class Reckoning:
    """Bills, the sessions that could not be read, and how many lines that tell of a call could not."""

    bills: tuple[Bill, ...]
    unread: tuple[str, ...] = ()
    broken: int = 0


def reckon(sessions: Path, agent: str | None = None, since: float = 0.0) -> Reckoning:
    """The bills of all sessions in the folder `sessions` (`<agent>/<session>.jsonl`) that were sent at `since` or later
    (seconds since 1970), the earliest first."""
    bills: list[Bill] = []
    unread: list[str] = []
    broken = 0
    for path in session_files(sessions):
        if agent is not None and name_in(path.parent.name) != agent:
            continue
        try:
            if path.stat().st_mtime + _LEEWAY < since:
                continue
            header, entries, bad = read_calls(path)
        except (OSError, BadLine) as error:
            unread.append(f"{path.name}: {getattr(error, 'strerror', None) or error}")
            continue
        broken += bad
        bills += (bill for bill in bills_of(header, entries) if bill.at >= since)
    bills.sort(key=lambda bill: (bill.at, bill.agent, bill.session, bill.entry))
    return Reckoning(tuple(bills), tuple(unread), broken)


def session_files(sessions: Path) -> Iterator[Path]:
    """The session files of a folder, of all agents, in the order of their names; no link and no pipe."""
    for folder in sorted(_listed(sessions)):
        if folder.is_symlink():
            continue
        for path in sorted(_listed(folder)):
            if path.name.endswith(ENDING) and stat.S_ISREG(path.lstat().st_mode):
                yield path


def read_calls(path: Path) -> tuple[Header, list[Entry], int]:
    """The header of a session, its entries of calls (all entries of an import), and how many of those are broken.

    Raises `OSError`, `BadLine` for a file that is no session.
    """
    entries: list[Entry] = []
    broken = 0
    with path.open("rb") as file:
        header = decode_header(file.readline())
        for line in _lines_of_calls(file, everything=is_import(header)):
            try:
                entries.append(decode_entry(line)[0])
            except BadLine:
                broken += 1
    return header, entries, broken


def _lines_of_calls(file: Iterable[bytes], *, everything: bool) -> Iterator[bytes]:
    for line in file:
        # The type stands before whatever a model or a person said; a line of theirs that looks so is told apart later.
        if line.endswith(b"\n") and (everything or any(mark in line[:400] for mark in _OF_CALLS)):
            yield line.rstrip(b"\n")


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]  # noqa: PTH208 - names alone, quickly
    except OSError:
        return []
