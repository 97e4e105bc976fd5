"""A file of another program as a session of ours.

Laws: the file is only read. What was imported once is not imported again unless that is asked for: the session's
header holds the hash of the file it came from. A file that has grown since becomes another session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from ...errors import SessionError
from ..entries import Entry, Header
from ..format.blobs import BlobStore
from ..format.codec import BadLine, decode_header
from ..store import SessionStore, file_name
from .book import Account, Book
from .drafts import place
from .formats import FORMATS, read_source
from .lines import Source, look_at
from .report import Report
from .writing import write_session


@dataclass(frozen=True, slots=True)
class Read:
    """A conversation of a file, as entries of ours. `name` is what its program calls it, `created` when it began (UTC,
    ISO 8601), if the file tells."""

    name: str
    title: str
    cwd: str
    created: str | None
    entries: tuple[Entry, ...]


class Earlier:
    """What was imported into `store` for an agent before. Whoever imports many files hands the same one to each: it
    reads the header of a session once."""

    def __init__(self, store: SessionStore, agent: str) -> None:
        self._folder = store.folder / file_name(agent)
        self._origins: dict[str, tuple[str, Mapping[str, Any]] | None] = {}  # by the file's name

    def origins(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The imported sessions, oldest first, with where each came from."""
        for path in sorted(self._folder.glob("*.jsonl")):
            if path.name not in self._origins:
                self._origins[path.name] = _origin(path)
        return [each for _, each in sorted(self._origins.items()) if each is not None]


def _origin(path: Path) -> tuple[str, Mapping[str, Any]] | None:
    try:
        if path.is_file():
            with path.open("rb") as file:
                header = decode_header(file.readline(65_536))
            if header.origin is not None and header.origin.get("kind") == "import":
                return header.id, header.origin
    except (OSError, BadLine):
        pass  # no session of ours that can be read: nothing was imported there
    return None


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file: the ids of its `sessions` (a file of dialogs gives one each) and the report of its lines.

    `known`: it had been imported before, nothing was written, and `report` is None. `earlier`: the session that an
    earlier state of the file became, where there is one.
    """

    path: Path
    format: str
    sessions: tuple[str, ...]
    report: Report | None
    known: bool = False
    earlier: str | None = None
    titles: tuple[str, ...] = ()

    @property
    def session(self) -> str:
        """The session, or the first of several."""
        return self.sessions[0]

    def text(self) -> str:
        """What happened, for people."""
        many = len(self.sessions)
        if self.known:
            return f"{self.path} was imported before: it is the session {self.session}. To import it anew, say --again"
        where = f"as the session {self.session}" if many == 1 else f"as {many:,} sessions, the first {self.session}"
        grown = f"\nIt has grown since it was imported as {self.earlier}, which stays as it is." if self.earlier else ""
        title = f": {self.titles[0]}" if many == 1 and self.titles and self.titles[0] else ""
        report = "" if self.report is None else f"\n{self.report.text()}"
        return f"Imported {self.path} {where}{title}{grown}{report}"


async def import_session(
    path: Path,
    store: SessionStore,
    agent: str,
    *,
    format: str | None = None,  # the word that people use for it
    again: bool = False,
    blobs: BlobStore | None = None,
    earlier: Earlier | None = None,
) -> Imported:
    """Import the file at `path` as sessions of `agent`. `format` is one of `FORMATS`; by default the content tells it.

    Raises `SessionError`: no readable file, no known format, or nothing said in it.
    """
    work = partial(import_now, path, store, agent, format=format, again=again, blobs=blobs, earlier=earlier)
    return await anyio.to_thread.run_sync(work)


def import_now(
    path: Path,
    store: SessionStore,
    agent: str,
    *,
    format: str | None = None,
    again: bool = False,
    blobs: BlobStore | None = None,
    earlier: Earlier | None = None,
) -> Imported:
    """`import_session` for whoever may block."""
    if format is not None and format not in FORMATS:
        raise SessionError(f"there is no format {format!r}: give one of {', '.join(FORMATS)}")
    source = look_at(path)
    known = [] if again else (earlier or Earlier(store, agent)).origins()
    same = [(session, origin) for session, origin in known if origin.get("sha256") == source.sha256]
    if same:
        return Imported(path, str(same[0][1].get("format")), tuple(each for each, _ in same), None, known=True)
    read, report = read_file(source, format)
    origin = {
        "kind": "import",
        "format": report.format,
        "path": str(path.absolute()),
        "sha256": source.sha256,
        "size": source.size,
    }
    sessions = tuple(_write(each, number, store, agent, origin, blobs) for number, each in enumerate(read))
    grown = _grown(source, known, origin)
    return Imported(path, report.format, sessions, report, earlier=grown, titles=tuple(each.title for each in read))


def read_file(source: Source, format: str | None = None) -> tuple[list[Read], Report]:
    """The conversations of a file without writing them. Raises `SessionError`."""
    books, account, report = read_source(source, format)
    read = [Read(book.id, book.title, book.cwd, book.created, place(book.drafts, book.leaf)) for book in books]
    told = [each for each in read if each.entries]
    if not told:
        raise SessionError(f"{source.path} looks like a file of {report.format}, but nothing is said in it")
    return told, _reported(account, [book for book in books if book.drafts], report)


def _reported(account: Account, books: list[Book], report: Report) -> Report:
    sessions = {id(draft): number for number, book in enumerate(books) for draft in book.drafts}
    carried = {
        line: (sessions[id(draft)], draft.entry.id)
        for line, draft in account.carried.items()
        if draft.entry is not None and id(draft) in sessions
    }
    return replace(report, carried=carried, left=dict(account.left), partly=tuple(account.partly))


def _write(
    read: Read, number: int, store: SessionStore, agent: str, origin: dict[str, Any], blobs: BlobStore | None
) -> str:
    from uuid_utils import uuid7

    created = read.created or read.entries[0].at
    several = {"number": number} if number else {}
    header = Header(id=str(uuid7()), agent=agent, created=created, origin={**origin, **several})
    write_session(store.path(agent, header.id), header, read.entries, blobs)
    return header.id


def _grown(source: Source, known: list[tuple[str, Mapping[str, Any]]], origin: Mapping[str, Any]) -> str | None:
    """The session that a shorter state of this very file became, the newest one."""
    session: str
    for session, told in reversed(known):
        size, sha256 = told.get("size"), told.get("sha256")
        same_place = told.get("path") == origin["path"]
        if same_place and isinstance(size, int) and isinstance(sha256, str) and source.grown_from(size, sha256):
            return session
    return None
