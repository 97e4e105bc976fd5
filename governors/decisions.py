"""Decisions: changes to what a model sees that depend on later messages, so that they must be kept.

A decision names the place of a message: its index in the repaired list from the conversation's first message on, which
only grows. A decision made once is made again, byte for byte, whenever it is handed in. Whoever keeps decisions
apart from messages may store the `place` numbers; what a decision no longer fits (another message stands there)
is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Why = Literal["must", "cold", "pays"]


@dataclass(frozen=True, slots=True)
class Stub:
    """The result at `place`, whose content has `handle`, is shown as one line."""

    place: int
    handle: str
    why: Why = "must"


@dataclass(frozen=True, slots=True)
class DropImages:
    """The first `count` images of the message at `place` are left out."""

    place: int
    count: int


@dataclass(frozen=True, slots=True)
class DropDocuments:
    """The text of the first `count` documents of the message at `place` is shown in their place."""

    place: int
    count: int


@dataclass(frozen=True, slots=True)
class DropThinking:
    """The replies from `place` to before `until` are shown without their reasoning: what it was bound to has changed,
    and this model refuses, or loses, reasoning that stands under another prefix."""

    place: int
    until: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The context begins at the user message at `start`; mid-turn its first kept step is the reply at `resume` (the
    number of messages at that time: none was kept). `quote` is the question that the first kept message answers,
    `handle` that of the message at `start` (empty: whatever stands there)."""

    start: int
    resume: int | None = None
    quote: str | None = None
    handle: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Missed:
    """A request left when the conversation had `taken` messages, as they were given, and at `place` it carried a
    stand-in, or a result of which it was not sure that no other would come: whatever comes later is shown at its own
    place. Without `taken` it is only told for information."""

    place: int
    taken: int = 0


Decision: TypeAlias = Stub | DropImages | DropDocuments | DropThinking | Cut | Missed
