"""Where sessions lie, and how they are found: `<folder>/<agent>/<session>.jsonl`.

Names of files: `names.py`. Lists and searches come from the index beside the folder, which the store keeps up to date
while `keep_index` runs. What begins a session, opens one, or finds one by its name or a part of its id reads the folder
alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from ..errors import SessionError
from .entries import Header
from .format.blobs import BlobStore, FolderBlobs
from .format.codec import BadLine, decode_header
from .index.listing import Filter as Filter
from .index.listing import Find as Find
from .index.listing import Listing as Listing
from .index.listing import SessionInfo as SessionInfo
from .index.listing import State as State
from .names import file_name as file_name
from .names import is_file_name, is_part, name_in
from .names import is_generated as is_generated
from .session import Session, create_session, open_session

if TYPE_CHECKING:
    from .index.index import SessionIndex

T = TypeVar("T")

ENDING = ".jsonl"
PATIENCE = 2.0  # seconds that a list or a search may take to bring the index up to date
_SLICE = 0.2  # seconds of work in the background that a list would wait for
_ALL = Filter()


class SessionStore:
    """The sessions of a workspace. `new_id` gives session ids (uuid7), `now` the time (UTC, ISO 8601). The index is
    `index.sqlite` beside `folder`; large content goes to `blobs` (None: to the folder `blobs` beside it)."""

    def __init__(
        self, folder: Path, new_id: Callable[[], str], now: Callable[[], str], blobs: BlobStore | None = None
    ) -> None:
        self.folder = folder
        self.blobs: BlobStore = FolderBlobs(folder.parent / "blobs") if blobs is None else blobs
        self.searched: State = State()  # how well the newest search was founded
        self._new_id = new_id
        self._now = now
        self._changed: set[Path] = set()
        self._limiter = anyio.CapacityLimiter(1)

    @cached_property
    def index(self) -> SessionIndex:
        from .index.index import SessionIndex  # with SQLite: not loaded before somebody lists

        blobs = self.blobs
        if isinstance(blobs, FolderBlobs):  # what a talk has just read stays in memory, whatever is indexed
            blobs = FolderBlobs(blobs.folder, cached=0)
        return SessionIndex(self.folder, self.folder.parent / "index.sqlite", blobs)

    def path(self, agent: str, session: str) -> Path:
        return self.folder / file_name(agent) / f"{file_name(session)}{ENDING}"

    def header(
        self,
        agent: str,
        session: str | None = None,
        *,
        channel: str | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> Header:
        """The first line of a session that begins now, named or with an id of its own."""
        identity = session or self._new_id()
        return Header(id=identity, agent=agent, created=self._now(), channel=channel, origin=origin)

    async def create(self, agent: str, session: str | None = None, *, channel: str | None = None) -> Session:
        """A new session, named or with an id of its own, begun on `channel`. Raises `SessionError`."""
        header = self.header(agent, session, channel=channel)
        path = self.path(agent, header.id)
        try:
            await anyio.to_thread.run_sync(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        except OSError as error:
            raise SessionError(f"cannot create the folder {path.parent} for sessions: {error.strerror}") from error
        return await create_session(path, header, self._now, self.blobs)

    async def open(self, agent: str, session: str) -> Session:
        """Open a session by its id or name. Raises `SessionError`, `SessionLocked`."""
        return await open_session(self.path(agent, session), self._now, self.blobs)

    def exists(self, agent: str, session: str) -> bool:
        return self.path(agent, session).is_file()

    def matching(self, agent: str, part: str) -> tuple[str, ...]:
        """The ids that begin or end with `part` (6 characters or more), the session that was written last first.

        Only ids that were made here count, for people who type what a screen showed: a name of one's own is always
        meant whole, as `tax` may be another session than `taxes`. Only names are read: the index is not asked.
        """
        if not is_part(part):
            return ()
        found = []
        for name in _names(self.folder / file_name(agent)):
            session = name.removesuffix(ENDING)
            if is_generated(session) and (session.startswith(part) or session.endswith(part)):
                changed = self._written(agent, session)
                found += [] if changed is None else [(changed, session)]
        return tuple(session for _, session in sorted(found, reverse=True))

    def alike(self, agent: str, part: str) -> Iterator[str]:
        """The names of `agent`'s sessions as they stand in the folder, whatever is there under them: the one that is
        called `part`, and ids that were made here and begin or end with it. Blocks."""
        for name in _names(self.folder / file_name(agent)):
            session = name_in(name.removesuffix(ENDING))
            is_meant = is_part(part) and is_generated(session) and (session.startswith(part) or session.endswith(part))
            if session == part or is_meant:
                yield session

    def agents(self) -> tuple[str, ...]:
        """The names of all agents that have a folder. Blocks."""
        return tuple(sorted(map(name_in, filter(is_file_name, _listed(self.folder)))))

    def list(self, agent: str | None = None, filter: Filter = _ALL, *, patience: float | None = PATIENCE) -> Listing:
        """The sessions of `agent` (None: of all) that `filter` lets through, the one with the newest message first.

        Blocks: call it in a thread, or through `ask`. Takes `patience` seconds, some tenths aside, to learn what
        changed in the folder (None: as long as it needs); `Listing.behind` says what there was no time for. What is no
        session, or a copy under another name, is left out and counted in `Listing.skipped`. Never raises: where the
        index cannot be used, the folder is read, and `Listing.fallback` says why.
        """
        return self.index.list(_of(agent, filter), patience)

    def search(
        self, text: str, filter: Filter = _ALL, limit: int = 20, *, patience: float | None = PATIENCE
    ) -> tuple[Find, ...]:
        """The newest `limit` messages in which people or agents said all words of `text`, on any branch.

        Words are found by their beginnings, whatever their case and accents; `"what stands in quotes"` is found as it
        is. Blocks as `list` does; `searched` is then what `Listing.state` is for a list.
        """
        finds, self.searched = self.index.search(text, filter, limit, patience)
        return finds

    def newest(self, agent: str) -> SessionInfo | None:
        """The session of `agent` with the newest message, archived ones aside. Blocks."""
        found = self.list(agent, Filter(empty=False, limit=1))
        return found[0] if found else None

    def near(self, agent: str, wanted: str, limit: int = 5) -> tuple[str, ...]:
        """The ids and names of `agent`'s sessions that are most like `wanted`, for whoever mistyped one. Blocks."""
        from difflib import get_close_matches

        known = [info.id for info in self.list(agent, Filter(archived=None))]
        return tuple(get_close_matches(wanted, known, n=limit, cutoff=0.5))

    async def ask(self, question: Callable[[], T]) -> T:
        """Run `list`, `search` or another blocking call in the thread of the index: `ask(lambda: store.list("a"))`."""
        return await anyio.to_thread.run_sync(question, limiter=self._limiter)

    def changed(self, path: Path) -> None:
        """Say that something was written to the session file `path`; `keep_index` or `update_index` takes it in."""
        self._changed.add(path)

    async def update_index(self) -> None:
        """Take the files that `changed` named into the index. What fails is left for the next list."""
        paths, self._changed = self._changed, set()
        if paths:
            await self.ask(partial(self._take_in, paths))

    async def keep_index(self) -> None:
        """Take in whatever changed in the folder since the index was written, little by little."""
        left = 1
        while left:
            left = await self.ask(partial(self._catch_up, _SLICE))
            await anyio.sleep(_SLICE)  # whoever lists or searches comes first

    async def leave_index(self) -> None:
        """Take in what `changed` named and give up the file; the next use opens it again."""
        await self.update_index()
        if "index" in self.__dict__:
            await self.ask(self.index.close)

    def _take_in(self, paths: set[Path]) -> None:
        self.index.take_in(paths)

    def _catch_up(self, seconds: float) -> int:
        return self.index.catch_up(seconds)

    def _written(self, agent: str, session: str) -> float | None:
        """When a session was last written (seconds since 1970); None for what is none."""
        path = self.path(agent, session)
        try:
            if path.is_symlink() or not path.is_file():  # opening a pipe would wait for ever
                return None
            with path.open("rb") as file:
                header = decode_header(file.readline(65_536))
            return path.stat().st_mtime if (header.agent, header.id) == (agent, session) else None
        except (OSError, BadLine):
            return None


def _names(folder: Path) -> list[str]:
    return [name for name in _listed(folder) if name.endswith(ENDING)]


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, quickly
    except OSError:
        return []


def _of(agent: str | None, filter: Filter) -> Filter:
    return filter if agent is None else replace(filter, agent=agent)
