"""A session: its log file and its tree, appended to from the event loop.

Laws: what `append` returns is on disk; appends of one session are in the order of their calls; an append that was
begun is finished even when its task is cancelled, so the tree never differs from the file (also when a host cancels
the task in asyncio's own way, which no shield keeps out).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from ..errors import SessionError
from .entries import Entry, Header, Record
from .log import LogFile
from .opening import create_log, open_log
from .placing import place
from .reading import Finding
from .tree import Tree


class _Write:
    """One append in a worker thread, and what came of it even if nobody waited for the thread."""

    def __init__(self, log: LogFile, entries: Sequence[Entry]) -> None:
        self._log = log
        self._entries = entries
        self._claim = threading.Lock()  # whoever takes it decides whether the append happens
        self._ended = threading.Event()
        self._written: tuple[Entry, ...] = ()

    def run(self) -> None:
        if self._claim.acquire(blocking=False):
            try:
                self._written = self._log.append(self._entries)
            finally:
                self._ended.set()

    def settle(self) -> tuple[Entry, ...]:
        """What is in the file now: all of the entries or none. Prevents an append that has not begun.

        Waits, blocking, for one that has; after `run` has returned there is nothing to wait for.
        """
        if not self._claim.acquire(blocking=False):
            self._ended.wait()
        return self._written


class Session:
    """Open one with `create_session` or `open_session`. `now` gives the time of an entry (UTC, ISO 8601)."""

    def __init__(
        self, header: Header, log: LogFile, tree: Tree, now: Callable[[], str], findings: tuple[Finding, ...] = ()
    ) -> None:
        self.header = header
        self.path = log.path
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

    def branch(self) -> Sequence[Entry]:
        return self.tree.branch()

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        """Record `records` as one batch on the current leaf; the entries come back as the file holds them.

        Raises `SessionError` when the disk refuses or the session is closed.
        """
        async with self._lock:
            if self._log is None:
                raise SessionError(f"the session {self.id} is closed")
            if not records:
                return ()
            write = _Write(self._log, place(self.tree, records, self._now()))
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(write.run)
            finally:
                entries = write.settle()
                for entry in entries:
                    self.tree.add(entry)
        return entries

    async def close(self) -> None:
        """Close the file and give up the lock; a second call does nothing. A session without entries leaves no file."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                log, self._log = self._log, None
                if log is not None:
                    await anyio.to_thread.run_sync(partial(log.close, discard=not len(self.tree) and not self.findings))


async def create_session(path: Path, header: Header, now: Callable[[], str]) -> Session:
    """A new session in `path`. Raises `SessionError` or `SessionLocked`."""
    log = await anyio.to_thread.run_sync(create_log, path, header)
    return Session(header, log, Tree(), now)


async def open_session(path: Path, now: Callable[[], str]) -> Session:
    """Open an existing session; `findings` tell what was wrong with its file. Raises `SessionError`."""
    log, reading = await anyio.to_thread.run_sync(open_log, path)
    findings = reading.broken if reading.torn is None else (*reading.broken, reading.torn)
    return Session(reading.header, log, Tree(reading.entries), now, findings)
