"""Which files of a sessions folder changed, without opening any.

Synchronous. Law: a change is seen as long as it gives the file another stamp, or the folder, where a name comes or
goes. What is known to be as it was costs one `stat`: a folder whose own stamp is the same and settled still has the
names that it had, so they are not listed again.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ..names import is_file_name
from .following import Stamp, is_settled, look_at, stamp_of

ENDING = ".jsonl"
Place: TypeAlias = tuple[str, str]  # the folder of an agent, the file in it

_LOOKED_AT = 512  # files between two looks at the clock


@dataclass(slots=True)
class Look:
    """What a look at the folder found. `changed`: new, or with another stamp, the newest first. `unseen`: files that
    there was no time for."""

    changed: list[Place] = field(default_factory=list)
    gone: list[Place] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class _Names:
    """The session files of an agent's folder when that had `stamp`, and what else there was."""

    stamp: Stamp
    settled: bool
    files: tuple[str, ...]
    present: frozenset[str]
    skipped: Counter[str]


class Folder:
    """A sessions folder, with a memory of the names in it. One thread at a time."""

    def __init__(self, path: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self.path = path
        self._clock = clock
        self._known: dict[str, _Names] = {}

    def look(
        self,
        known: Mapping[str, Mapping[str, int | None]],
        agents: Sequence[str] | None = None,
        until: float | None = None,
    ) -> Look:
        """Compare the folder with what is `known`: by agent folder, then file, `look_at` its stamp (None: it was
        not settled). `agents`: only these folders. `until`: the moment (`time.monotonic`) to give up at."""
        found = Look()
        folders = self._agents(found) if agents is None else agents
        changed: list[tuple[int, Place]] = []
        for name in folders:
            before = known.get(name, {})
            files = self._look_into(name, before, found, changed, until)
            found.gone += [(name, file) for file in before.keys() - files]
        if agents is None:
            found.gone += [(name, file) for name in known.keys() - set(folders) for file in known[name]]
        changed.sort(reverse=True)
        found.changed = [place for _, place in changed]
        return found

    def _agents(self, found: Look) -> list[str]:
        try:
            with os.scandir(self.path) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return []
        except OSError:
            found.skipped["unreadable"] += 1
            return []
        names = []
        for entry in listed:
            if entry.is_symlink():
                found.skipped["link"] += 1
            elif entry.is_dir(follow_symlinks=False) and is_file_name(entry.name):
                names.append(entry.name)
            else:
                found.skipped["other format"] += 1
        return sorted(names)

    def _look_into(
        self,
        name: str,
        known: Mapping[str, int | None],
        found: Look,
        changed: list[tuple[int, Place]],
        until: float | None,
    ) -> frozenset[str]:
        """The session files in the folder of one agent; the changed ones go to `changed` with their times."""
        try:
            descriptor = os.open(self.path / name, _FOLDER)
        except FileNotFoundError:
            return frozenset()
        except OSError:
            found.skipped["unreadable"] += 1
            return frozenset()
        try:
            names = self._names(name, descriptor, known)
            found.skipped.update(names.skipped)
            for number, file in enumerate(names.files):
                if number % _LOOKED_AT == 0 and until is not None and time.monotonic() > until:
                    found.unseen += len(names.files) - number
                    break
                try:
                    facts = os.stat(file, dir_fd=descriptor, follow_symlinks=False)
                except OSError:
                    changed.append((0, (name, file)))
                    continue
                if known.get(file) != look_at(facts):
                    changed.append((facts.st_mtime_ns, (name, file)))
        except OSError:
            found.skipped["unreadable"] += 1
            return frozenset()
        finally:
            os.close(descriptor)
        return names.present

    def _names(self, name: str, descriptor: int, before: Container[str]) -> _Names:
        stamp = stamp_of(os.fstat(descriptor))
        now = self._clock()
        known = self._known.get(name)
        if known is not None and known.settled and known.stamp == stamp:
            return known
        files, skipped = [], Counter[str]()
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.name in before and entry.is_file(follow_symlinks=False):  # most are, and it is soon told
                    files.append(entry.name)
                    continue
                if _BESIDE in entry.name:
                    continue
                reason = _reason(entry)
                if reason is None:
                    files.append(entry.name)
                else:
                    skipped[reason] += 1
        self._known[name] = _Names(stamp, is_settled(stamp, now), tuple(files), frozenset(files), skipped)
        return self._known[name]


_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


_BESIDE = f"{ENDING}."  # in the names of what lies beside a session and belongs to it


def _reason(entry: os.DirEntry[str]) -> str | None:
    """Why something is no session file."""
    if not entry.name.endswith(ENDING):
        return "other format"
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if not entry.is_file(follow_symlinks=False):
        return "no file"
    return None if is_file_name(entry.name[: -len(ENDING)]) else "other format"
