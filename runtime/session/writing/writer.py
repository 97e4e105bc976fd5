"""The writing side of a session: appends in order, and what the disk refused until it takes it.

Laws: appends are in the order of their calls; all that wait for the same session are one write; an append that was
begun is finished even when its task is cancelled, also when a host cancels the task in asyncio's own way, which no
shield keeps out. What the disk refuses lives on in memory, is counted as unsaved, and is written, in order, before
anything newer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread

from ...errors import SessionError
from ..entries import Entry, Header, Record
from ..tree import Tree
from .appends import Append, encode_late, is_small, prepare
from .commit import COMMITTER
from .handover import Commit
from .log import LogFile, why
from .rescue import rescue, told

_MOST_AT_ONCE = 16  # appends in a row without waiting for anything; then others get their turn


class Writer:
    """`tree` gives the tree that appends extend, `now` the time of an entry. `changed` is called when the disk begins
    to refuse and when everything is saved again."""

    def __init__(self, header: Header, log: LogFile, tree: Callable[[], Tree], now: Callable[[], str]) -> None:
        self.changed: Callable[[], None] | None = None
        self.outage: str | None = None  # why the disk refuses, while something is unsaved
        self.lock = anyio.Lock(fast_acquire=True)
        self._header = header
        self._log: LogFile | None = log
        self._tree = tree
        self._now = now
        self._waiting: list[Append] = []
        self._backlog: list[Append] = []
        self._settled = anyio.Event()
        self._at_once = 0

    @property
    def unsaved(self) -> int:
        """How many entries are in memory only."""
        return sum(len(each.entries) for each in self._backlog)

    @property
    def closed(self) -> bool:
        return self._log is None

    def is_saved(self, entry: int) -> bool:
        return not self._backlog or entry < self._backlog[0].entries[0].id

    async def append(self, records: Sequence[Record]) -> tuple[Entry, ...]:
        """The entries that `records` became, saved or not. Raises `SessionError` when the session is closed."""
        if self._at_once < _MOST_AT_ONCE:
            await anyio.lowlevel.checkpoint_if_cancelled()
        else:
            self._at_once = 0
            await anyio.lowlevel.checkpoint()
        append = Append(records)
        if self._is_at_once(append):
            self._at_once += 1
            if append.error is not None:
                raise append.error
            return append.entries
        self._waiting.append(append)
        try:
            async with self.lock:
                if not append.settled:
                    await self._write_waiting()
        finally:
            if not append.settled:
                self._waiting.remove(append)
        if append.error is not None:
            raise append.error
        return append.entries

    async def save(self) -> bool:
        """Try to write what is unsaved; whether nothing is unsaved any more."""
        if self._backlog:
            async with self.lock:
                if self._backlog and self._log is not None:
                    await self._write(self._log, [])
        return not self._backlog

    async def wait_settled(self) -> None:
        """Wait until nothing is unsaved, or the session is closed."""
        while self._backlog and self._log is not None:
            await self._settled.wait()

    async def close(self, *, discard: Callable[[], bool]) -> None:
        """Close the file and give up the lock; a second call does nothing. Raises `SessionError` that tells where the
        entries are that could not be saved."""
        with anyio.CancelScope(shield=True):
            async with self.lock:
                log = self._log
                if log is None:
                    return
                if self._backlog:
                    await self._write(log, [])
                self._log = None
                self._settled.set()
                problem = await anyio.to_thread.run_sync(self._part, log, discard())
        if problem is not None:
            raise SessionError(problem)

    def _part(self, log: LogFile, discard: bool) -> str | None:
        try:
            if not self._backlog:
                return None
            saved: Path | OSError
            try:
                saved = rescue(self._header, [each.placed for each in self._backlog])
            except OSError as error:
                saved = error
            return told(log.path, self.unsaved, self.outage or "", saved)
        finally:
            COMMITTER.leave(log)
            log.close(discard=discard)

    def _is_at_once(self, append: Append) -> bool:
        """Append it without waiting for anything but the disk, where nobody else waits and that is quick."""
        log = self._log
        if log is None or not COMMITTER.is_quick(log):
            return False
        if self._waiting or self._backlog or self.lock.locked() or not all(map(is_small, append.records)):
            return False
        prepare(log, self._tree(), [append], self._now)
        if append.lines:
            commit = COMMITTER.commit_here(log, append.lines)
            if commit is None:
                return False
            self._keep([append], commit.error)
        return True

    async def _write_waiting(self) -> None:
        if self._log is None:
            raise SessionError(f"the session {self._header.id} is closed")
        appends = list(self._waiting)
        make = partial(prepare, self._log, self._tree(), appends, self._now)
        if all(is_small(record) for append in appends for record in append.records):
            make()
        else:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(make)
        await self._write(self._log, appends)

    async def _write(self, log: LogFile, appends: list[Append]) -> None:
        """Bring the backlog and `appends` to the disk, and say what came of it."""
        for append in appends:
            if append.error is not None:
                self._settle(append)
        appends = [append for append in appends if append.error is None]
        lines = await self._lines(log, appends)
        if isinstance(lines, OSError):
            self._keep(appends, lines)
            return
        if not lines:
            return
        commit = COMMITTER.commit(log, lines)
        try:
            with anyio.CancelScope(shield=True):
                await _ended(commit)
        finally:
            if not commit.prevent():
                commit.wait()
                self._keep(appends, commit.error)

    async def _lines(self, log: LogFile, appends: list[Append]) -> bytes | OSError:
        """All that is to be written, or why it cannot be: large content that the disk refuses."""
        late = [each for each in (*self._backlog, *appends) if each.lines is None]
        if late:
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(encode_late, log, late)
            except OSError as error:
                return error
        return b"".join(each.lines or b"" for each in (*self._backlog, *appends))

    def _keep(self, appends: list[Append], error: Exception | None) -> None:
        """Take the entries into the tree; those that are not saved stay in mind."""
        if error is not None and not isinstance(error, OSError):
            for append in appends:
                append.error = error
                self._settle(append)
            return
        tree = self._tree()
        for append in appends:
            for entry in append.entries:
                tree.add(entry)
            self._settle(append)
        before = self.outage
        if error is None:
            self._backlog.clear()
            self.outage = None
            self._settled.set()
        else:
            self._backlog += [each for each in appends if each.entries]
            for each in self._backlog:
                each.refused()
            self.outage = why(error)
            if before is None:
                self._settled = anyio.Event()
        if (before is None) != (self.outage is None) and self.changed is not None:
            self.changed()

    def _settle(self, append: Append) -> None:
        append.settled = True
        if append in self._waiting:  # else whoever asked for it was cancelled and took it away
            self._waiting.remove(append)


async def _ended(commit: Commit) -> None:
    """Wait for a commit while the event loop goes on."""
    event = anyio.Event()
    loop = anyio.lowlevel.current_token().native_token
    later = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon  # type: ignore[attr-defined]  # asyncio's, or trio's
    commit.when_ended(partial(later, event.set))
    await event.wait()


__all__ = ["Writer"]
