"""The tree of a session as people think of it: turns, and the other ways that were gone from them. Pure.

A branch is a row of turns; what leaves it hangs on the turn that it leaves from, as a branch of its own that runs to
where it was written to last. What says nothing to people (a setting, a head that was kept) makes no branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from governors.messages import ToolCall

from ..entries import (
    OFF_BRANCH,
    BranchSummaryRecord,
    EditRecord,
    Entry,
    HeadRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    PinRecord,
    ResultRecord,
)
from ..tree import Tree
from ..view.redaction import REDACTED
from .finding import hidden
from .turns import is_user, opens, pictures, said, turns_of

_SPOKEN = (MessageRecord, ResultRecord, BranchSummaryRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A turn. `entry` is its number for people: the message that opened it, or, where a branch begins inside a turn
    (`again`: another answer to the same message), the first message of it. `tip` is its last entry.

    The marks are of all its entries, by their numbers. `heads` were made in it; `summaries` tell of the branches that
    were left at these tips; `notes` are those of people, each with its number.
    """

    entry: int
    tip: int
    text: str
    again: bool = False
    here: bool = False
    labels: tuple[tuple[int, str], ...] = ()
    notes: tuple[tuple[int, str], ...] = ()
    pinned: tuple[int, ...] = ()
    redacted: tuple[int, ...] = ()
    omitted: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    summaries: tuple[int, ...] = ()
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A way that left another. `turns` are all of it, those of its own branches included."""

    rows: tuple[Row, ...]
    turns: int
    tip: int


@dataclass(frozen=True, slots=True)
class Outline:
    """`rows` is the current branch; `beginnings` are other first turns. `start` is where the model's view begins, None
    where it sees everything; `summarised`: a summary stands for what is before."""

    rows: tuple[Row, ...]
    beginnings: tuple[Branch, ...]
    start: int | None
    summarised: bool


def outline(tree: Tree) -> Outline:
    """The outline of `tree`, which should be whole."""
    drawing = _Drawing(tree)
    branch = tree.branch()
    head = next((entry.record for entry in reversed(branch) if isinstance(entry.record, HeadRecord)), None)
    return Outline(
        rows=drawing.rows(branch),
        beginnings=drawing.branches(None, {branch[0].id} if branch else set()),
        start=None if head is None else head.start,
        summarised=head is not None and head.summary is not None,
    )


@dataclass(slots=True)
class _Subtree:
    """All that hangs on an entry, itself included."""

    tip: int
    turns: int = 0
    spoken: bool = False


class _Drawing:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._marks = _Marks(tree)
        self._children: dict[int | None, list[Entry]] = {}
        self._below: dict[int, _Subtree] = {}
        for entry in reversed(tree.entries):
            if isinstance(entry.record, OFF_BRANCH):
                continue
            self._children.setdefault(entry.parent, []).append(entry)
            below = self._below.setdefault(entry.id, _Subtree(entry.id))
            below.spoken = below.spoken or isinstance(entry.record, _SPOKEN)
            below.turns += opens(entry, None if entry.parent is None else tree.get(entry.parent))
            if entry.parent is not None:
                above = self._below.setdefault(entry.parent, _Subtree(entry.parent))
                above.tip = max(above.tip, below.tip)
                above.turns += below.turns
                above.spoken = above.spoken or below.spoken

    def rows(self, path: Sequence[Entry]) -> tuple[Row, ...]:
        """The turns of a part of a branch."""
        turns = [turn.entries for turn in turns_of(path)]
        lead = tuple(path[: len(path) - sum(map(len, turns))])
        if any(isinstance(entry.record, MessageRecord) for entry in lead):
            turns.insert(0, lead)
        elif turns:
            turns[0] = (*lead, *turns[0])
        on_path = {entry.id for entry in path}
        return tuple(self._row(entries, on_path) for entries in turns)

    def branches(self, parent: int | None, besides: set[int]) -> tuple[Branch, ...]:
        """The branches that begin below `parent`, oldest first, but for those through `besides`."""
        found = []
        for child in reversed(self._children.get(parent, ())):
            below = self._below[child.id]
            if child.id not in besides and below.spoken and (rows := self.rows(self._way(child, below.tip))):
                found.append(Branch(rows, max(1, below.turns), below.tip))
        return tuple(found)

    def _way(self, first: Entry, tip: int) -> list[Entry]:
        way = []
        entry = self._tree.get(tip)
        while entry is not None and entry.id >= first.id:
            way.append(entry)
            entry = None if entry.parent is None else self._tree.get(entry.parent)
        way.reverse()
        return way

    def _row(self, entries: Sequence[Entry], on_path: set[int]) -> Row:
        numbers = [entry.id for entry in entries]
        first = next((entry for entry in entries if isinstance(entry.record, MessageRecord)), entries[0])
        marks = self._marks
        return Row(
            entry=first.id,
            tip=numbers[-1],
            text=REDACTED if first.id in marks.redacted else first_words(first),
            again=not is_user(first) or getattr(first.record, "steered", False),
            here=self._tree.leaf == numbers[-1],
            labels=tuple((number, label) for number in numbers for label in marks.labels.get(number, ())),
            notes=tuple(note for number in numbers for note in marks.notes.get(number, ())),
            pinned=tuple(number for number in numbers if number in marks.pinned),
            redacted=tuple(number for number in numbers if number in marks.redacted),
            omitted=tuple(number for number in numbers if number in marks.omitted),
            heads=tuple(entry.id for entry in entries if isinstance(entry.record, HeadRecord)),
            summaries=tuple(each.record.tip for each in entries if isinstance(each.record, BranchSummaryRecord)),
            branches=tuple(branch for number in numbers for branch in self.branches(number, on_path)),
        )


@dataclass(slots=True)
class _Marks:
    """What people put on entries. What is left out is so on the current branch."""

    tree: Tree
    labels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    notes: dict[int, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    pinned: set[int] = field(default_factory=set)
    redacted: frozenset[int] = frozenset()
    omitted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.redacted = hidden(self.tree)
        for entry in self.tree.entries:
            match entry.record:
                case LabelRecord(target=int() as target, text=text, on=on):
                    others = tuple(label for label in self.labels.get(target, ()) if label != text)
                    self.labels[target] = (*others, text) if on else others
                case NoteRecord(data=None, text=text) if entry.parent is not None and entry.id not in self.redacted:
                    self.notes[entry.parent] = (*self.notes.get(entry.parent, ()), (entry.id, text))
                case PinRecord(target=int() as target, on=on):
                    (self.pinned.add if on else self.pinned.discard)(target)
                case _:
                    pass
        for entry in self.tree.branch():
            match entry.record:
                case EditRecord(block=None, target=target, action=action):
                    (self.omitted.add if action == "omit" else self.omitted.discard)(target)
                case _:
                    pass


def first_words(entry: Entry) -> str:
    """The first line of a message that says something; what it holds otherwise, where it says nothing."""
    text = next((line.strip() for line in said(entry).splitlines() if line.strip()), "")
    if text:
        return text
    called = [part.name for part in getattr(entry.record, "content", ()) if isinstance(part, ToolCall)]
    if called:
        return f"({', '.join(called)})"
    count = pictures(entry)
    return f"({count} {'picture' if count == 1 else 'pictures'})" if count else "(nothing)"
