"""Entries in the making: what another program's lines become, before they have ids.

A draft names others by reference, not by id, and may still change while lines come in (a reply grows over several).
`place` gives ids. Laws: ids rise, parents are older than their children, and what a draft refers to is older than
it; a circle of parents is cut open where it is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..entries import (
    OFF_BRANCH,
    BranchSummaryRecord,
    Entry,
    HeadRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    Record,
    ResultRecord,
)
from ..view.projection import project


@dataclass(slots=True, eq=False)
class Draft:
    """An entry to be. `refers` are the drafts that its record names: `_bound` puts their ids in."""

    record: Record
    at: str
    parent: Draft | None = None
    refers: tuple[Draft | None, ...] = ()
    meta: bool = False  # a user-role message that no person wrote
    entry: Entry | None = None

    @property
    def is_user(self) -> bool:
        return isinstance(self.record, MessageRecord) and self.record.role == "user"

    @property
    def is_reply(self) -> bool:
        return isinstance(self.record, MessageRecord) and self.record.role == "assistant"


@dataclass(slots=True, eq=False)
class Spot:
    """Where later lines hang: the last entry of a step (its reply and all results). `children` hang on it. `reply` is
    the reply of the step, `name` what its program calls it."""

    tail: Draft | None = None
    reply: Draft | None = None
    name: str = ""
    children: list[Draft] = field(default_factory=list)

    def extend(self, draft: Draft) -> None:
        """Put `draft` at the end of the step: what hung on the step before now hangs on it."""
        draft.parent = self.tail
        self.tail = draft
        for child in self.children:
            child.parent = draft


def path_to(draft: Draft | None) -> list[Draft]:
    """The drafts from the root to `draft`; a circle of parents ends where it began."""
    found: list[Draft] = []
    seen: set[int] = set()
    while draft is not None and id(draft) not in seen:
        seen.add(id(draft))
        found.append(draft)
        draft = draft.parent
    found.reverse()
    return found


def place(drafts: Iterable[Draft], leaf: Draft | None) -> tuple[Entry, ...]:
    """The entries of `drafts`, parents first, else in the order given; a `leaf` entry comes last where the
    conversation goes on from another entry than the last."""
    entries: list[Entry] = []
    for draft in drafts:
        for each in _missing(draft):
            _settle(each, entries)
    tip = next((entry for entry in reversed(entries) if not isinstance(entry.record, OFF_BRANCH)), None)
    wanted = leaf.entry if leaf is not None else None
    if wanted is not None and tip is not None and tip is not wanted:
        last = Entry(len(entries) + 1, wanted.id, entries[-1].at, LeafRecord(leaf=wanted.id))
        entries.append(last)
    return tuple(entries)


def _missing(draft: Draft) -> list[Draft]:
    """The drafts without an entry that `draft` needs, itself last."""
    needed: list[Draft] = []
    waiting: list[tuple[Draft, bool]] = [(draft, False)]
    begun: set[int] = set()
    while waiting:
        each, done = waiting.pop()
        if done:
            needed.append(each)
        elif each.entry is None and id(each) not in begun:
            begun.add(id(each))
            waiting.append((each, True))
            waiting += [(other, False) for other in (each.parent, *each.refers) if other is not None]
    return needed


def _settle(draft: Draft, entries: list[Entry]) -> None:
    identity = len(entries) + 1
    parent = draft.parent
    while parent is not None and parent.entry is not None and isinstance(parent.record, OFF_BRANCH):
        parent = parent.parent
    above = parent.entry.id if parent is not None and parent.entry is not None else None
    refers = [other.entry.id if other is not None and other.entry is not None else None for other in draft.refers]
    branch = _branch(entries, above) if isinstance(draft.record, HeadRecord) else ()
    record = _bound(draft.record, refers, identity, branch)
    draft.entry = Entry(identity, above, draft.at, record)
    draft.record = record
    entries.append(draft.entry)


def _branch(entries: Sequence[Entry], leaf: int | None) -> Sequence[Entry]:
    found: list[Entry] = []
    while leaf is not None:
        found.append(entries[leaf - 1])
        leaf = found[-1].parent
    found.reverse()
    return found


def _bound(record: Record, refers: Sequence[int | None], own: int, branch: Sequence[Entry]) -> Record:
    """`record` with the ids of what it refers to."""
    first = refers[0] if refers else None
    match record:
        case ResultRecord() if first is not None:
            return replace(record, call=(first, record.call[1]))
        case HeadRecord() if first is not None:
            shown = project(branch)
            return replace(
                record,
                start=first,
                resume=own if record.resume == 0 else refers[1],
                settings=dict(shown.settings),
                generation=shown.generation + 1,
                open_calls=shown.open_calls(first),
            )
        case LeafRecord():
            return replace(record, leaf=first)
        case LabelRecord() if first is not None:
            return replace(record, target=first)
        case BranchSummaryRecord() if first is not None:
            return replace(record, tip=first, fork=refers[1])
        case _:
            return record
