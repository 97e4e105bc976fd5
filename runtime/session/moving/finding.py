"""From the number that a person typed to an entry of a session. Pure."""

from __future__ import annotations

from bisect import bisect_left

from ...errors import SessionError
from ..entries import OFF_BRANCH, Entry, InboxRecord, LabelRecord, LeafRecord, MessageRecord, PinRecord, RedactRecord
from ..tree import Tree
from ..view.redaction import input_of, is_delivery


def entry_of(tree: Tree, number: int) -> Entry:
    """The entry `number`. Raises `SessionError` that names the nearest ones."""
    found = tree.get(number)
    if found is not None:
        return found
    known = [entry.id for entry in tree.entries]
    if not known:
        raise SessionError(f"there is no entry {number}: nothing was said in this session yet")
    place = bisect_left(known, number)
    near = " and ".join(str(each) for each in known[max(0, place - 1) : place + 1])
    raise SessionError(f"there is no entry {number} in this session; the nearest: {near}")


def find(tree: Tree, number: int) -> Entry:
    """The entry `number` if it is on a branch, else the one that it is about. Raises `SessionError`."""
    entry = entry_of(tree, number)
    while isinstance(entry.record, OFF_BRANCH):
        about = _about(tree, entry)
        if about is None or (later := tree.get(about)) is None or later is entry:
            raise SessionError(f"entry {number} ({entry.record.type}) is on no branch")
        entry = later
    return entry


def _about(tree: Tree, entry: Entry) -> int | None:
    match entry.record:
        case LabelRecord(target=int() as target) | PinRecord(target=int() as target) | RedactRecord(target=target):
            return target
        case LeafRecord(leaf=leaf):
            return leaf
        case InboxRecord(item=item):
            carried = entry.id if item is None else item
            brought = (each for each in tree.entries if is_delivery(each.record))
            return next((each.id for each in brought if input_of(each) == carried), entry.parent)
        case _:
            return entry.parent


def newest_message(tree: Tree) -> Entry:
    """The last message of the branch, whoever wrote it. Raises `SessionError` when there is none."""
    for entry in reversed(tree.branch()):
        if isinstance(entry.record, MessageRecord):
            return entry
    raise SessionError("nothing was said yet on this branch")


def hidden(tree: Tree) -> frozenset[int]:
    """The entries that are redacted, with the messages that brought redacted input."""
    targets = {entry.record.target for entry in tree.entries if isinstance(entry.record, RedactRecord)}
    if not targets:
        return frozenset()
    brought = (entry.id for entry in tree.entries if getattr(entry.record, "inbox", None) in targets)
    return frozenset(targets | set(brought))
