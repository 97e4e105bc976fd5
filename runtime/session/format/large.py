"""Large content leaves a line for a file of its own, and comes back when the line is read.

Both ways work on the plain JSON objects of a line. Laws: what comes back is what left, but for a result's `whole`,
which stays the name of a blob until somebody recalls it; a blob that is gone leaves a constant text that says so, or a
document without its data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from governors.scrub import scrub

from ..entries import Blob, ExtensionRecord, MessageRecord, Record, ResultRecord
from .blobs import BlobStore

LARGE = (
    16_384  # characters of an image's or document's data, or of the whole text of a result, from which on it is a blob
)
LARGE_TEXT = 65_536  # and of a text in a user's message or in a result
MISSING_TEXT = "[A text that is no longer there: its file in the folder of blobs is missing or damaged.]"
MISSING_IMAGE = "[A picture that is no longer there: its file in the folder of blobs is missing or damaged.]"


@dataclass(slots=True)
class Shelf:
    """Where blobs are read; `missing` are those that were not there. `store` may be None: then none is."""

    store: BlobStore | None = None
    missing: list[Blob] = field(default_factory=list)

    def text(self, blob: Blob) -> str | None:
        found = None if self.store is None else self.store.get(blob)
        if found is None:
            self.missing.append(blob)
        return found


def take_out(record: Record, body: dict[str, Any], blobs: BlobStore) -> None:
    """Put what is large in `body`, the plain form of `record`, into `blobs`. Raises `OSError`."""
    whole = body.get("whole")
    if isinstance(whole, str) and len(whole) >= LARGE:
        body["whole"] = _named(blobs.put(scrub(whole)))
    texts = isinstance(record, ResultRecord | ExtensionRecord) or (
        isinstance(record, MessageRecord) and record.role == "user"
    )
    for content in _contents(body):
        for place, part in enumerate(content):
            name = _large_field(part.get("type"), texts=texts)
            value = part.get(name) if name else None
            if isinstance(value, str) and len(value) >= (LARGE if name == "data" else LARGE_TEXT):
                content[place] = _replaced(part, str(name), "blob", _named(blobs.put(scrub(value))))


def put_back(raw: dict[str, Any], shelf: Shelf) -> None:
    """Bring what blobs hold of the line `raw` back into it."""
    for content in _contents(raw):
        for place, part in enumerate(content):
            blob = _blob_of(part)
            if blob is not None:
                content[place] = _restored(part, shelf.text(blob))


def _restored(part: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    kind = part["type"]
    if text is None and kind == "document":
        return _replaced(part, "blob", "data", "")  # its name and its text are still there
    if text is None:
        return {"type": "text", "text": MISSING_IMAGE if kind == "image" else MISSING_TEXT}
    return _replaced(part, "blob", str(_large_field(kind, texts=True)), text)


def _large_field(kind: object, *, texts: bool) -> str | None:
    """The field of a part of this type that may be a blob; `texts`: whether that of a text may."""
    if kind in ("image", "document"):
        return "data"
    return "text" if texts and kind == "text" else None


def _replaced(part: Mapping[str, Any], name: str, by: str, value: Any) -> dict[str, Any]:
    """`part` with the field `by` at the place of the field `name`."""
    return {(by if key == name else key): (value if key == name else each) for key, each in part.items()}


def _blob_of(part: Any) -> Blob | None:
    if not isinstance(part, dict) or part.get("type") not in ("image", "document", "text"):
        return None
    raw = part.get("blob")
    if not isinstance(raw, dict):
        return None
    name, size = raw.get("name"), raw.get("size")
    return Blob(name, size) if isinstance(name, str) and type(size) is int else None


def _named(blob: Blob) -> dict[str, Any]:
    return {"name": blob.name, "size": blob.size}


def _contents(body: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Every content of a line: its own, and those that a head carries."""
    for holder in (body, *_objects(body.get("pins")), *_objects(body.get("inbox"))):
        content = holder.get("content")
        if isinstance(content, list):
            yield content


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
