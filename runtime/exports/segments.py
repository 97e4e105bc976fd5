"""From the entries of a session to its `Transcript`: the tree of segments, and what stands in each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from governors.messages import Document, Image, Text, Thinking, ToolCall

from ..errors import SessionError
from ..session.entries import (
    OFF_BRANCH,
    ArchiveRecord,
    CallReference,
    EditRecord,
    Entry,
    Header,
    LabelRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    ResultRecord,
)
from ..session.tree import Tree
from .marks import edits_mark, mark_of, same_decision
from .transcript import (
    Answer,
    Branch,
    Called,
    Item,
    Mark,
    Said,
    Segment,
    Transcript,
    models_of,
    total_cost,
    total_usage,
)
from .veil import hidden_entries, veiled

_TITLE = 70  # characters


def transcript(
    header: Header,
    entries: Sequence[Entry],
    *,
    entry: int | None = None,
    branch: bool = False,
    problems: Sequence[str] = (),
) -> Transcript:
    """What people read of a session. `entries` are all of it, in the order of writing; nothing redacted is shown.

    `entry`: only the branch that ends there. `branch`: only the current one. `problems` are what was wrong with the
    file. Raises `SessionError` for an entry that there is none of.
    """
    hidden = hidden_entries(entries)
    shown = veiled(entries)
    tree = Tree(shown)
    tip = tip_of(tree, entry)
    path = {each.id for each in tree.branch_to(tip)}
    alone = branch or entry is not None
    kept = [each for each in shown if not alone or each.id in path or _hangs_on(each, path)]
    segments, branches = _Weaver(tree, kept, hidden, tip, alone).weave()
    facts = _Facts(shown)
    return Transcript(
        header=header,
        segments=segments,
        branches=branches,
        cost=total_cost(shown),
        usage=total_usage(shown),
        models=models_of(shown),
        tags=facts.session_tags,
        pinned=facts.pinned,
        archived=facts.archived,
        redacted=len(hidden),
        title=title_of(shown),
        problems=tuple(problems),
    )


def tip_of(tree: Tree, entry: int | None) -> int | None:
    """The entry that the branch to be shown ends with: `entry`, else the leaf. Raises `SessionError`."""
    if entry is None:
        return tree.leaf
    if entry not in tree:
        near = sorted((each.id for each in tree.entries), key=lambda identity: (abs(identity - entry), identity))[:3]
        told = f"The nearest are {', '.join(map(str, sorted(near)))}" if near else "It has none"
        raise SessionError(f"there is no entry {entry} in this session. {told}")
    return entry


def title_of(entries: Iterable[Entry]) -> str:
    """The first words that a person said, on one line."""
    for entry in entries:
        if isinstance(entry.record, MessageRecord) and entry.record.role == "user":
            text = " ".join(" ".join(part.text for part in entry.record.content if isinstance(part, Text)).split())
            if text:
                return text if len(text) <= _TITLE else text[: _TITLE - 1].rstrip() + "…"
    return ""


def _hangs_on(entry: Entry, path: set[int]) -> bool:
    return isinstance(entry.record, OFF_BRANCH) and (entry.parent is None or entry.parent in path)


class _Facts:
    """What pins, labels, archives and edits say of the session and of its entries, by the newest of each."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.pinned = self.archived = False
        labels: dict[tuple[int | None, str], bool] = {}
        pins: dict[int, bool] = {}
        self._edits: dict[int, list[int]] = defaultdict(list)
        for entry in entries:
            match entry.record:
                case PinRecord(target=None, on=on):
                    self.pinned = on
                case PinRecord(target=int(target), on=on):
                    pins[target] = on
                case LabelRecord(text=text, target=target, on=on):
                    labels[target, text] = on
                case ArchiveRecord(on=on):
                    self.archived = on
                case EditRecord(target=target):
                    self._edits[target].append(entry.id)
                case _:
                    pass
        self.session_tags = tuple(text for (target, text), on in labels.items() if on and target is None)
        self._labels = [(target, text) for (target, text), on in labels.items() if on and target is not None]
        self._pins = {target for target, on in pins.items() if on}

    def tags(self, identity: int, edits_in: set[int]) -> tuple[str, ...]:
        found = ["pinned"] if identity in self._pins else []
        found += [text for target, text in self._labels if target == identity]
        edits = [edit for edit in self._edits.get(identity, ()) if edit in edits_in]
        return (*found, *([f"edited by {', '.join(map(str, edits))}"] if edits else []))


class _Weaver:
    """Cuts the tree into segments and fills them."""

    def __init__(
        self, tree: Tree, entries: Sequence[Entry], redacted: Iterable[int], tip: int | None, alone: bool
    ) -> None:
        self._tree = tree
        self._redacted = frozenset(redacted)
        self._tip = tip
        kept = {entry.id for entry in entries}
        self._left: dict[int | None, list[Entry]] = defaultdict(list)  # where branches leave that are not shown
        for entry in tree.entries if alone else ():
            if entry.id not in kept and not isinstance(entry.record, OFF_BRANCH):
                self._left[entry.parent].append(entry)
        self._on: dict[int | None, list[Entry]] = defaultdict(list)  # entries that go on from one, by it
        self._off: dict[int | None, list[Entry]] = defaultdict(list)
        self._results: dict[CallReference, list[Entry]] = defaultdict(list)
        self._facts = _Facts(entries)
        self._segments: list[Segment] = []
        self._branches: list[Branch] = []
        for entry in entries:
            (self._off if isinstance(entry.record, OFF_BRANCH) else self._on)[entry.parent].append(entry)
            if isinstance(entry.record, ResultRecord):
                self._results[entry.record.call].append(entry)

    def weave(self) -> tuple[tuple[Segment, ...], tuple[Branch, ...]]:
        waiting: list[tuple[Entry, tuple[int, ...]]] = [(first, ()) for first in reversed(self._on[None])]
        before = self._beside(None)
        while waiting:
            first, path = waiting.pop()
            run = self._run(first)
            number = len(self._segments)
            items = (*before, *self._items(run))
            before = ()
            parent = path[-1] if path else None
            self._segments.append(Segment(number, parent, first.parent, first.id, run[-1].id, items))
            path = (*path, number)
            following = self._on[run[-1].id]
            if not following:
                self._branches.append(Branch(run[-1].id, path, False))
            waiting.extend((each, path) for each in reversed(following))
        self._find_current(before)
        return tuple(self._segments), tuple(self._branches)

    def _find_current(self, before: tuple[Item, ...]) -> None:
        """Put the branch that is talked on first; one that ends inside a longer one gets a path of its own."""
        if self._tip is None:
            if before:  # notes and waiting input alone
                self._segments.append(Segment(0, None, None, 0, 0, before))
                self._branches.append(Branch(0, (0,), True))
            else:
                self._branches.insert(0, Branch(0, (), True))
            return
        path = {entry.id for entry in self._tree.branch_to(self._tip)}
        numbers = tuple(segment.number for segment in self._segments if segment.first in path)
        current = Branch(self._tip, numbers, True)
        self._branches = [current, *(each for each in self._branches if each.path != numbers)]

    def _run(self, first: Entry) -> list[Entry]:
        """The entries from `first` to the next fork, the leaf or the end."""
        run = [first]
        while len(following := self._on[run[-1].id]) == 1 and run[-1].id != self._tip:
            run.append(following[0])
        return run

    def _items(self, run: Sequence[Entry]) -> tuple[Item, ...]:
        edits = {entry.id for entry in run if isinstance(entry.record, EditRecord)}
        edits |= {entry.id for entry in self._tree.branch_to(run[-1].id) if isinstance(entry.record, EditRecord)}
        nested = self._nested(run)
        items: list[Item] = []
        outcome: OutcomeRecord | None = None
        decided: list[tuple[Entry, EditRecord]] = []  # edits that one line can tell of
        for entry in run:
            record = entry.record
            if decided and not (isinstance(record, EditRecord) and same_decision(decided[-1][1], record)):
                items.append(edits_mark(decided))
                decided = []
            if isinstance(record, EditRecord):
                decided.append((entry, record))
            of_turn = not isinstance(record, OutcomeRecord) or self._is_of_turn(record)
            if isinstance(record, OutcomeRecord) and of_turn:
                outcome = record
            if isinstance(record, MessageRecord):
                items.append(self._said(entry, record, outcome, nested, edits))
                outcome = None
            elif isinstance(record, ResultRecord):
                if entry.id not in nested:
                    items.append(self._answer(entry, record, edits))
            elif of_turn and (mark := mark_of(entry)) is not None:
                items.append(mark)
            items.extend(self._beside(entry.id))
            items.extend(self._forks(entry))
        return (*items, edits_mark(decided)) if decided else tuple(items)

    def _is_of_turn(self, outcome: OutcomeRecord) -> bool:
        """Whether it tells of the reply that follows it: other requests have none in the conversation."""
        asked = self._tree.get(outcome.request)
        return asked is None or getattr(asked.record, "purpose", "turn") == "turn"

    def _nested(self, run: Sequence[Entry]) -> set[int]:
        """The results of `run` that stand with their calls: the first of each call that is there and shown."""
        inside = {entry.id for entry in run}
        found: set[int] = set()
        for entry in run:
            record = entry.record
            if isinstance(record, MessageRecord) and entry.id not in self._redacted:
                calls = sum(isinstance(part, ToolCall) for part in record.content)
                first = (self._results.get((entry.id, number), [entry])[0].id for number in range(calls))
                found.update(identity for identity in first if identity != entry.id and identity in inside)
        return found

    def _beside(self, parent: int | None) -> tuple[Mark, ...]:
        """What hangs on an entry without going on from it."""
        return tuple(mark for entry in self._off[parent] if (mark := mark_of(entry)) is not None)

    def _forks(self, entry: Entry) -> list[Mark]:
        """A line for each branch that leaves here, or goes on, and is not shown."""
        here = "it goes on from here" if entry.id == self._tip else "another branch leaves here"
        leaving = self._left.get(entry.id, ())
        return [Mark(each.id, each.at, "branch", f"{here}, with entry {each.id}") for each in leaving]

    def _said(
        self, entry: Entry, record: MessageRecord, outcome: OutcomeRecord | None, nested: set[int], edits: set[int]
    ) -> Said:
        hidden = entry.id in self._redacted
        calls = [part for part in record.content if isinstance(part, ToolCall)]
        return Said(
            entry=entry.id,
            at=entry.at,
            who=record.role,
            content=tuple(part for part in record.content if isinstance(part, (Text, Image, Document, Thinking))),
            calls=()
            if hidden
            else tuple(self._called(entry.id, n, call, nested, edits) for n, call in enumerate(calls)),
            stop=record.stop,
            model=record.model,
            steered=record.steered,
            usage=record.usage,
            cost=None if outcome is None else outcome.cost,
            tags=() if hidden else self._facts.tags(entry.id, edits),
        )

    def _called(self, reply: int, number: int, call: ToolCall, nested: set[int], edits: set[int]) -> Called:
        found = self._results.get((reply, number), [])
        answer = None
        if found and found[0].id in nested:
            assert isinstance(found[0].record, ResultRecord)
            answer = self._answer(found[0], found[0].record, edits)
        return Called(call.name, call.arguments, call.complete, answer, bool(found))

    def _answer(self, entry: Entry, record: ResultRecord, edits: set[int]) -> Answer:
        hidden = entry.id in self._redacted
        tags = () if hidden else self._facts.tags(entry.id, edits)
        whole = record.whole
        return Answer(entry.id, entry.at, record.tool, record.content, record.is_error, record.seconds, whole, tags)
