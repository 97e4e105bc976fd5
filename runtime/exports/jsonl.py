"""A session as a session file that stands alone: large content inline, nothing redacted in it. Pure but for `blobs`.

Laws: what comes out is a session file again (`docs/session-format.md`) with the same id, entries and branches; a
branch alone is one whose every parent is there. A whole output whose blob is missing is left out, as its line says
what the model saw of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..session.entries import (
    OFF_BRANCH,
    Blob,
    Entry,
    Header,
    InboxRecord,
    LabelRecord,
    LeafRecord,
    PinRecord,
    RedactRecord,
    ResultRecord,
)
from ..session.format.blobs import BlobStore
from ..session.format.codec import encode_entry, encode_header
from ..session.tree import Tree
from .segments import tip_of
from .veil import veiled


def to_jsonl(
    header: Header,
    entries: Sequence[Entry],
    *,
    entry: int | None = None,
    branch: bool = False,
    blobs: BlobStore | None = None,
) -> bytes:
    """The file (arguments as in `transcript`); `blobs` is where whole outputs lie. Raises `SessionError`.

    Blocks where blobs are read: call it in a thread.
    """
    kept = chosen(veiled(entries), entry=entry, branch=branch)
    return encode_header(header) + b"".join(encode_entry(inlined(each, blobs)) for each in kept)


def chosen(entries: Sequence[Entry], *, entry: int | None = None, branch: bool = False) -> tuple[Entry, ...]:
    """All of `entries`, or those of one branch with what hangs on it. Raises `SessionError`."""
    tree = Tree(entries)
    tip = tip_of(tree, entry)
    if entry is None and not branch:
        return tuple(entries)
    path = {each.id for each in tree.branch_to(tip)}
    return tuple(_standing_alone(entries, path))


def inlined(entry: Entry, blobs: BlobStore | None) -> Entry:
    """`entry` with the whole of its output in it."""
    record = entry.record
    if not isinstance(record, ResultRecord) or not isinstance(record.whole, Blob):
        return entry
    whole = None if blobs is None else blobs.get(record.whole)
    return Entry(entry.id, entry.parent, entry.at, replace(record, whole=whole))


def _standing_alone(entries: Iterable[Entry], path: set[int]) -> Iterable[Entry]:
    """The entries of a branch, and what is about them."""
    kept: set[int] = set()
    for entry in entries:
        if entry.id in path or (isinstance(entry.record, OFF_BRANCH) and _belongs(entry, path, kept)):
            kept.add(entry.id)
            yield entry


def _belongs(entry: Entry, path: set[int], kept: set[int]) -> bool:
    match entry.record:
        case LeafRecord():
            return False  # where it went is another branch, or this one anyway
        case PinRecord(target=int(target)) | LabelRecord(target=int(target)) | RedactRecord(target=target):
            about = target in path or target in kept
        case InboxRecord(item=int(item)):
            about = item in kept
        case _:
            about = True
    return about and (entry.parent is None or entry.parent in path)
