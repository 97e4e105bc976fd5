"""What a session's log holds: one record an entry, one entry a line.

An `Entry` is a place in the tree (`id`, `parent`, `at`) and a record that says what happened there. Records are
frozen values; nothing here does I/O. `codec.py` turns them into lines and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from governors.messages import Document, Image, StopReason, Text, Thinking, ToolCall, ToolSpec, Usage, UserPart

from .heads import Baseline as Baseline
from .heads import Blob as Blob
from .heads import CallReference as CallReference
from .heads import CompactionRecord as CompactionRecord
from .heads import EditRecord as EditRecord
from .heads import HeadRecord as HeadRecord
from .heads import InboxState as InboxState
from .heads import Pinned as Pinned
from .heads import Waiting as Waiting
from .marks import (
    ArchiveRecord as ArchiveRecord,
)
from .marks import (
    BranchSummaryRecord as BranchSummaryRecord,
)
from .marks import (
    ExtensionRecord as ExtensionRecord,
)
from .marks import (
    LabelRecord as LabelRecord,
)
from .marks import (
    LeafRecord as LeafRecord,
)
from .marks import (
    NoteRecord as NoteRecord,
)
from .marks import (
    PinRecord as PinRecord,
)
from .marks import (
    RedactRecord as RedactRecord,
)

FORMAT_VERSION = 1

Part: TypeAlias = Text | Image | Document | Thinking | ToolCall
Sections: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a session file."""

    id: str
    agent: str
    created: str
    version: int = FORMAT_VERSION
    channel: str | None = None  # where it was begun
    origin: Mapping[str, Any] | None = None  # of a fork (`session`, `entry`) or an import (`format`, `path`, `sha256`)
    type: Literal["session"] = "session"

    @property
    def copied(self) -> int:
        """The last entry that came from another session by a fork, which paid for it; 0 when none did."""
        entry = self.origin.get("entry") if self.origin is not None and self.origin.get("kind") == "fork" else None
        return entry if isinstance(entry, int) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A user's message or a model's reply; the calls of a reply are parts of it.

    `context` is what the runtime knew when a user's message came (clock, channel, sender), rendered at its end
    for ever the same. `inbox` names the inbox entry that a delivered message came from.
    """

    type: ClassVar[str] = "message"
    role: Literal["user", "assistant"]
    content: tuple[Part, ...]
    context: str | None = None
    inbox: int | None = None
    steered: bool = False
    stop: StopReason | None = None
    model: str | None = None
    wire: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRecord:
    """A call is about to run. `read_only`: after a crash it may simply be run again. `arguments` (JSON text) is what it
    runs with where that is not what the model wrote, and `hook` who changed them, or answers in the tool's place."""

    type: ClassVar[str] = "intent"
    call: CallReference
    tool: str
    read_only: bool = False
    arguments: str | None = None
    hook: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """The outcome of a call; `seconds` is how long it ran. `whole` is the whole text of an output that was too long:
    `content` is what the model reads of it."""

    type: ClassVar[str] = "result"
    call: CallReference
    tool: str
    content: tuple[UserPart, ...]
    is_error: bool = False
    seconds: float | None = None
    whole: str | Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRecord:
    """A patch of the system prompt (a section that is None is removed) and of the tools. `cause` names the hooks that
    shape the prompt of this turn, or that shaped the one before."""

    type: ClassVar[str] = "system"
    sections: Sections = field(default_factory=dict)
    tools_added: tuple[ToolSpec, ...] = ()
    tools_removed: tuple[str, ...] = ()
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRecord:
    """A setting of this session from here on (`model`, `thinking`, a grant). None takes it back."""

    type: ClassVar[str] = "setting"
    name: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadChange:
    """What the hook `hook` changed of a request's body: an operation of JSON Patch (RFC 6902) at the JSON pointer
    `path` (RFC 6901)."""

    hook: str
    op: Literal["add", "replace", "remove"]
    path: str
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request leaves. `prefix` is the hash of its blocks, `forecast` its estimated tokens.

    `stand_ins` are the calls that this request answered with a stand-in; `lifetime` is how long the provider was asked
    to keep the prompt (seconds), `thinking` the level that was asked for. `changes` are what hooks
    changed of the body that follows from the log; `prefix` and `blocks` are of what was sent. `reserved` is what the
    call may cost at most (US dollars), as it was taken from the spending limits; None where nothing was reserved.
    `asked` is what a request beside the conversation asked at its end, in the user's role.
    """

    type: ClassVar[str] = "request"
    purpose: str
    provider: str
    model: str
    wire: str
    prefix: str
    forecast: int
    budget: int
    blocks: int
    lifetime: int = 300
    thinking: str | None = None
    stand_ins: tuple[CallReference, ...] = ()
    decisions: tuple[int, ...] = ()  # entries made for this request
    changes: tuple[PayloadChange, ...] = ()
    reserved: float | None = None
    asked: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRecord:
    """What became of a request: usage and cost (US dollars), or the problem. `cause`: why its prefix moved; `seconds`
    it took, `first` of them until the first piece of the answer came."""

    type: ClassVar[str] = "outcome"
    request: int
    stop: StopReason
    usage: Usage | None = None
    cost: float | None = None
    cause: str | None = None
    problem: Mapping[str, Any] | None = None
    seconds: float | None = None
    first: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRecord:
    """Input that arrived. The first record of an item holds the input; later ones (`item` set) change its state."""

    type: ClassVar[str] = "inbox"
    state: InboxState
    item: int | None = None
    content: tuple[UserPart, ...] = ()
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRecord:
    """A line of a type that this version does not know: kept as it was, skipped by the projection."""

    type: ClassVar[str] = "unknown"
    raw: Mapping[str, Any]


Record: TypeAlias = (
    MessageRecord
    | IntentRecord
    | ResultRecord
    | SystemRecord
    | SettingRecord
    | EditRecord
    | HeadRecord
    | CompactionRecord
    | RequestRecord
    | OutcomeRecord
    | InboxRecord
    | LeafRecord
    | NoteRecord
    | PinRecord
    | LabelRecord
    | ArchiveRecord
    | RedactRecord
    | BranchSummaryRecord
    | ExtensionRecord
    | UnknownRecord
)

#: Entries of these types hang on the tree but do not move the leaf: they are true whatever branch is shown.
OFF_BRANCH: tuple[type, ...] = (
    CompactionRecord,
    InboxRecord,
    LeafRecord,
    NoteRecord,
    PinRecord,
    LabelRecord,
    ArchiveRecord,
    RedactRecord,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record at its place: `id` rises by order of writing, `parent` makes the tree, `at` is UTC (ISO 8601).

    `memo` holds the messages that were made from the entry once, with what was computed from them.
    """

    id: int
    parent: int | None
    at: str
    record: Record
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)


_Made = TypeVar("_Made")


def made(entry: Entry, key: str, make: Callable[[], _Made]) -> _Made:
    """The message that `make` gives, made once for this entry and `key`, so that what is counted stays with it."""
    if key not in entry.memo:
        entry.memo[key] = make()
    message: _Made = entry.memo[key]
    return message
