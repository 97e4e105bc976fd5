"""A branch of a session as a session of its own.

Laws: the session that is forked is only read, also while it is open elsewhere; entries keep their ids and parents, so
that numbers people know stay true; what was redacted is not copied, and input that waits stays where it is; the new
file is whole or not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from ...errors import SessionError
from ..care.erasure import erase
from ..entries import CompactionRecord, Entry, Header, HeadRecord, LabelRecord, NoteRecord, PinRecord, RedactRecord
from ..format.blobs import BlobStore, FolderBlobs
from ..format.codec import encode_entry, encode_header
from ..format.reading import read_session
from ..opening import read_log
from ..store import SessionStore
from ..tree import Tree
from ..writing.founding import found_session
from .finding import hidden
from .rewind import fork_point


async def fork_session(store: SessionStore, agent: str, session: str, entry: int | None = None) -> str:
    """Fork a session of `agent` at `entry` (None: where it goes on; a message that opened a turn: the end of that). The
    id of the new session is given back.

    Works while the session is open elsewhere. Raises `SessionError`: no such session or entry, or the disk refuses.
    """
    blobs = FolderBlobs(store.folder.parent / "blobs")
    header, tree = await anyio.to_thread.run_sync(_read, store.path(agent, session), blobs)
    return await fork_tree(store, header, tree, entry, blobs)


async def fork_tree(
    store: SessionStore, source: Header, tree: Tree, entry: int | None = None, blobs: BlobStore | None = None
) -> str:
    """Fork the session `source` that holds `tree`, all of it, at `entry`. The id of the new session is given back.

    Raises `SessionError`.
    """
    entries, tip = await anyio.to_thread.run_sync(partial(branch_as_session, tree.snapshot(), entry))
    origin = {"kind": "fork", "session": source.id, "entry": tip}
    header = store.header(source.agent, channel=source.channel, origin=origin)
    path = store.path(source.agent, header.id)
    await anyio.to_thread.run_sync(partial(_write, path, header, entries, blobs))
    store.changed(path)
    return header.id


def branch_as_session(tree: Tree, entry: int | None = None) -> tuple[list[Entry], int]:
    """What a fork at `entry` holds, oldest first, and the last entry of the branch. A message that opened a turn stands
    for all of the turn. Raises `SessionError`."""
    if entry is None and tree.leaf is None:
        raise SessionError("there is nothing to fork: nothing was said yet on this branch")
    tip = fork_point(tree, entry) if entry is not None else tree.leaf
    branch = tree.branch_to(tip)
    kept = {each.id for each in branch}
    beside = [each for each in tree.entries if each.id not in kept and _concerns(each, kept)]
    told = {each.record.target for each in beside if isinstance(each.record, RedactRecord)}
    brought = [message for message in hidden(tree) & kept if message not in told]  # by input that is redacted
    copied = [*map(_without_inbox, branch), *(_hung(each, kept) for each in beside)]
    copied += _redactions(tree, brought, {each.id for each in copied})
    return sorted(copied, key=lambda each: each.id), branch[-1].id


def _read(path: Path, blobs: BlobStore) -> tuple[Header, Tree]:
    reading = read_log(path, blobs)
    return reading.header, Tree(reading.entries)


def _concerns(entry: Entry, kept: set[int]) -> bool:
    """Whether `entry`, which is on no branch, is about one of those that are kept."""
    match entry.record:
        case LabelRecord(target=target) | PinRecord(target=target) | RedactRecord(target=target):
            return target in kept
        case NoteRecord() | CompactionRecord():
            return entry.parent in kept
        case _:
            return False


def _hung(entry: Entry, kept: set[int]) -> Entry:
    """`entry` on the entry that it is about, where what it hung on is not kept."""
    target = getattr(entry.record, "target", None)
    return entry if entry.parent in kept or target is None else replace(entry, parent=target)


def _without_inbox(entry: Entry) -> Entry:
    if isinstance(entry.record, HeadRecord) and entry.record.inbox:
        return replace(entry, record=replace(entry.record, inbox=()))
    return entry


def _redactions(tree: Tree, messages: list[int], taken: set[int]) -> Iterator[Entry]:
    """The redactions of input, which is not copied, as those of the messages that brought it."""
    by_target = {each.record.target: each for each in tree.entries if isinstance(each.record, RedactRecord)}
    for message in messages:
        source = tree.get(message)
        told = by_target.get(getattr(source.record, "inbox", None) or 0) if source is not None else None
        if told is not None and told.id not in taken:
            taken.add(told.id)
            yield replace(told, parent=message, record=RedactRecord(target=message))


def _write(path: Path, header: Header, entries: list[Entry], blobs: BlobStore | None) -> None:
    """The new file, whole or not there. Raises `SessionError`."""

    def made() -> bytes:
        data = encode_header(header) + b"".join(encode_entry(each, blobs=blobs) for each in entries)
        if any(isinstance(each.record, RedactRecord) for each in entries):
            return erase(data, read_session(data, blobs), header.created).data
        return data

    try:
        found_session(path, made)
    except OSError as error:
        raise SessionError(f"cannot write the fork {path}: {error.strerror or error}. Nothing was forked") from error
