"""The index of a sessions folder: lists and searches that are quick, right, and never an error.

Synchronous, for any thread: calls wait for each other. Laws:
- The index is a mirror of the files: written after them, never relied on where a file's stamp is another.
- Whatever happened to `index.sqlite`, an answer is given: where it cannot be used, the same tables are filled from the
  folder without it, the answer says why (`State.fallback`), and `counts` counts it. What is broken is thrown away and
  built again at once.
- An answer takes `patience` at most, some tenths of a second aside, and says how many files it is behind.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from ...errors import SessionError
from ..format.blobs import BlobStore
from ..names import file_name
from .folder import ENDING, Folder, Place
from .listing import Filter, Find, Listing, State
from .mirror import Mirror
from .schema import Refused, has_full_text, open_index, open_stand_in, reason_of, throw_away
from .words import parse_query

T = TypeVar("T")

PATIENCE = 2.0  # seconds
_TRIES = 3
_Trace = tuple[int, int, int]


class SessionIndex:
    """The index of the sessions in `folder`, in the file `path`. `blobs` is where large texts lie; `full_text` says
    whether to use FTS5 (None: where there is one)."""

    def __init__(
        self, folder: Path, path: Path, blobs: BlobStore | None = None, *, full_text: bool | None = None
    ) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()  # answers without the index, by reason
        self._folder = Folder(folder)
        self._blobs = blobs
        self._wanted_full_text = full_text
        self._guard = threading.RLock()
        self._mirror: Mirror | None = None
        self._trace: _Trace | None = None  # of the file when we left it
        self._stand_in: Mirror | None = None

    def list(self, wanted: Filter = Filter(), patience: float | None = PATIENCE) -> Listing:  # noqa: B008 - frozen
        """The sessions that `wanted` lets through, the newest first. `patience` None: wait until all is known."""
        (sessions, total), state = self._answer(lambda mirror: mirror.sessions(wanted), wanted, patience)
        return Listing(sessions, total, state)

    def search(
        self, text: str, wanted: Filter, limit: int, patience: float | None = PATIENCE
    ) -> tuple[tuple[Find, ...], State]:
        """The newest `limit` messages in which all words of `text` are said. Any text may be asked for."""
        query = parse_query(text)
        return self._answer(lambda mirror: mirror.messages(query, wanted, limit), wanted, patience)

    def catch_up(self, seconds: float | None = None) -> int:
        """Take in what changed, for at most `seconds`; how many files are left. For the background: nothing counts as
        an answer here, and without the file of the index nothing is done."""
        with self._guard:
            try:
                mirror, _ = self._open()
                mirror.catch_up(until=_moment(seconds))
                left = mirror.behind
            except (sqlite3.Error, Refused) as error:
                self._leave(error)
                return 0
            self._trace = _trace(self.path)
            return left

    def take_in(self, paths: Iterable[Path]) -> None:
        """Take in these session files, which have just been written."""
        places: list[Place] = [(path.parent.name, path.name) for path in paths if path.name.endswith(ENDING)]
        with self._guard:
            try:
                mirror, _ = self._open()
                mirror.take_in(places)
            except (sqlite3.Error, Refused) as error:
                self._leave(error)
                return
            self._trace = _trace(self.path)

    def rebuild(self) -> None:
        """Throw the index away and build it from the files: nothing of what was redacted is left in it.

        Raises `Refused` when it cannot be removed.
        """
        with self._guard:
            self.close()
            throw_away(self.path)
            self.catch_up()

    def close(self) -> None:
        """Give up the file; the next use opens it again."""
        with self._guard:
            for mirror in (self._mirror, self._stand_in):
                if mirror is not None:
                    mirror.connection.close()
            self._mirror = self._stand_in = None

    def __enter__(self) -> SessionIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, ask: Callable[[Mirror], T], wanted: Filter, patience: float | None) -> tuple[T, State]:
        agents = None if wanted.agent is None else _folders(wanted.agent)
        until = _moment(patience)
        with self._guard:
            why: str | None = None
            for _ in range(_TRIES):
                try:
                    mirror, anew = self._open()
                    why = why or anew
                    mirror.catch_up(agents, until)
                    answer = ask(mirror)
                except (sqlite3.Error, Refused) as error:
                    why = self._leave(error)
                    if why not in ("corrupt", "missing"):
                        break
                else:
                    self._trace = _trace(self.path)
                    self._drop_stand_in()
                    return answer, self._state(mirror, why if mirror.skipped or mirror.known else None)
            return self._without(ask, agents, until, why or "failed")

    def _without(
        self, ask: Callable[[Mirror], T], agents: Sequence[str] | None, until: float | None, why: str
    ) -> tuple[T, State]:
        """The answer from the folder alone."""
        try:
            if self._stand_in is None:
                self._stand_in = self._made(open_stand_in(self._full_text))
            mirror = self._stand_in
            mirror.catch_up(agents, until)
            answer = ask(mirror)
        except sqlite3.Error:  # no room for temporary files either
            self._drop_stand_in()
            mirror = self._stand_in = self._made(open_stand_in(self._full_text, in_memory=True))
            mirror.catch_up(agents, until)
            answer = ask(mirror)
        return answer, self._state(mirror, why)

    def _state(self, mirror: Mirror, why: str | None) -> State:
        if why is not None:
            self.counts[why] += 1
        return State(why, mirror.behind, dict(mirror.skipped))

    def _open(self) -> tuple[Mirror, str | None]:
        """The mirror in the file, and why it had to be begun anew. Raises `Refused`."""
        if self._mirror is not None and _trace(self.path) == self._trace:
            return self._mirror, None
        if self._mirror is not None:  # another process wrote to the file, or somebody replaced it: judge it again
            self._mirror.connection.close()
            self._mirror = None
        connection, why = open_index(self.path, self._full_text)
        self._mirror = self._made(connection)
        return self._mirror, why

    def _leave(self, error: sqlite3.Error | Refused) -> str:
        """Close a file that cannot be used, throw it away where it is broken; the reason."""
        reason = error.reason if isinstance(error, Refused) else reason_of(error)
        if self._mirror is not None:
            self._mirror.connection.close()
            self._mirror = None
        if reason == "corrupt":
            try:
                throw_away(self.path)
            except Refused as refused:
                return refused.reason
        return reason

    def _drop_stand_in(self) -> None:
        if self._stand_in is not None:
            self._stand_in.connection.close()
            self._stand_in = None

    def _made(self, connection: sqlite3.Connection) -> Mirror:
        return Mirror(connection, self._folder, self._full_text, self._blobs)

    @property
    def _full_text(self) -> bool:
        if self._wanted_full_text is None:
            self._wanted_full_text = has_full_text()
        return self._wanted_full_text


def _moment(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _folders(agent: str) -> list[str]:
    try:
        return [file_name(agent)]
    except SessionError:  # no agent can have that name
        return []


def _trace(path: Path) -> _Trace | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)
