"""The lines of another program's file, one at a time: its JSON objects, and what is wrong with the rest.

A file is read as a stream, packed (`.gz`) or not, so that a large one takes no more memory than what is kept of it.
Laws: every line comes out, with its number from 1, as an object or with the reason why it is none; what a program
appends while it is read is left for another time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from ...errors import SessionError

_PACKED = b"\x1f\x8b"
_LONGEST = 256 * 2**20  # bytes of a line; longer ones are no line that a program wrote
_LARGEST_DOCUMENT = 64 * 2**20  # bytes of a file that is one JSON value over many lines
BLANK = "a blank line"


@dataclass(frozen=True, slots=True)
class Line:
    """A line: `value` is its object; None: it is none, and `problem` says why."""

    number: int
    value: Mapping[str, Any] | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was when it was looked at: `sha256` (hex) and `size` are those of its bytes as they lie, `changed`
    is when it was written last (seconds since 1970)."""

    path: Path
    size: int
    sha256: str
    packed: bool
    changed: float = 0.0

    def lines(self) -> Iterator[Line]:
        """Its lines. Raises `SessionError` when it cannot be read, or is packed and cut off."""
        try:
            with self.path.open("rb") as file:
                yield from self._all(file)
        except (OSError, EOFError, zlib.error) as error:
            raise SessionError(f"cannot read {self.path}: {_reason(error)}") from error

    def _all(self, file: BinaryIO) -> Iterator[Line]:
        if self.packed:
            with gzip.GzipFile(fileobj=file) as packed:
                yield from _lines(cast(BinaryIO, packed), None)
        else:
            yield from _lines(file, self.size)

    def grown_from(self, size: int, sha256: str) -> bool:
        """Whether its first `size` bytes are a file with that hash. Raises `SessionError`."""
        if size > self.size:
            return False
        try:
            with self.path.open("rb") as file:
                return _digest(file, size) == sha256
        except OSError as error:
            raise SessionError(f"cannot read {self.path}: {_reason(error)}") from error

    def document(self) -> Any:
        """The file as one JSON value over many lines; None when it is not one, or too large for that."""
        if self.size > _LARGEST_DOCUMENT:
            return None
        try:
            with gzip.open(self.path) if self.packed else self.path.open("rb") as file:
                data = file.read(_LARGEST_DOCUMENT + 1)
            return json.loads(data.decode("utf-8-sig"), parse_constant=_no_number)
        except (OSError, EOFError, zlib.error, ValueError, RecursionError):
            return None


def look_at(path: Path) -> Source:
    """The file at `path`. Raises `SessionError` for what is no readable file, with the reason."""
    try:
        if path.is_dir():
            raise SessionError(f"{path} is a folder: name the session file in it, or import with --from and --all")
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise SessionError(f"{path} {what}: nothing to import")
        with path.open("rb") as file:
            packed = file.read(2) == _PACKED
            size = file.seek(0, 2)
            file.seek(0)
            return Source(path, size, _digest(file, size), packed, path.stat().st_mtime)
    except OSError as error:
        raise SessionError(f"cannot read {path}: {_reason(error)}") from error


def _digest(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    while size > 0 and (data := file.read(min(size, 2**20))):
        digest.update(data)
        size -= len(data)
    return digest.hexdigest()


def _lines(file: BinaryIO, left: int | None) -> Iterator[Line]:
    number = 0
    while left is None or left > 0:
        data = file.readline(_LONGEST if left is None else min(left, _LONGEST))
        if not data:
            return
        number += 1
        whole = len(data)
        while len(data) >= _LONGEST and not data.endswith(b"\n"):
            more = file.readline(2**20)
            whole += len(more)
            if not more or more.endswith(b"\n"):
                break
        left = None if left is None else left - whole
        yield Line(number, None, f"longer than {_LONGEST:,} bytes") if whole > len(data) else _line(number, data)


def _line(number: int, data: bytes) -> Line:
    try:
        text = data.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        if not text:
            return Line(number, None, BLANK)
        value = json.loads(text, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        return Line(number, None, f"broken: it is not UTF-8 (byte {error.start})")
    except (ValueError, RecursionError) as error:
        return Line(number, None, f"broken: it is not JSON ({_short(error)})")
    if not isinstance(value, dict):
        return Line(number, None, f"not an object but a JSON {type(value).__name__}")
    return Line(number, value)


def _short(error: Exception) -> str:
    return str(error).split(":")[0][:60]


def _no_number(_: str) -> None:
    """Infinities and NaN are nothing that JSON has."""


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
