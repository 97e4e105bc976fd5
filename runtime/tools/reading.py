"""Reads a window of lines from a file of any size in bounded memory, and tells text from binary data."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import ToolError

#: Characters of one line that are shown.
LONGEST_LINE = 2_000
#: Characters of one window; below the limit of a tool's output, so that `continue with offset=` is right.
LARGEST_WINDOW = 32_000
#: Bytes after the window that are read only to tell how many lines there are in all.
MOST_COUNTED = 16_000_000

_PROBE = 8_192
_CHUNK = 1 << 20
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"), (b"PK\x03\x04", "a ZIP archive (also docx, xlsx, jar)"),
    (b"\x1f\x8b", "gzip-compressed data"), (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"), (b"BZh", "bzip2-compressed data"), (b"\x7fELF", "a program (ELF)"),
    (b"SQLite format 3\x00", "an SQLite database"), (b"\xff\xfe", "text in UTF-16"), (b"\xfe\xff", "text in UTF-16"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `first` to `last` (1-based; last < first when there is none). `total` is None if nobody counted."""

    lines: tuple[str, ...]
    first: int
    last: int
    total: int | None
    at_end: bool
    replaced: bool  # some bytes were not UTF-8
    crlf: bool


def guess_binary(start: bytes) -> str | None:
    """What data that starts so seems to be, or None for text. `start` should be the first few thousand bytes."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "a WebP image"
    for magic, kind in _MAGIC:
        # Some magic numbers are plain letters: they only count where the rest is no text either.
        if start.startswith(magic) and (not magic.isascii() or b"\0" in start or _not_utf8(start)):
            return kind
    return "binary data" if b"\0" in start else None


def _not_utf8(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return True
    return False


def probe(handle: BinaryIO) -> str | None:
    """`guess_binary` of an open file; leaves it at its start."""
    start = handle.read(_PROBE)
    handle.seek(0)
    return guess_binary(start)


def read_window(handle: BinaryIO, offset: int, limit: int) -> Window:
    """At most `limit` lines from line `offset` on, of a file open at its start.

    Stops early when the window has `LARGEST_WINDOW` characters, but never before one line.
    """
    skipped = _skip_lines(handle, offset - 1)
    lines: list[str] = []
    size, replaced, crlf = 0, False, False
    while skipped == offset - 1 and len(lines) < limit and size < LARGEST_WINDOW - LONGEST_LINE:
        line = _read_line(handle)
        if line is None:
            break
        text, was_replaced, was_crlf = line
        lines.append(text.removeprefix("\ufeff") if offset + len(lines) == 1 else text)
        size += len(text) + 1
        replaced, crlf = replaced or was_replaced, crlf or was_crlf
    last = skipped + len(lines)
    left = _bytes_left(handle)
    total = last + _count_lines(handle) if left <= MOST_COUNTED else None
    return Window(tuple(lines), offset, last, total, left == 0, replaced, crlf)


def shown_window(place: str, window: Window, size: int) -> str:
    """The lines of `place`, a file of `size` bytes, with what has to be told of them. Raises `ToolError`."""
    if not window.lines:
        if window.first == 1:
            return "[the file is empty]"
        raise ToolError(f"{place} has {window.last:,} lines, so there is no line {window.first:,}")
    notes = []
    if not (window.at_end and window.first == 1):
        total = f" of {window.total}" if window.total is not None else f"; the file has {size:,} bytes"
        more = "" if window.at_end else f"; continue with offset={window.last + 1}"
        notes.append(f"[lines {window.first}-{window.last}{total}{more}]")
    if window.replaced:
        notes.append("[some bytes are not valid UTF-8 and are shown as \ufffd]")
    if window.crlf:
        notes.append("[lines end in CRLF]")
    return "\n".join([*window.lines, *notes])


def _bytes_left(handle: BinaryIO) -> int:
    position = handle.tell()
    end = handle.seek(0, os.SEEK_END)
    handle.seek(position)
    return end - position


def _skip_lines(handle: BinaryIO, count: int) -> int:
    """Move past `count` lines; the number of lines really passed, less if the file is shorter."""
    passed = 0
    ends_open = False
    while passed < count and (chunk := handle.read(_CHUNK)):
        here = chunk.count(b"\n")
        if passed + here < count:
            passed += here
            ends_open = not chunk.endswith(b"\n")
            continue
        position = -1
        for _ in range(count - passed):
            position = chunk.index(b"\n", position + 1)
        handle.seek(position + 1 - len(chunk), os.SEEK_CUR)
        return count
    return passed + ends_open


def _count_lines(handle: BinaryIO) -> int:
    count, last = 0, b"\n"
    while chunk := handle.read(_CHUNK):
        count += chunk.count(b"\n")
        last = chunk[-1:]
    return count + (last != b"\n")


def _read_line(handle: BinaryIO) -> tuple[str, bool, bool] | None:
    """The next line as text, whether bytes of it were no UTF-8, and whether it ended in CRLF; None at the end."""
    raw = handle.readline(LONGEST_LINE * 4)
    if not raw:
        return None
    complete = raw.endswith(b"\n")
    left = 0
    while not complete and (more := handle.readline(_CHUNK)):
        complete = more.endswith(b"\n")
        left += len(more) - complete
    crlf = left == 0 and raw.endswith(b"\r\n")
    raw = raw.removesuffix(b"\n")
    raw = raw.removesuffix(b"\r") if crlf else raw
    text, replaced = _decode(raw, final=left == 0)
    if left or len(text) > LONGEST_LINE:
        left += len(text[LONGEST_LINE:].encode())
        text = f"{text[:LONGEST_LINE]} [… {left:,} more bytes of this line]"
    return text, replaced, crlf


def _decode(raw: bytes, final: bool) -> tuple[str, bool]:
    decode: Callable[[bytes, bool], str] = codecs.getincrementaldecoder("utf-8")("strict").decode
    try:
        return decode(raw, final), False
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), True
