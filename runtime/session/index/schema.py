"""The file of the index: made, opened, judged, thrown away.

Synchronous. Laws: the index is a mirror, so whatever is wrong with its file, it may be thrown away; nothing else in the
folder may. Opening and throwing away exclude each other between processes (a lock beside the file): nobody opens a
write-ahead log that belongs to another file of the same name. The database file goes first: SQLite then sees, in every
process that still has it open, that it was moved, and leaves the new one's files alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from filelock import FileLock, Timeout

_PATIENCE = 1.0  # seconds to wait for another process
_BESIDE = ("-wal", "-shm", "-journal")

#: What a row of `sessions` holds, but for its number and its seal. `look` is the file's stamp as one number, null when
#: it was not settled: a look at the folder needs nothing else, so it has an index of its own.
COLUMNS = (
    *("folder", "name", "look", "inode", "size", "mtime", "ctime", "settled", "skipped"),
    *("read_to", "checked", "tail", "whole"),
    *("id", "agent", "created", "channel", "origin", "kind"),
    *("said", "title", "models", "tags", "pinned", "archived", "cost", "messages", "calls"),
    *("leaf", "newest", "hidden", "sorted"),
)
_SESSIONS = f"""
CREATE TABLE sessions (number INTEGER PRIMARY KEY, {", ".join(COLUMNS)}, seal);
CREATE INDEX looked ON sessions (folder, name, look);
CREATE INDEX left_out ON sessions (folder, name, skipped) WHERE skipped IS NOT NULL;
CREATE INDEX listed ON sessions (sorted, id, agent, archived, skipped);
CREATE TABLE said (number INTEGER PRIMARY KEY, session, entry, who, current, text);
CREATE INDEX said_in ON said (session);
"""
_WORDS = "CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='ascii');"
_NAMES = {"sessions", "looked", "left_out", "listed", "said", "said_in", "words"}


class Refused(Exception):
    """The index cannot be used now; `reason` is one of those of `State.fallback`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Damaged(sqlite3.DatabaseError):
    """A row is not what was written."""


def reason_of(error: sqlite3.Error) -> str:
    """Why SQLite refuses, as a reason of `State.fallback`. What it cannot make sense of is corrupt."""
    code = getattr(error, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:  # the last: lost races for a lock
            return "locked"
        case sqlite3.SQLITE_READONLY:
            return "missing" if code == sqlite3.SQLITE_READONLY_DBMOVED else "read-only"
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_NOMEM:
            return "failed"
        case _:
            return "corrupt"


def has_full_text() -> bool:
    """Whether this SQLite has FTS5."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(_WORDS)
        except sqlite3.OperationalError:
            return False
    return True


def open_index(path: Path, full_text: bool) -> tuple[sqlite3.Connection, str | None]:
    """The index at `path`, and why it had to be made anew (`missing`, `corrupt`, `version`), if it had to.

    Raises `Refused`.
    """
    with _held(path):
        why: str | None = None
        for _ in range(2):
            if not os.path.lexists(path):
                why = why or "missing"
                _throw_away(path)
                _make_private(path)
            try:
                return _opened(path, full_text, new=why is not None), why
            except Refused as refused:
                if refused.reason not in ("corrupt", "version"):
                    raise
                why = refused.reason
                _throw_away(path)
        raise Refused(why or "failed")


def open_stand_in(full_text: bool, *, in_memory: bool = False) -> sqlite3.Connection:
    """An empty index that goes with its connection; SQLite keeps what is large of it in a temporary file, unless it
    has to stay `in_memory`."""
    connection = _connect(":memory:" if in_memory else "")
    connection.executescript(_schema(full_text))
    return connection


def throw_away(path: Path) -> None:
    """Remove the index with what belongs to it. Raises `Refused`."""
    with _held(path):
        _throw_away(path)


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _opened(path: Path, full_text: bool, *, new: bool) -> sqlite3.Connection:
    if not stat.S_ISREG(path.stat().st_mode):
        raise Refused("corrupt")
    connection: sqlite3.Connection | None = None
    try:
        connection = _connect(str(path))
        # No WAL: its index is mapped into memory, and a process dies of a mapped file that another one cuts off. That
        # happens when somebody merely reads and closes the file here, which gives up our locks on it (POSIX).
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = NORMAL")
        if new:
            connection.executescript(f"BEGIN; {_schema(full_text)} COMMIT;")
        _judge(connection, full_text)
    except (sqlite3.Error, Refused) as error:
        if connection is not None:
            connection.close()
        reason = error.reason if isinstance(error, Refused) else reason_of(error)
        if reason == "failed" and not os.access(path.parent, os.W_OK):
            reason = "read-only"
        raise Refused(reason) from error
    return connection


def _judge(connection: sqlite3.Connection, full_text: bool) -> None:
    """Raises `Refused` when this is no index, or one of another version."""
    if connection.execute("PRAGMA user_version").fetchone()[0] != _version(full_text):
        raise Refused("version")
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if not (_NAMES if full_text else _NAMES - {"words"}) <= names:
        raise Refused("corrupt")


def _schema(full_text: bool) -> str:
    return f"{_SESSIONS}{_WORDS if full_text else ''} PRAGMA user_version = {_version(full_text)};"


def _version(full_text: bool) -> int:
    """A number that changes with the tables and with what words are."""
    text = f"3 {_SESSIONS} {_WORDS if full_text else ''} {unicodedata.unidata_version}"
    return crc32(text.encode()) & 0x7FFFFFFF


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=_PATIENCE, thread_local=False)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise Refused("locked") from None
    except OSError as error:
        raise Refused("failed" if os.access(path.parent, os.W_OK) else "read-only") from error
    try:
        yield
    except OSError as error:
        raise Refused("failed" if os.access(path.parent, os.W_OK) else "read-only") from error
    finally:
        lock.release()


def _make_private(path: Path) -> None:
    """An empty file that only its user can read: what people say will be in it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _throw_away(path: Path) -> None:
    for each in (path, *(path.with_name(path.name + ending) for ending in _BESIDE)):
        try:
            each.unlink(missing_ok=True)
        except (IsADirectoryError, PermissionError):
            if not each.is_dir():
                raise
            _move_aside(each)


def _move_aside(folder: Path) -> None:
    """A folder that stands in the way is somebody's: it stays, under another name."""
    number = 1
    while os.path.lexists(aside := folder.with_name(f"{folder.name}.aside-{number}")):
        number += 1
    folder.rename(aside)
