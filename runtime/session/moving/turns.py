"""Turns as people think of them: what was asked, and all that came of it. Pure.

A turn opens with a user's message that nobody steered into a running one; messages that were delivered together open it
together. It lasts until the next one opens, so what was set or summarised between two turns belongs to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from governors.messages import Document, Image, Text

from ..entries import Entry, MessageRecord


@dataclass(frozen=True, slots=True)
class Turn:
    """`opening` are the messages that opened it; `entries` all of it, those included."""

    opening: tuple[Entry, ...]
    entries: tuple[Entry, ...]

    @property
    def before(self) -> int | None:
        """The entry that the turn hangs on."""
        return self.opening[0].parent

    @property
    def steered(self) -> tuple[Entry, ...]:
        """What was steered in while it ran."""
        return tuple(entry for entry in self.entries[len(self.opening) :] if is_user(entry))


def turns_of(branch: Sequence[Entry]) -> list[Turn]:
    """The turns of `branch`, oldest first. What stands before the first message belongs to none."""
    starts = [place for place, entry in enumerate(branch) if opens(entry, branch[place - 1] if place else None)]
    turns = []
    for start, end in pairwise([*starts, len(branch)]):
        last = start + 1
        while last < end and goes_along(branch[last], branch[last - 1]):
            last += 1
        turns.append(Turn(tuple(branch[start:last]), tuple(branch[start:end])))
    return turns


def opens(entry: Entry, before: Entry | None) -> bool:
    """Whether `entry`, which hangs on `before`, opens a turn."""
    record = entry.record
    if not isinstance(record, MessageRecord) or record.role != "user" or record.steered:
        return False
    return not goes_along(entry, before)


def goes_along(entry: Entry, before: Entry | None) -> bool:
    """Whether `entry` was delivered together with `before`, input that had waited: both were one batch."""
    if before is None or not is_user(entry) or not is_user(before):
        return False
    first, second = before.record, entry.record
    assert isinstance(first, MessageRecord)
    assert isinstance(second, MessageRecord)
    together = before.at == entry.at and before.id + 1 == entry.id
    return together and first.inbox is not None and not first.steered and not second.steered


def is_user(entry: Entry) -> bool:
    return isinstance(entry.record, MessageRecord) and entry.record.role == "user"


def said(*entries: Entry) -> str:
    """The text of messages, as it was typed."""
    texts = (part.text for entry in entries for part in getattr(entry.record, "content", ()) if isinstance(part, Text))
    return "\n\n".join(texts)


def pictures(*entries: Entry) -> int:
    """How many pictures and documents the messages hold."""
    return sum(isinstance(part, Image | Document) for entry in entries for part in getattr(entry.record, "content", ()))
