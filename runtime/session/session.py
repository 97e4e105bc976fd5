"""A session: its log file and its tree, appended to from the event loop.

Laws: what `append` returns is on disk, or counted in `unsaved`; appends of one session are in the order of their
calls; an append that was begun is finished even when its task is cancelled, so the tree never differs from the file
and what is unsaved (also when a host cancels the task in asyncio's own way, which no shield keeps out).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from .entries import Entry, Header, Record
from .format.blobs import BlobStore
from .format.reading import Finding
from .opening import create_log, open_log, read_rest
from .placing import needs_older
from .tree import Tree
from .writing.log import LogFile
from .writing.writer import Writer


class Session:
    """Open one with `create_session` or `open_session`. `now` gives the time of an entry (UTC, ISO 8601).

    `tree` may hold only the newest entries (`tree.complete`): all that the model, waiting input, settings and spending
    need. Whoever needs older ones asks for the `whole` first. `findings` say what is wrong with the file, as far as
    it was read.
    """

    def __init__(
        self, header: Header, log: LogFile, tree: Tree, now: Callable[[], str], findings: tuple[Finding, ...] = ()
    ) -> None:
        self.header = header
        self.path = log.path
        self.tree = tree
        self.findings = findings
        self.blobs = log.blobs
        self._rest = anyio.Lock()  # of whoever reads it
        self._writer = Writer(header, log, lambda: self.tree, now)

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def agent(self) -> str:
        return self.header.agent

    def branch(self) -> Sequence[Entry]:
        return self.tree.branch()

    async def whole(self) -> Tree:
        """The tree with everything in it: what opening left out is read now, once. Raises `SessionError`."""
        async with self._rest:
            if not self.tree.complete:
                reading = await anyio.to_thread.run_sync(partial(read_rest, self.path, self.findings, self.blobs))
                async with self._writer.lock:  # a thread may be placing entries
                    self.tree.complete_with(reading.entries)
                    self.findings = reading.broken
        return self.tree

    @property
    def unsaved(self) -> int:
        """How many entries, the newest, are in memory only, as the disk refused them."""
        return self._writer.unsaved

    @property
    def outage(self) -> str | None:
        """Why the disk refuses, in the system's words, while something is unsaved."""
        return self._writer.outage

    @property
    def closed(self) -> bool:
        return self._writer.closed

    def is_saved(self, entry: int) -> bool:
        """Whether the entry with that id is on disk."""
        return self._writer.is_saved(entry)

    def when_saving_changes(self, call: Callable[[], None]) -> None:
        """Have `call` called when the disk begins to refuse, and when everything is saved again."""
        self._writer.changed = call

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        """Record `records` as one batch on the current leaf; the entries come back as the file holds them.

        When the disk refuses they come back all the same: they are in memory, `unsaved` counts them, and they are
        written before anything newer. Raises `SessionError` when the session is closed, `ValueError` or `TypeError`
        for a record that could not be read back.
        """
        if needs_older(self.tree, records):
            await self.whole()
        return await self._writer.append(records)

    async def save(self) -> bool:
        """Try to write what is unsaved. Whether everything is on disk now."""
        return await self._writer.save()

    async def wait_settled(self) -> None:
        """Wait until nothing is unsaved, or the session is closed."""
        await self._writer.wait_settled()

    async def close(self) -> None:
        """Close the file and give up the lock; a second call does nothing. A session without entries leaves no file.

        What is unsaved is tried once more. Raises `SessionError` when the disk still refuses: its text names the file
        in the system's temporary folder that holds those entries, or says how many are lost.
        """
        await self._writer.close(discard=lambda: not len(self.tree) and not self.findings)


async def create_session(path: Path, header: Header, now: Callable[[], str], blobs: BlobStore | None = None) -> Session:
    """A new session in `path`; large content goes to `blobs`. Raises `SessionError` or `SessionLocked`."""
    log = await anyio.to_thread.run_sync(partial(create_log, path, header, blobs=blobs))
    return Session(header, log, Tree(), now)


async def open_session(path: Path, now: Callable[[], str], blobs: BlobStore | None = None) -> Session:
    """Open an existing session; `findings` tell what was wrong with its file. Raises `SessionError`."""
    log, reading = await anyio.to_thread.run_sync(partial(open_log, path, blobs=blobs))
    tree = Tree(reading.entries, complete=reading.complete, copied=reading.header.copied)
    return Session(reading.header, log, tree, now, reading.findings)
