"""A session as people read it: who said what, when, with the calls and their results, and what happened beside it.

Pure; every format for people (Markdown, HTML, the terminal) is made from a `Transcript`. It is a tree of segments:
entries that follow each other without a fork. A branch is a path of segments, so that nothing stands twice, however
many branches share it. Laws: it is made from veiled entries, so nothing redacted is in it; every message and result of
the entries it was asked for stands in it exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from governors.messages import StopReason, Text, Thinking, Usage, UserPart

from ..session.entries import Blob, Entry, Header, MessageRecord, OutcomeRecord

MarkKind: TypeAlias = Literal[
    "head",
    "compaction",
    "edit",
    "system",
    "setting",
    "note",
    "problem",
    "branch",
    "summary",
    "waiting",
    "extension",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. `whole` is the whole text of an output that the model saw only a part of."""

    entry: int
    at: str
    tool: str
    content: tuple[UserPart, ...]
    is_error: bool = False
    seconds: float | None = None
    whole: str | Blob | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a reply, with its result when that stands in the same segment. `answered`: it has one somewhere."""

    tool: str
    arguments: str
    complete: bool
    answer: Answer | None
    answered: bool


@dataclass(frozen=True, slots=True)
class Said:
    """A message. `tags` say what holds of the entry (pinned, labels, edits, redacted); `cost` is in US dollars."""

    entry: int
    at: str
    who: Literal["user", "assistant"]
    content: tuple[UserPart | Thinking, ...]
    calls: tuple[Called, ...] = ()
    stop: StopReason | None = None
    model: str | None = None
    steered: bool = False
    usage: Usage | None = None
    cost: float | None = None
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened beside the messages: a line, and a longer text where there is one."""

    entry: int
    at: str
    kind: MarkKind
    title: str
    text: str = ""


Item: TypeAlias = Said | Answer | Mark


@dataclass(frozen=True, slots=True)
class Segment:
    """Entries without a fork between them. `parent` is the number of the segment it goes on from, `after` the entry."""

    number: int
    parent: int | None
    after: int | None
    first: int
    last: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A path through the segments, root to tip. `tip` is its last entry; `current`: it is being talked on."""

    tip: int
    path: tuple[int, ...]
    current: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """`segments` by number, from 0; `branches` with the current one first. `cost` is in US dollars, None when some of
    it is unknown; `redacted` counts redacted entries."""

    header: Header
    segments: tuple[Segment, ...]
    branches: tuple[Branch, ...]
    cost: float | None
    usage: Usage
    models: tuple[str, ...]
    tags: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    redacted: int = 0
    title: str = ""
    problems: tuple[str, ...] = field(default=())

    @property
    def shown(self) -> tuple[Segment, ...]:
        """The segments of the current branch, root to tip."""
        return tuple(self.segments[number] for number in self.branches[0].path) if self.branches else ()


def total_usage(entries: Sequence[Entry]) -> Usage:
    """The tokens of all model calls, each counted once."""
    found = [entry.record.usage for entry in entries if isinstance(entry.record, OutcomeRecord) and entry.record.usage]
    found += _without_outcome(entries)
    return Usage(
        sum(each.plain for each in found),
        sum(each.cache_read for each in found),
        sum(each.cache_write_5m for each in found),
        sum(each.cache_write_1h for each in found),
        sum(each.output for each in found),
        sum(each.reasoning for each in found),
    )


def total_cost(entries: Sequence[Entry]) -> float | None:
    """US dollars of all model calls, in a fork those that were copied too; None when some of it is unknown."""
    outcomes = (entry.record for entry in entries if isinstance(entry.record, OutcomeRecord))
    costs = [outcome.cost for outcome in outcomes if outcome.usage is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known, 0.0) if len(known) == len(costs) and not _without_outcome(entries) else None


def _without_outcome(entries: Sequence[Entry]) -> list[Usage]:
    """The usage of replies that came without a request of ours, as those of an import do."""
    outcomes = {entry.id for entry in entries if isinstance(entry.record, OutcomeRecord)}
    return [
        entry.record.usage
        for entry in entries
        if isinstance(entry.record, MessageRecord) and entry.record.usage is not None and entry.parent not in outcomes
    ]


def models_of(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The models that answered, in the order of their first reply."""
    named = (entry.record.model for entry in entries if isinstance(entry.record, MessageRecord))
    return tuple(dict.fromkeys(name for name in named if name))
