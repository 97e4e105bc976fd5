"""The sessions of a workspace, as the command line deals with them: where they are, how they are named.

Reading takes no lock, so it works while a session is open elsewhere; writing says who holds it. All raise
`MoonwakeError`. Functions print and give an exit code.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..app import new_session_id, utc_now
from ..channels.plain import write_text
from ..channels.sanitize import clean
from ..session.format.blobs import FolderBlobs
from ..session.format.reading import Reading
from ..session.naming import Named, find_session
from ..session.opening import read_log
from ..session.store import SessionStore
from ..workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class Shelf:
    """The sessions of a workspace, and whose are meant."""

    workspace: Workspace
    agent: str | None

    @property
    def store(self) -> SessionStore:
        return SessionStore(self.workspace.sessions, new_session_id, utc_now)

    @property
    def blobs(self) -> FolderBlobs:
        return FolderBlobs(self.workspace.state / "blobs")

    def find(self, wanted: str) -> Named:
        """Raises `SessionError`."""
        return find_session(self.store, wanted, self.agent)

    def read(self, wanted: str) -> tuple[Named, Reading]:
        """A session, whole and without a lock; what is wrong with its file is said. Raises `SessionError`."""
        named = self.find(wanted)
        reading = read_log(named.path, self.blobs)
        for finding in reading.broken:
            say(f"{named.path.name}, {finding}")
        return named, reading


def shelf(folder: Path, agent: str | None) -> Shelf:
    """The shelf of the workspace in `folder`, which must be there. Raises `WorkspaceError`."""
    return Shelf(open_workspace(folder, create=False), agent)


def say(text: str) -> None:
    """Tell a person something that is not what was asked for."""
    write_text(sys.stderr, clean(text) + "\n")


def put(lines: Iterable[str]) -> None:
    write_text(sys.stdout, "".join(f"{line}\n" for line in lines))


def put_json(value: Any) -> None:
    write_text(sys.stdout, json.dumps(value, ensure_ascii=True, indent=2) + "\n")


def columns() -> int:
    """How wide tables may be."""
    return shutil.get_terminal_size((80, 24)).columns


def line_columns() -> int | None:
    """How wide text may be: as wide as it is, unless somebody watches."""
    return columns() if sys.stdout.isatty() else None
