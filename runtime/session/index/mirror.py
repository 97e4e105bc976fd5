"""One database that mirrors a sessions folder: what it knows, what it takes in, what it answers.

Synchronous, one thread at a time; every method may raise `sqlite3.Error`. Laws: it learns from the files alone; a file
and what is said in it change in one transaction; what another process wrote into the same database is seen before it
is relied on.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from ..format.blobs import BlobStore
from .folder import Folder, Place
from .following import Change, follow, look_of
from .indexing import Said
from .listing import Filter, Find, SessionInfo
from .rows import row_of, seen_of
from .schema import COLUMNS
from .searching import SAME_MOMENT, find_messages, find_sessions
from .words import Query, words

_TRANSACTION = 0.1  # seconds of work that others who write wait for
_NO_FILES = ("folder", "link", "no file")  # what came in place of a session; the look at the folder counts it
_SLOTS = 1 << SAME_MOMENT
_ROW = ", ".join((*COLUMNS, "seal"))
_MARKS = ", ".join("?" * (len(COLUMNS) + 2))
_LARGEST = 2**63 - 1


class Mirror:
    """`folder` is looked at, `connection` holds the tables of `index_schema`, `full_text`: with FTS5."""

    def __init__(
        self, connection: sqlite3.Connection, folder: Folder, full_text: bool, blobs: BlobStore | None = None
    ) -> None:
        self.connection = connection
        self._folder = folder
        self._full_text = full_text
        self._blobs = blobs
        self._version: int | None = None
        self._known: dict[str, dict[str, int | None]] = {}  # by folder and file, as `Folder.look` wants it
        self._skipped: dict[Place, str] = {}  # what is no session, and why
        self.skipped: Counter[str] = Counter()
        self.behind = 0  # files

    def catch_up(self, agents: Sequence[str] | None = None, until: float | None = None) -> bool:
        """Take in what changed in the folders `agents` (None: all), until the moment `until` (`time.monotonic`).

        `behind` is what there was no time for, `skipped` what is no session. Whether anything changed.
        """
        self._learn()
        look = self._folder.look(self._known, agents, until)
        places = [*look.gone, *look.changed]
        left = self.take_in(places, until)
        self.behind = look.unseen + left
        reasons = (why for place, why in self._skipped.items() if agents is None or place[0] in agents)
        self.skipped = look.skipped + Counter(reasons)
        return left < len(places)

    def take_in(self, places: Sequence[Place], until: float | None = None) -> int:
        """Read these files anew, or what was appended to them; how many there was no time for."""
        done = 0
        while done < len(places) and (until is None or time.monotonic() < until):
            with self._transaction():
                began = time.monotonic()
                while done < len(places) and time.monotonic() - began < _TRANSACTION:
                    self._take_in(places[done])
                    done += 1
        return len(places) - done

    @property
    def known(self) -> int:
        """How many files it knows."""
        return sum(map(len, self._known.values()))

    def sessions(self, wanted: Filter) -> tuple[tuple[SessionInfo, ...], int]:
        return find_sessions(self.connection, wanted, self._folder.path)

    def messages(self, query: Query, wanted: Filter, limit: int) -> tuple[Find, ...]:
        return find_messages(self.connection, query, wanted, limit, self._folder.path, self._full_text)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:  # an interrupt too leaves nothing half done
            self._version = None  # what was noted of it did not happen
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def _learn(self) -> None:
        """Know what the database knows, if another connection wrote to it."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return
        self._known = {}
        for (folder,) in self.connection.execute("SELECT DISTINCT folder FROM sessions").fetchall():
            asked = "SELECT name, look FROM sessions WHERE folder = ?"
            self._known[folder] = dict(self.connection.execute(asked, (folder,)))
        asked = "SELECT folder, name, skipped FROM sessions WHERE skipped IS NOT NULL"
        self._skipped = {(folder, name): why for folder, name, why in self.connection.execute(asked)}
        self._version = version

    def _note(self, place: Place, change: Change | None) -> None:
        folder, name = place
        self._skipped.pop(place, None)
        self._known.setdefault(folder, {}).pop(name, None)
        if change is not None:
            mark = change.seen.mark
            self._known[folder][name] = look_of(mark.stamp) if mark.settled else None
            if change.seen.skipped is not None:
                self._skipped[place] = change.seen.skipped

    def _take_in(self, place: Place) -> None:
        asked = f"SELECT number, {_ROW} FROM sessions WHERE folder = ? AND name = ?"
        row = self.connection.execute(asked, place).fetchone()
        number, before = (None, None) if row is None else (row[0], seen_of(row[1:]))
        change = follow(self._folder.path / place[0] / place[1], before, self._blobs)
        if change is None or change.seen.skipped in _NO_FILES:
            change = None
            if number is not None:
                self._say(place, number, (), anew=True)
                self.connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
        elif before is None or change.seen != before or change.anew:
            values = (number, *row_of(place, change.seen))
            written = self.connection.execute(f"REPLACE INTO sessions (number, {_ROW}) VALUES ({_MARKS})", values)
            self._say(place, int(written.lastrowid or 0), change.said, anew=change.anew)
        self._note(place, change)

    def _say(self, place: Place, session: int, said: Sequence[Said], *, anew: bool) -> None:
        """Put down what is said in a session: `anew` all of it, writing only what is not there yet."""
        new = {each.entry: each for each in said}
        asked = "SELECT number, entry, who, current, text FROM said WHERE session = ?"
        for number, entry, who, current, text in self.connection.execute(asked, (session,)).fetchall() if anew else ():
            now = new.get(int(entry))
            if now is None or (now.at, now.who, now.text) != (number >> SAME_MOMENT, who, text):
                self._unsay(number, text)
                continue
            del new[now.entry]
            if now.current != bool(current):
                self.connection.execute("UPDATE said SET current = ? WHERE number = ?", (int(now.current), number))
        first = crc32("/".join(place).encode())
        for each in new.values():
            number = self._free(each.at, first + each.entry)
            entry = each.entry if each.entry <= _LARGEST else str(each.entry)
            values: tuple[Any, ...] = (number, session, entry, each.who, int(each.current), each.text)
            self.connection.execute("INSERT INTO said VALUES (?, ?, ?, ?, ?, ?)", values)
            if self._full_text:
                line = " ".join(words(each.text))
                self.connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, line))

    def _unsay(self, number: int, text: str) -> None:
        if self._full_text:
            line = " ".join(words(text))
            self.connection.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (number, line))
        self.connection.execute("DELETE FROM said WHERE number = ?", (number,))

    def _free(self, at: int, wanted: int) -> int:
        """A number for a message: its time, and below that the first place that is free from `wanted` on."""
        asked = "SELECT 1 FROM said WHERE number = ?"
        for step in range(_SLOTS):
            number = (at << SAME_MOMENT) | (wanted + step) % _SLOTS
            if self.connection.execute(asked, (number,)).fetchone() is None:
                return number
        raise sqlite3.IntegrityError("more messages of one moment than there are places")
