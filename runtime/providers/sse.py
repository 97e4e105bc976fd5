"""Server-sent events: bytes in, events out. Pure, and forgiving where servers differ.

Line ends may be LF, CRLF or CR, a byte-order mark may lead, the last event may lack its blank line, and bytes
that are not UTF-8 become U+FFFD. Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: A line longer than this is no event of a model's: the peer speaks something else (bytes).
LONGEST_LINE = 64 * 1024 * 1024

_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event; `name` is empty where the server gave none."""

    data: str
    name: str = ""


class LineTooLong(ValueError):
    """The peer sent too many bytes without ending the line."""


@dataclass(slots=True)
class SseDecoder:
    """Feed it bytes as they come; each call returns the events that became whole."""

    longest: int = LONGEST_LINE
    _pieces: list[bytes] = field(default_factory=list)  # of the unfinished line
    _size: int = 0
    _started: bool = False
    _skip_newline: bool = False  # the last chunk ended in CR: an LF that follows belongs to it
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Raises `LineTooLong`."""
        if not chunk:
            return []
        if self._skip_newline and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._skip_newline = chunk.endswith(b"\r")
        *whole, rest = _LINE_END.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        events: list[SseEvent] = []
        for part in whole:
            if self._pieces:
                part = b"".join((*self._pieces, part))
                self._pieces.clear()
                self._size = 0
            if self._started and part.startswith(b"data: "):  # by far the commonest
                self._data.append(part[6:].decode("utf-8", "replace"))
            else:
                events.extend(self._line(part))
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self.longest:
                raise LineTooLong(f"a line of more than {self.longest:,} bytes")
        return events

    def finish(self) -> list[SseEvent]:
        """What an end of the stream without the last blank line leaves behind."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        return [*self._line(line), *self._line(b"")] if line else self._line(b"")

    def _line(self, raw: bytes) -> list[SseEvent]:
        line = raw.decode("utf-8", "replace")
        if not self._started:
            self._started = True
            line = line.removeprefix("\ufeff")
        if not line:
            event = SseEvent("\n".join(self._data), self._name)
            blank = not self._data
            self._name = ""
            self._data = []
            return [] if blank else [event]
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "error" and value.startswith("{"):
            return [SseEvent(value, "error")]  # older llama.cpp: the error as a field of its own
        return []
