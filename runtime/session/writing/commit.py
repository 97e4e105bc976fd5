"""Commits: what sessions wrote is brought to the disk, with one sync for all that wait.

One thread of the process does it. A session that is alone gets its own write and its own sync. While a sync runs,
appends of other sessions queue up; all of them are taken at once, each is written to its file, and when those are more
than a few, one sync of a journal (`journal.py`) acknowledges them all. Nobody waits for a timer. Handing a commit to a
thread and back costs half as much as the sync of a good disk, so a session that has been alone for a while, on a disk
that has been quick for as long, commits where it stands (`commit_here`); the first sync that is slow ends that. Laws:
- What ended without an error is on disk: in its own file, or in the journal.
- An error of one file is that file's alone; a journal that refuses is done without.
- A file that only the journal answers for is synced when it is quiet, when the journal is full, and when it is closed.
- The thread lives as long as there is a file that was committed to and not left.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from ...errors import SessionError
from .handover import Commit, Farewell
from .journal import Journal, journal_folder
from .log import LogFile

logger = logging.getLogger(__name__)

_FEW = 2  # files that are synced one by one
_FIRST_PAUSE = 1.0  # seconds between attempts at files that cannot be synced; each is twice the one before
_LONGEST_PAUSE = 30.0
_HANDOVER = 0.0005  # seconds for the thread to put down what it has just finished
_PROVEN = 4  # commits in a row that were alone and quick


class Committer:
    """Its methods may be called from any thread; a log may have one commit at a time.

    `quiet`: seconds without a commit until files are synced by themselves; `full`: bytes that a journal may have;
    `quick`: seconds that a commit takes at most on a disk that may be waited for where one stands.
    """

    def __init__(self, quiet: float = 1.0, full: int = 4 * 2**20, quick: float = 0.001) -> None:
        self.quick = quick
        self.quiet = quiet
        self.full = full
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a process that was just forked: the thread stayed with the parent, and so did its files."""
        self._guard = threading.Lock()
        self._queue: SimpleQueue[Commit] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._members: set[LogFile] = set()
        self._loose: dict[LogFile, None] = {}  # files that only a journal answers for, oldest first
        self._journals: dict[tuple[Path, int], Journal] = {}
        self._pause = self.quiet
        self._working = threading.Lock()
        self._last: LogFile | None = None
        self._streak = 0  # commits of `_last` that were alone and quick

    def commit(self, log: LogFile, data: bytes) -> Commit:
        """Begin to bring `data` to the end of `log`."""
        commit = Commit(log, data)
        with self._guard:
            self._members.add(log)
            self._queue.put(commit)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="moonwake commits", daemon=True)
                self._thread.start()
        return commit

    def leave(self, log: LogFile) -> None:
        """Have `log` synced by itself and forget it; blocks. The caller closes it."""
        with self._guard:
            if log not in self._members:
                return
            farewell = Farewell(log)
            self._queue.put(farewell)
        farewell.wait()

    def is_quick(self, log: LogFile) -> bool:
        """Whether the next commit of `log` may be expected to be quick: the last ones were."""
        return self._streak >= _PROVEN and self._last is log and not self._loose and self._queue.empty()

    def commit_here(self, log: LogFile, data: bytes) -> Commit | None:
        """Bring `data` to the end of `log` in this thread, which waits for the disk; None when the other works now."""
        if not self._working.acquire(timeout=_HANDOVER):
            return None
        try:
            commit = Commit(log, data)
            commit.begin()
            self._commit([commit])
        finally:
            self._working.release()
        return commit

    def _run(self) -> None:
        while True:
            taken = self._take()
            with self._working:
                quiet = not taken
                taken = [each for each in taken if each.begin()]
                try:
                    if quiet:
                        self._tidy()
                    self._commit([each for each in taken if not isinstance(each, Farewell)])
                    for each in taken:
                        if isinstance(each, Farewell):
                            self._part(each.log)
                except Exception as error:  # the boundary of the thread: whoever waits must hear of a fault of ours
                    logger.exception("committing failed")
                    for each in taken:
                        if not each.ended:
                            each.end(error)
                over = self._is_over()
            for each in taken:
                if isinstance(each, Farewell) and not each.ended:  # who hears of the last finds no journal any more
                    each.end()
            if over:
                return

    def _take(self) -> list[Commit]:
        """All that waits; nothing, when it has been quiet."""
        try:
            taken = [self._queue.get(timeout=self._pause if self._loose else None)]
        except Empty:
            return []
        while True:
            try:
                taken.append(self._queue.get_nowait())
            except Empty:
                return taken

    def _commit(self, commits: Sequence[Commit]) -> None:
        if not commits:
            return
        began = time.perf_counter()
        before, self._last = self._last, None
        self._pause = self.quiet
        if any(journal.length >= self.full for journal in self._journals.values()):
            for log in list(self._loose):
                self._settle(log)
            self._empty_journals()
        alone: list[Commit] = []
        together: dict[tuple[Path, int], list[Commit]] = {}
        for each in commits:
            try:
                each.log.put(each.data)
            except OSError as error:
                each.end(error)
                continue
            if len(commits) <= _FEW or each.log.synced is None:  # a journal may only continue what is on disk
                alone.append(each)
            else:
                together.setdefault(_key(each.log), []).append(each)
        for key, group in together.items():
            if len(group) <= _FEW or not self._journalled(key, group):
                alone.extend(group)
        for each in alone:
            problem = self._sync(each.log)
            if len(commits) == 1:
                quick = time.perf_counter() - began < self.quick
                self._streak = self._streak + 1 if quick and before is each.log else 0
                self._last = each.log
            each.end(problem)

    def _sync(self, log: LogFile) -> OSError | None:
        try:
            log.sync()
        except OSError as error:
            return error
        self._loose.pop(log, None)
        return None

    def _journalled(self, key: tuple[Path, int], group: Sequence[Commit]) -> bool:
        """Whether one sync of the journal could stand for the syncs of all of `group`."""
        try:
            journal = self._journals.get(key)
            if journal is None:
                journal = self._journals[key] = Journal(key[0], group[0].log.disk)
            if journal.length >= self.full:
                return False
            journal.write([each.log for each in group])
        except (OSError, SessionError) as error:
            logger.warning("cannot write the journal in %s (%s): files are synced one by one", key[0], error)
            return False
        for each in group:
            each.log.vouched()
            self._loose[each.log] = None
            each.end()
        return True

    def _tidy(self) -> None:
        """It is quiet: sync one file by itself."""
        if not self._loose:
            return
        settled = self._settle(next(iter(self._loose)))
        self._pause = 0.0 if settled else min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        if not self._loose:
            self._empty_journals()

    def _settle(self, log: LogFile) -> bool:
        """Whether `log` needs no journal any more. Only between commits: what is not acknowledged would be cut off."""
        if log not in self._loose:
            return True
        del self._loose[log]
        try:
            log.cut_back()
            log.sync()
        except OSError as error:
            logger.warning("cannot sync %s (%s): the journal still holds what it may lack", log.path, error)
            self._loose[log] = None
            return False
        return True

    def _empty_journals(self) -> None:
        needed = {_key(log) for log in self._loose}
        for key, journal in self._journals.items():
            if key not in needed and not journal.needed:
                with contextlib.suppress(OSError):  # what it holds is true, only not needed
                    journal.empty()

    def _part(self, log: LogFile) -> None:
        if not self._settle(log):
            self._journals[_key(log)].needed = True
            del self._loose[log]
        with self._guard:
            self._members.discard(log)
        if self._last is log:
            self._last = None

    def _is_over(self) -> bool:
        with self._guard:
            if self._members or not self._queue.empty():
                return False
            journals, self._journals = list(self._journals.values()), {}
            for journal in journals:
                with contextlib.suppress(OSError):  # whoever opens a session next finds it and removes it
                    journal.close()
            self._thread = None
            return True


def _key(log: LogFile) -> tuple[Path, int]:
    """Logs that may share a journal: those of one folder, on one disk."""
    return journal_folder(log.path), id(log.disk)


#: The one of this process.
COMMITTER = Committer()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMMITTER.forget)
