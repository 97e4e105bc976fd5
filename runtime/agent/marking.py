"""What people put beside a conversation, or change of what its model sees, entry by entry.

Laws: pins, labels and notes move nothing and may come at any time; what changes the model's view (`omit`, `restore`,
`redact`) stops a running turn first, so that no request leaves that the log says otherwise of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SessionError
from ..session.entries import (
    BranchSummaryRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    InboxRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    PinRecord,
    RedactRecord,
    ResultRecord,
)
from ..session.moving.finding import entry_of, find, hidden, newest_message
from ..session.session import Session
from ..session.view.redaction import stale_summaries
from .branches import Ground, whole

_SHOWN = (MessageRecord, ResultRecord, BranchSummaryRecord, ExtensionRecord)
_REDACTABLE = (*_SHOWN, InboxRecord, NoteRecord)


@dataclass(frozen=True, slots=True)
class Redacted:
    """`entries` are hidden from now on; `stale` are the summaries that may still tell of them, `results` those of the
    calls of a reply that was hidden, which are entries of their own."""

    entries: tuple[int, ...]
    stale: tuple[int, ...]
    results: tuple[int, ...]


class Marks:
    """Of one agent. Without an entry, the last message of the branch is meant.

    All raise `SessionError` when there is no such entry, naming the nearest ones.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def pin(self, entry: int | None = None, *, on: bool = True) -> int:
        """Keep an entry in view when a head cuts it off (or no longer). The entry is given back."""
        session = await whole(self._ground.session)
        target = _target(session, entry)
        if not isinstance(target.record, (MessageRecord, ResultRecord)):
            raise SessionError(f"entry {target.id} is a {target.record.type}: only messages and results can be pinned")
        await session.append(PinRecord(target=target.id, on=on))
        return target.id

    async def label(self, text: str, entry: int | None = None, *, on: bool = True) -> int:
        """Give an entry a name to find it by (or take it away). The entry is given back."""
        session = await whole(self._ground.session)
        target = _target(session, entry)
        await session.append(LabelRecord(text=text, target=target.id, on=on))
        return target.id

    async def unlabel(self, entry: int) -> tuple[str, ...]:
        """Take all names of an entry away; they are given back."""
        session = await whole(self._ground.session)
        names = labels_of(session.tree.entries, entry_of(session.tree, entry).id)
        await session.append(*(LabelRecord(text=name, target=entry, on=False) for name in names))
        return names

    async def note(self, text: str) -> int:
        """Write something for people; no model ever sees it. Its entry is given back."""
        (entry,) = await self._ground.session.append(NoteRecord(text=text))
        return entry.id

    async def omit(self, entry: int) -> int:
        """Leave an entry out of what the model sees, from here on. `restore` shows it again."""
        async with self._ground.resting():
            session = await whole(self._ground.session)
            target = _on_branch(session, entry)
            await session.append(EditRecord(action="omit", target=target.id, cause="user"))
            return target.id

    async def restore(self, entry: int) -> int:
        """Show an entry again as it was recorded, whoever left it out or shortened it."""
        async with self._ground.resting():
            session = await whole(self._ground.session)
            target = _on_branch(session, entry)
            blocks = edited_blocks(session.branch(), target.id)
            if not blocks:
                raise SessionError(f"entry {target.id} is shown as it was recorded; there is nothing to restore")
            edits = (EditRecord(action="restore", target=target.id, block=block, cause="user") for block in blocks)
            await session.append(*edits)
            return target.id

    async def redact(self, entry: int) -> Redacted:
        """Hide an entry for good, on every branch, with the input that brought it and all other copies of that."""
        async with self._ground.resting():
            session = await whole(self._ground.session)
            target = entry_of(session.tree, entry)
            if not isinstance(target.record, _REDACTABLE):
                raise SessionError(f"entry {entry} is a {target.record.type}: it holds nothing that could be hidden")
            unseen = hidden(session.tree)
            copies = tuple(each for each in copies_of(session.tree.entries, target) if each not in unseen)
            if not copies:
                raise SessionError(f"entry {entry} is redacted already")
            before = stale_summaries(session.tree.entries)
            await session.append(*(RedactRecord(target=each) for each in copies))
            stale = stale_summaries(session.tree.entries) - before
            results = tuple(each for each in _results_of(session.tree.entries, target) if each not in unseen)
            return Redacted(copies, tuple(sorted(stale)), results)


def copies_of(entries: Sequence[Entry], target: Entry) -> tuple[int, ...]:
    """The entries that hold what `target` does: the inbox entry that a message came from, each message that brought
    it (a retry brings it again)."""
    record = target.record
    item = record.inbox if isinstance(record, MessageRecord) else None
    if isinstance(record, InboxRecord):
        item = target.id if record.item is None else record.item
    if item is None:
        return (target.id,)
    same = (each for each in entries if each.id == item or getattr(each.record, "inbox", None) == item)
    return tuple(each.id for each in same if isinstance(each.record, (InboxRecord, MessageRecord)))


def labels_of(entries: Sequence[Entry], target: int) -> tuple[str, ...]:
    """The names that an entry has now."""
    names: dict[str, bool] = {}
    for entry in entries:
        if isinstance(entry.record, LabelRecord) and entry.record.target == target:
            names[entry.record.text] = entry.record.on
    return tuple(name for name, on in names.items() if on)


def edited_blocks(branch: Sequence[Entry], target: int) -> tuple[int | None, ...]:
    """The blocks of an entry (None: the whole) that an edit of the branch leaves out or replaces now."""
    edited: dict[int | None, bool] = {}
    for entry in branch:
        if isinstance(entry.record, EditRecord) and entry.record.target == target:
            edited[entry.record.block] = entry.record.action != "restore"
    return tuple(block for block, stands in edited.items() if stands)


def _target(session: Session, entry: int | None) -> Entry:
    return newest_message(session.tree) if entry is None else find(session.tree, entry)


def _on_branch(session: Session, number: int) -> Entry:
    entry = find(session.tree, number)
    if not isinstance(entry.record, _SHOWN):
        raise SessionError(f"entry {number} is a {entry.record.type}: only what is said can be left out or restored")
    if entry.id in hidden(session.tree):
        raise SessionError(f"entry {number} is redacted: no model sees it, and nothing brings it back")
    if not session.tree.holds(session.tree.leaf, entry.id):
        raise SessionError(f"entry {number} is on another branch; /tree {number} goes there")
    return entry


def _results_of(entries: Sequence[Entry], reply: Entry) -> list[int]:
    return [each.id for each in entries if isinstance(each.record, ResultRecord) and each.record.call[0] == reply.id]
