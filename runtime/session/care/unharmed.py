"""Whether erasing left a session as it was, but for what had to go. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest

from ..entries import Entry, RedactRecord
from ..format.reading import Reading
from ..tree import Tree
from ..view.projection import Projection, project
from .erasure import ERASURE, redacted_in


def harm(before: Reading, after: Reading, touched: Collection[int]) -> str | None:
    """What differs that must not: anything but the records of the entries `touched`, and an entry that tells of it.
    None: nothing.

    Checked are the header, the place and record of every entry, the leaf, and what its branch shows a model while the
    redactions hold.
    """
    if after.header != before.header:
        return "its header would change"
    if after.torn is not None or after.unterminated or any(finding.content for finding in after.broken):
        return "not every line of it could be read"
    for old, new in zip_longest(before.entries, _without_the_last(before, after)):
        if old is None or new is None or _place(old) != _place(new):
            return f"entry {(old or new).id} would not stay where it is"
        if old != new and old.id not in touched:
            return f"entry {old.id} would change"
    old_tree, new_tree = Tree(before.entries), Tree(after.entries)
    if old_tree.leaf != new_tree.leaf or old_tree.redacted != new_tree.redacted:
        return "its leaf or its redactions would change"
    redacted = redacted_in(before.entries)
    shown, shown_now = (project(tree.branch(), redacted) for tree in (old_tree, new_tree))
    return _shown_otherwise(shown, shown_now, touched)


def _without_the_last(before: Reading, after: Reading) -> Sequence[Entry]:
    """The entries of `after`, but for the one that tells of the erasing."""
    last = after.entries[-1] if len(after.entries) == len(before.entries) + 1 else None
    told = last is not None and isinstance(last.record, RedactRecord) and last.record.cause == ERASURE
    return after.entries[:-1] if told else after.entries


def _place(entry: Entry) -> tuple[object, ...]:
    return entry.id, entry.parent, entry.at, type(entry.record)


def _shown_otherwise(before: Projection, after: Projection, touched: Collection[int]) -> str | None:
    if len(before.messages) != len(after.messages):
        return f"a model would see {len(after.messages)} messages instead of {len(before.messages)}"
    for old, new in zip(before.messages, after.messages, strict=True):
        if type(old) is not type(new) or old.origin != new.origin:
            return f"a model would see something else in place of entry {old.origin}"
        if old != new and old.origin not in touched:
            return f"a model would see entry {old.origin} otherwise"
    for name in ("baseline", "state", "settings", "stand_ins", "open", "head", "generation"):
        if getattr(before, name) != getattr(after, name):
            return f"the {name} of what a model sees would change"
    return None
