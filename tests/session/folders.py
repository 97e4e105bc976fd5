"""A sessions folder that things happen to, and what a plain reading of its files says about it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from governors.messages import Text
from runtime.session.entries import (
    ArchiveRecord,
    Header,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    Record,
    RedactRecord,
)
from runtime.session.format.codec import BadLine, encode_batch, encode_header
from runtime.session.format.reading import Reading, read_session
from runtime.session.index.listing import milliseconds
from runtime.session.index.words import parse_query
from runtime.session.names import file_name
from runtime.session.placing import place
from runtime.session.tree import Tree


class Sessions:
    """The files under `root`, written as bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._moment = 0

    def path(self, name: str, agent: str = "a") -> Path:
        return self.root / file_name(agent) / f"{file_name(name)}.jsonl"

    def create(self, name: str, agent: str = "a", **header: Any) -> Path:
        path = self.path(name, agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(encode_header(Header(id=name, agent=agent, created=self.tick(), **header)))
        return path

    def append(self, name: str, *records: Record, agent: str = "a") -> None:
        """As one batch, where the file is a session; a torn tail is cut off first, as the runtime does."""
        path = self.path(name, agent)
        try:
            reading = read_session(path.read_bytes())
        except (OSError, BadLine):
            return
        with path.open("r+b") as file:
            file.truncate(reading.good_length)
            file.seek(0, os.SEEK_END)
            if reading.unterminated:
                file.write(b"\n")
            file.write(encode_batch(place(Tree(reading.entries), records, self.tick())))

    def tick(self) -> str:
        self._moment += 1
        return f"2026-11-30T{self._moment // 3600:02}:{self._moment // 60 % 60:02}:{self._moment % 60:02}.000Z"

    def readings(self) -> dict[Path, Reading]:
        found = {}
        for path in self.root.glob("*/*.jsonl"):
            try:
                if path.is_symlink() or not path.is_file():
                    continue
                reading = read_session(path.read_bytes())
            except (OSError, BadLine):
                continue
            if path == self.path(reading.header.id, reading.header.agent):
                found[path] = reading
        return found


def facts(reading: Reading) -> dict[str, Any]:
    """What a list must say of a session, from all its entries."""
    records = [entry.record for entry in reading.entries]
    messages = [entry for entry in reading.entries if isinstance(entry.record, MessageRecord)]
    tags: list[str] = []
    for record in records:
        if isinstance(record, LabelRecord) and record.target is None:
            tags = [tag for tag in tags if tag != record.text] + ([record.text] if record.on else [])
    costs = [record.cost or 0.0 for record in records if isinstance(record, OutcomeRecord) and record.usage]
    return {
        "id": reading.header.id,
        "agent": reading.header.agent,
        "said": messages[-1].at if messages else None,
        "messages": len(messages),
        "tags": tuple(tags),
        "pinned": ([False] + [record.on for record in records if isinstance(record, PinRecord) and not record.target])[
            -1
        ],
        "archived": ([False] + [record.on for record in records if isinstance(record, ArchiveRecord)])[-1],
        "cost": sum(costs),
    }


def expected_list(sessions: Sessions) -> list[dict[str, Any]]:
    """Every session, the one with the newest message first."""
    found = [(reading, facts(reading)) for reading in sessions.readings().values()]
    key = lambda each: (milliseconds(each[1]["said"] or each[0].header.created), each[1]["id"])  # noqa: E731
    return [told for _, told in sorted(found, key=key, reverse=True)]


def expected_finds(sessions: Sessions, typed: str) -> set[tuple[str, int, str, bool]]:
    """Every message that fits: session, entry, who, whether it is on the current branch."""
    query = parse_query(typed)
    found = set()
    for reading in sessions.readings().values():
        tree = Tree(reading.entries)
        hidden = {entry.record.target for entry in reading.entries if isinstance(entry.record, RedactRecord)}
        branch = {entry.id for entry in tree.branch()}
        for entry in reading.entries:
            if isinstance(entry.record, MessageRecord) and entry.id not in hidden:
                text = "\n\n".join(part.text for part in entry.record.content if isinstance(part, Text))
                if query.fits(text):
                    found.add((reading.header.id, entry.id, entry.record.role, entry.id in branch))
    return found


def garbage(path: Path, seed: int) -> None:
    """Overwrite a stretch of the file."""
    if not path.is_file() or not path.stat().st_size:
        return
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(seed % size)
        file.write(bytes((seed * each + each) % 256 for each in range(1, 2 + seed % 600)))


def undo(target: int | None) -> LeafRecord:
    return LeafRecord(leaf=target)


def half_a_schema(path: Path) -> None:
    """Drop a table from the index."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE IF EXISTS said")
    connection.close()


def another_version(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
