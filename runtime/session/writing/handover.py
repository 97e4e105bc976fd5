"""What a session hands to the committer, and how it hears what came of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from .log import LogFile


class Commit:
    """Bytes on their way into a log: not begun, then begun, then ended (`error` says how)."""

    def __init__(self, log: LogFile, data: bytes) -> None:
        self.log = log
        self.data = data
        self.error: Exception | None = None
        self.ended = False
        self._claim = threading.Lock()  # whoever takes it decides whether it happens
        self._running = threading.Lock()
        self._running.acquire()
        self._wake: Callable[[], object] | None = None

    def begin(self) -> bool:
        return self._claim.acquire(blocking=False)

    def prevent(self) -> bool:
        """Keep it from being begun; False when it was."""
        return self._claim.acquire(blocking=False)

    def end(self, error: Exception | None = None) -> None:
        self.error, self.ended = error, True
        self._running.release()
        wake = self._wake
        if wake is not None:
            with contextlib.suppress(RuntimeError):  # the loop that waited is closed
                wake()

    def wait(self, timeout: float = -1) -> bool:
        """Block until it has ended; False when it had not within `timeout` seconds (-1: as long as it takes)."""
        if not self._running.acquire(timeout=timeout):
            return False
        self._running.release()
        return True

    def when_ended(self, wake: Callable[[], object]) -> None:
        """Call `wake` once it has ended, in whatever thread."""
        self._wake = wake
        if self.ended:
            wake()


class Farewell(Commit):
    """A file is about to be closed: ends once it is synced by itself."""

    def __init__(self, log: LogFile) -> None:
        super().__init__(log, b"")
