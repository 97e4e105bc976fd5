"""Where stray prints go while a prompt is on the screen: whole lines, cleaned, above it."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable

from .sanitize import clean

_LONGEST = 10_000  # characters of a line; one that never ends is cut into such


class LinesAbove(io.TextIOBase):
    """A text file that hands each finished line to `emit`, by way of `soon`: writes come from any thread."""

    def __init__(self, emit: Callable[[Iterable[str]], None], soon: Callable[[Callable[[], None]], object]) -> None:
        self._emit = emit
        self._soon = soon
        self._begun = ""
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            if len(self._begun) > _LONGEST:
                lines.append(self._begun)
                self._begun = ""
        if lines:
            self._hand_on(lines)
        return len(text)

    def rest(self) -> list[str]:
        """The line that was begun and never finished, if there is one."""
        with self._lock:
            begun, self._begun = self._begun, ""
        return [clean(begun)] if begun else []

    def _hand_on(self, lines: list[str]) -> None:
        cleaned = [clean(line) for line in lines]
        try:
            self._soon(lambda: self._emit(cleaned))
        except RuntimeError:
            return  # the loop is closed: nobody looks any more
