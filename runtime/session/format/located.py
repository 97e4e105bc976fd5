"""Where each entry of a session file stands: its line, its offset, its bytes. Pure.

For whoever has to point at a line, or to keep it byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..entries import Blob, Entry
from .reading import Reading, read_session

_OURS = re.compile(rb'\{"id":\d+,"parent":(?:\d+|null),"at":"[^"\\]*","until":(\d+),')  # as `codec` writes it
_BLOB_NAME = re.compile(r"[0-9a-f]{64}")
_MAY_NAME_BLOB = re.compile(rb"[0-9a-f]{64}|\\u00")


@dataclass(frozen=True, slots=True)
class Located:
    """An entry at its line (from 1) and offset (bytes from the start). `content` is the line without its newline,
    `until` the last entry of the batch that goes on after it."""

    entry: Entry
    line: int
    offset: int
    content: bytes
    until: int | None


def locate(data: bytes, reading: Reading) -> list[Located]:
    """The entries of `reading`, which was read from the whole file `data`, in order."""
    found = []
    line, counted = 1, 0
    for entry, (offset, size) in zip(reading.entries, reading.places, strict=True):
        line += data.count(b"\n", counted, offset)
        counted = offset
        content = data[offset : offset + size]
        found.append(Located(entry, line, offset, content, _until(content)))
    return found


def read_unopened(data: bytes) -> Reading:
    """Read a whole session file, but no blob: what one holds reads as empty text. Raises `BadLine`."""
    return read_session(data, _Unopened())


class _Unopened:
    def put(self, text: str) -> Blob:
        raise OSError("nothing is kept here")

    def get(self, blob: Blob) -> str:
        return ""


def raw_object(content: bytes) -> dict[str, Any]:
    """The JSON object of a line that was read as an entry."""
    raw: dict[str, Any] = json.loads(content)
    return raw


def blobs_named(content: bytes) -> Iterator[Blob]:
    """The blobs that a line names, wherever in it they stand."""
    if _MAY_NAME_BLOB.search(content):
        yield from _blobs_in(raw_object(content))


def _until(content: bytes) -> int | None:
    ours = _OURS.match(content)
    if ours is not None:
        return int(ours[1])
    if b'until"' not in content and b"\\u" not in content:
        return None
    until = raw_object(content).get("until")
    return until if isinstance(until, int) else None


def _blobs_in(value: Any) -> Iterator[Blob]:
    if isinstance(value, list):
        for each in value:
            yield from _blobs_in(each)
    elif isinstance(value, dict):
        name, size = value.get("name"), value.get("size")
        if isinstance(name, str) and isinstance(size, int) and _BLOB_NAME.fullmatch(name) and len(value) == 2:
            yield Blob(name, size)
        for each in value.values():
            yield from _blobs_in(each)
