"""What writes: forks, and records that people put into a session."""

from __future__ import annotations

import anyio.to_thread

from ..app import utc_now
from ..errors import SessionError
from ..session.entries import ArchiveRecord, LabelRecord, MessageRecord, PinRecord, Record, ResultRecord
from ..session.moving.finding import find
from ..session.moving.forking import fork_session
from ..session.naming import short_id
from ..session.session import open_session
from ..session.tree import Tree
from .base import Shelf, put, say


async def fork(on: Shelf, wanted: str, entry: int | None) -> int:
    """Make a session of a branch and print its id."""
    named = await anyio.to_thread.run_sync(on.find, wanted)
    made = await fork_session(on.store, named.agent, named.id, entry)
    put([made])
    say(f"forked from {short_id(named.id)}; go on with: moonwake chat --session {short_id(made)}")
    return 0


async def write_records(on: Shelf, wanted: str, done: str, *records: Record) -> int:
    """Append to a session that is not open elsewhere. Raises `SessionLocked` when it is."""
    named = await anyio.to_thread.run_sync(on.find, wanted)
    session = await open_session(named.path, utc_now, on.blobs)
    try:
        for record in records:
            _require_target(await session.whole(), record)
        await session.append(*records)
    finally:
        await session.close()
    store = on.store
    store.changed(named.path)
    await store.update_index()
    say(f"{short_id(named.id)}: {done}")
    return 0


def _require_target(tree: Tree, record: Record) -> None:
    """Raises `SessionError` for what cannot be pinned or labelled."""
    target = getattr(record, "target", None)
    if target is None:
        return
    entry = find(tree, target)
    if isinstance(record, PinRecord) and not isinstance(entry.record, (MessageRecord, ResultRecord)):
        raise SessionError(f"entry {target} is a {entry.record.type}: only messages and results can be pinned")


async def archive(on: Shelf, wanted: str, *, undo: bool) -> int:
    return await write_records(
        on, wanted, "taken out of the archive" if undo else "archived", ArchiveRecord(on=not undo)
    )


async def pin(on: Shelf, wanted: str, entry: int | None, *, undo: bool) -> int:
    what = "the session" if entry is None else f"entry {entry}"
    done = f"{what} is {'no longer ' if undo else ''}pinned"
    return await write_records(on, wanted, done, PinRecord(target=entry, on=not undo))


async def label(on: Shelf, wanted: str, text: str, entry: int | None, *, undo: bool) -> int:
    text = " ".join(text.split())
    if not text:
        raise SessionError("a label needs a text")
    what = "tag" if entry is None else f"label of entry {entry}"
    done = f"{what} {text!r} {'taken away' if undo else 'added'}"
    return await write_records(on, wanted, done, LabelRecord(text=text, target=entry, on=not undo))
