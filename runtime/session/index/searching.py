"""Filters and queries as SQL over the index, and the answers from its rows.

Synchronous; nothing is written. A list is sorted by the newest message (where nothing was said: by the beginning),
finds by the time of the message. The number of a message in `said` begins with its time, so the full-text table gives
the newest finds first without reading the others.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from .listing import Filter, Find, SessionInfo, iso, moment_of
from .rows import SEPARATOR, info_of
from .schema import COLUMNS, Damaged
from .words import Query, passage

SAME_MOMENT = 20  # bits of a message's number below its time
_ROW = ", ".join(f"sessions.{each}" for each in (*COLUMNS, "seal"))
_CHECKED = 20_000  # characters of a find up to which it is checked against the query


def find_sessions(connection: sqlite3.Connection, wanted: Filter, root: Path) -> tuple[tuple[SessionInfo, ...], int]:
    """The sessions that `wanted` lets through, cut to its limit, and how many there are. Raises `sqlite3.Error`."""
    asked, values = _conditions(wanted)
    for moment, sign in ((wanted.since, ">="), (wanted.until, "<")):
        if moment is not None:
            asked.append(f"sessions.sorted {sign} ?")
            values.append(moment_of(moment.astimezone()))
    where = " AND ".join(asked)
    (total,) = connection.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone()
    rows = connection.execute(
        f"SELECT {_ROW} FROM sessions WHERE {where} ORDER BY sorted DESC, id DESC, agent DESC LIMIT ? OFFSET ?",
        [*values, -1 if wanted.limit is None else max(wanted.limit, 0), max(wanted.offset, 0)],
    )
    return tuple(info_of(row, root) for row in rows), total


def find_messages(
    connection: sqlite3.Connection, query: Query, wanted: Filter, limit: int, root: Path, full_text: bool
) -> tuple[Find, ...]:
    """The newest `limit` messages that fit, from the sessions that `wanted` lets through. Raises `sqlite3.Error`."""
    if not query.terms or limit <= 0:
        return ()
    asked, values = _conditions(wanted)
    tables, number = "said", "said.number"
    if full_text and query.match:
        tables, number = "words CROSS JOIN said ON said.number = words.rowid", "words.rowid"
        asked.insert(0, "words MATCH ?")
        values.insert(0, query.match)
        if query.literals:
            connection.create_function("fits", 1, query.has_literals)
            asked.append("fits(said.text)")
    else:
        connection.create_function("fits", 1, query.fits)
        asked.append("fits(said.text)")
    for moment, sign in ((wanted.since, ">="), (wanted.until, "<")):
        if moment is not None:
            asked.append(f"{number} {sign} ?")
            values.append(moment_of(moment.astimezone()) << SAME_MOMENT)
    rows = connection.execute(
        f"SELECT said.number, said.entry, said.who, said.current, said.text, {_ROW} FROM {tables} "
        f"CROSS JOIN sessions ON sessions.number = said.session WHERE {' AND '.join(asked)} "
        f"ORDER BY {number} DESC LIMIT ? OFFSET ?",
        [*values, limit, max(wanted.offset, 0)],
    )
    return tuple(_find(row, query, root) for row in rows)


def _find(row: tuple[Any, ...], query: Query, root: Path) -> Find:
    number, entry, who, current, text = row[:5]
    if not isinstance(text, str) or (len(text) <= _CHECKED and not query.fits(text)):
        raise Damaged("the full-text table and the messages are not of one piece")
    info = info_of(row[5:], root)
    return Find(
        session=info.id,
        agent=info.agent,
        entry=int(entry),
        who=who,
        at=iso(number >> SAME_MOMENT),
        passage=passage(text, query),
        current=bool(current),
        title=info.title,
        path=info.path,
    )


def _conditions(wanted: Filter) -> tuple[list[str], list[Any]]:
    """What `wanted` asks of a session, but for times."""
    asked: list[str] = ["sessions.skipped IS NULL"]
    values: list[Any] = []

    def ask(condition: str, *given: Any) -> None:
        asked.append(condition)
        values.extend(given)

    for column, exact in (("agent", wanted.agent), ("channel", wanted.channel)):
        if exact is not None:
            ask(f"sessions.{column} = ?", exact)
    for column, flag in (("pinned", wanted.pinned), ("archived", wanted.archived)):
        if flag is not None:
            ask(f"sessions.{column} = ?", int(flag))
    if wanted.empty is not None:
        ask("(sessions.messages = 0) = ?", int(wanted.empty))
    if wanted.tag is not None:
        ask("instr(sessions.tags, ?)", SEPARATOR + " ".join(wanted.tag.split()) + SEPARATOR)
    if wanted.min_cost is not None:
        ask("sessions.cost >= ?", wanted.min_cost)
    if wanted.max_cost is not None:
        ask("sessions.cost <= ?", wanted.max_cost)
    if wanted.model is not None:
        whole, alone = (f"{before}{wanted.model}{SEPARATOR}" for before in (SEPARATOR, "/"))
        ask("(instr(sessions.models, ?) OR instr(sessions.models, ?))", whole, alone)
    if wanted.origin is not None:
        ask("sessions.kind = ?", wanted.origin)
    return asked, values


__all__ = ["SAME_MOMENT", "find_messages", "find_sessions"]
