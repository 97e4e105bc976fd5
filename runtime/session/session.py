"""A session: its log file and its tree, appended to from the event loop.

Laws: what `append` returns is on disk; appends of one session are in the order of their calls; an append that was
begun is finished even when its task is cancelled, so the tree never differs from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from ..errors import SessionError
from .entries import OFF_BRANCH, Entry, Header, HeadRecord, Record, ResultRecord
from .log import LogFile, create_log, open_log
from .reading import Finding
from .tree import Tree


class Session:
    """Open one with `create_session` or `open_session`. `now` gives the time of an entry (UTC, ISO 8601)."""

    def __init__(
        self, header: Header, log: LogFile, tree: Tree, now: Callable[[], str], findings: tuple[Finding, ...] = ()
    ) -> None:
        self.header = header
        self.tree = tree
        self.findings = findings
        self._log: LogFile | None = log
        self._now = now
        self._lock = anyio.Lock()

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def agent(self) -> str:
        return self.header.agent

    @property
    def path(self) -> Path:
        return self._open_log().path

    def branch(self) -> Sequence[Entry]:
        return self.tree.branch()

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        """Record `records` as one batch on the current leaf. Raises `SessionError` when the disk refuses."""
        async with self._lock:
            entries = self._place(records)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._open_log().append, entries)
            for entry in entries:
                self.tree.add(entry)
        return entries

    async def close(self) -> None:
        """Close the file and give up the lock; a second call does nothing."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                log, self._log = self._log, None
                if log is not None:
                    await anyio.to_thread.run_sync(log.close)

    def _open_log(self) -> LogFile:
        if self._log is None:
            raise SessionError(f"the session {self.header.id} is closed")
        return self._log

    def _place(self, records: Sequence[Record]) -> tuple[Entry, ...]:
        """Give each record its id, time and parent: each hangs on the one before it in the batch."""
        at = self._now()
        parent = self.tree.leaf
        entries = []
        for number, record in enumerate(records):
            identity = self.tree.next_id + number
            if isinstance(record, HeadRecord) and record.resume == 0:
                record = replace(record, resume=identity)  # 0: the head itself, whose id is known only here
            where = parent
            if isinstance(record, ResultRecord):
                where = self.tree.parent_for_result(record.call) if parent == self.tree.leaf else parent
            entries.append(Entry(identity, where, at, record))
            if not isinstance(record, OFF_BRANCH) and where == parent:
                parent = identity
        return tuple(entries)


async def create_session(path: Path, header: Header, now: Callable[[], str]) -> Session:
    """A new session in `path`. Raises `SessionError` or `SessionLocked`."""
    log = await anyio.to_thread.run_sync(create_log, path, header)
    return Session(header, log, Tree(), now)


async def open_session(path: Path, now: Callable[[], str]) -> Session:
    """Open an existing session; `findings` tell what was wrong with its file. Raises `SessionError`."""
    log, reading = await anyio.to_thread.run_sync(open_log, path)
    findings = reading.broken if reading.torn is None else (*reading.broken, reading.torn)
    return Session(reading.header, log, Tree(reading.entries), now, findings)
