"""The file of the ledger: made, opened, judged.

Synchronous. Laws: it is private to the user; a file that is not a sound ledger is never written to, thrown away or
mended, as what it holds back is money: `Unusable` says what is wrong with it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

VERSION = 1
_APPLICATION = 0x4D4F4F4E  # in the file's header: whose database it is
_PATIENCE = 10.0  # seconds to wait for another process
_AMOUNT = "INTEGER NOT NULL DEFAULT 0 CHECK (typeof({0}) = 'integer' AND {0} >= 0)"

#: `days` adds up what was spent, for whoever asks how much; `totals` is what caps are held against. `known` are the
#: workspaces with the moment of the first call that was counted, and whether those in their logs before it are, too.
_SCHEMA = f"""
CREATE TABLE totals (scope TEXT, key TEXT, spent {_AMOUNT.format("spent")}, held {_AMOUNT.format("held")}, touched TEXT,
    PRIMARY KEY (scope, key)) WITHOUT ROWID;
CREATE TABLE reserved (id INTEGER PRIMARY KEY, at REAL, day TEXT, agent TEXT, session TEXT, turn INTEGER, purpose TEXT,
    workspace TEXT, model TEXT, most {_AMOUNT.format("most")}, pid INTEGER, started TEXT, boot TEXT, place TEXT);
CREATE TABLE days (day TEXT, workspace TEXT, agent TEXT, model TEXT, purpose TEXT, calls INTEGER, plain INTEGER,
    read INTEGER, written INTEGER, output INTEGER, reasoning INTEGER, spent {_AMOUNT.format("spent")}, unknown INTEGER,
    PRIMARY KEY (day, workspace, agent, model, purpose)) WITHOUT ROWID;
CREATE TABLE warned (scope TEXT, key TEXT, cap INTEGER, PRIMARY KEY (scope, key, cap)) WITHOUT ROWID;
CREATE TABLE known (workspace TEXT PRIMARY KEY, since REAL, counted INTEGER) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
PRAGMA application_id = {_APPLICATION};
"""


class Unusable(Exception):
    """The ledger cannot be used now; the text says why, to be put after "because". `passing`: it may be, later."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing


def open_ledger(path: Path) -> sqlite3.Connection:
    """The ledger at `path`, made where there is none. Raises `Unusable`."""
    connection: sqlite3.Connection | None = None
    try:
        _make_private(path)
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema = OFF")
        # No WAL: its index is mapped into memory, and a process dies of a mapped file that another one cuts off.
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = FULL")  # a reservation outlives a power cut
        _judge(connection)
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        raise unusable(error) from error
    except Unusable:
        if connection is not None:
            connection.close()
        raise
    return connection


def unusable(error: sqlite3.Error | OSError) -> Unusable:
    """What an error means, in words."""
    if isinstance(error, OSError):
        return Unusable(f"its file cannot be opened ({error.strerror or error})")
    code = getattr(error, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return Unusable(f"another process holds it since {_PATIENCE:.0f} seconds", passing=True)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return Unusable("its file or folder cannot be written to")
        case sqlite3.SQLITE_FULL:
            return Unusable("the disk is full", passing=True)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOMEM:
            return Unusable(f"its file cannot be used ({error})", passing=True)
        case _:
            return Unusable(f"its file is damaged ({error})")


def moved_away(error: sqlite3.Error) -> bool:
    """Whether the file is no longer at its place: somebody removed it or put another there."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_DBMOVED


def _make_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # Only ever a file that nobody has open: to close a second descriptor of one gives up our locks on it (POSIX).
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not stat.S_ISREG(path.stat().st_mode):
        raise Unusable(f"{path} is not a file")


def _judge(connection: sqlite3.Connection) -> None:
    """See that this is a sound ledger; one is made where the file is empty. Raises `Unusable`, `sqlite3.Error`."""
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
    (version,), (whose,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    if whose != _APPLICATION:
        raise Unusable("its file is no spend ledger")
    if version != VERSION:
        raise Unusable(f"its file was written by another version of Moonwake (format {version}, this one is {VERSION})")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise Unusable(f"its file is damaged ({found})")
