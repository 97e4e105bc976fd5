"""Records that change what a model sees of a conversation: edits, and heads with all that they carry; and what came of
attempts to make room.

Import them from `entries`, which has all records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from governors.messages import CompactionItem, ToolSpec, UserPart

CallReference: TypeAlias = tuple[int, int]  # (entry of the reply, index among its calls)
InboxState: TypeAlias = Literal["queued", "steered", "held", "dropped", "delivered"]


@dataclass(frozen=True, slots=True)
class Blob:
    """Text that lies in a file of its own under `blobs/`: `name` is its SHA-256 (hex), `size` its bytes in UTF-8."""

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The whole system prompt and tools at a head; everything older is folded into it."""

    sections: Mapping[str, str]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRecord:
    """What a model sees of the entry `target` (or of the block `block` of its content) changes from here on: it is left
    out, replaced by `content`, or shown again. `cause` says who wanted it, `forecast` what it was expected to bring.
    """

    type: ClassVar[str] = "edit"
    action: Literal["omit", "replace", "restore"]
    target: int
    cause: str
    block: int | None = None
    content: tuple[UserPart, ...] = ()
    forecast: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A pinned entry that went out of view, as a head carries it: `said` is who said it (`user`, `assistant`, or the
    tool whose result it is)."""

    entry: int
    said: str
    content: tuple[UserPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Input that is not delivered yet, as a head carries it; `entry` is the inbox entry that holds it."""

    entry: int
    state: InboxState
    content: tuple[UserPart, ...]
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRecord:
    """The context begins anew: at the user message `start`, and mid-turn at the reply `resume` after it.

    `resume` equal to the head's own id keeps no step. `summary` stands for what went out of view; an `item`, made by a
    provider's own compaction, goes in its place to models that can read it. `quote` stands for the
    question that the first kept message replies to (in the reply `quoted`). `pins`, `settings`, `open_calls`, `inbox`
    and `spent` carry what still holds or is pending, so that resuming needs nothing older than `start`: `open_calls`
    (`Projection.open_calls` gives them) are the calls without a result in view; one that comes for them now is shown
    at its own place.
    """

    type: ClassVar[str] = "head"
    start: int
    baseline: Baseline
    cause: str
    generation: int
    resume: int | None = None
    summary: str | None = None
    item: CompactionItem | None = None
    quote: str | None = None
    quoted: int | None = None
    placement: Literal["first", "last"] = "first"
    pins: tuple[Pinned, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    open_calls: tuple[CallReference, ...] = ()
    inbox: tuple[Waiting, ...] = ()
    spent: float | None = 0.0  # US dollars, by all requests of the session before it; None: some of it is unknown
    before: int = 0  # tokens of the request without this head
    after: int = 0  # and with it
    breaker: Mapping[str, Any] = field(default_factory=dict)  # of compactions, see `CompactionRecord`


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecord:
    """An attempt to make room, and what came of it: a receipt for people, and what the breaker counts.

    `timing` says when it ran, `reason` what for, `strategy` how. `result`: `done` (the head right before it is what it
    made), `nothing` (there was nothing to fold) or `failed` (`why`). `before` and `after` are tokens of the whole
    request; `folded` messages went out of view. `requests` are the model calls that it took, `cost` theirs in US
    dollars (None: some of it is unknown). `dropped` are figures, names and quotations of what people said there that
    the summary does not hold. `breaker` is the state after it, as `runtime.compaction.breaker` has it.
    """

    type: ClassVar[str] = "compaction"
    timing: str
    reason: str
    strategy: str
    result: Literal["done", "nothing", "failed"]
    why: str = ""
    before: int = 0
    after: int = 0
    folded: int = 0
    requests: tuple[int, ...] = ()
    cost: float | None = 0.0
    dropped: tuple[str, ...] = ()
    breaker: Mapping[str, Any] = field(default_factory=dict)
