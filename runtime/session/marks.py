"""Records of what people and extensions put beside a conversation: where it goes on, what is pinned, named, hidden.

Import them from `entries`, which has all records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from governors.messages import UserPart

from .heads import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRecord:
    """The conversation goes on from `leaf` (undo, switching branches); None is before the first entry."""

    type: ClassVar[str] = "leaf"
    leaf: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord:
    """Something for people; no model ever sees it."""

    type: ClassVar[str] = "note"
    text: str
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRecord:
    """The entry `target` stays in view when a head cuts it off; None: the session itself is pinned, in lists."""

    type: ClassVar[str] = "pin"
    target: int | None = None
    on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecord:
    """A name that people gave to the entry `target`, to find it by; None: a tag of the session itself."""

    type: ClassVar[str] = "label"
    text: str
    target: int | None = None
    on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRecord:
    """The session was put away: lists leave it out unless asked for it. Not `on`: it is back."""

    type: ClassVar[str] = "archive"
    on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactRecord:
    """The entry `target` is hidden for good, on every branch: from models, recall, search and exports."""

    type: ClassVar[str] = "redact"
    target: int
    cause: str = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSummaryRecord:
    """What happened on a branch that was left at the entry `tip`, for the model to know on this one. `fork` is the last
    entry that both branches hold."""

    type: ClassVar[str] = "branch_summary"
    text: str
    tip: int
    fork: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionRecord:
    """What an extension keeps: `name` is its own, `data` means something to it alone. Where it has `content`, a model
    sees that, as a user-role message in a fixed wrapping: at its own place, or in front of the message of the entry
    `before`. `whole` is the whole text where `content` was cut. What a user ran in a shell is called `shell`. What came
    in the middle of a turn waited as the `inbox` entry that it names."""

    type: ClassVar[str] = "extension"
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    content: tuple[UserPart, ...] = ()
    before: int | None = None
    whole: str | Blob | None = None
    inbox: int | None = None
