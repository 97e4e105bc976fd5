"""Events: what happens while an agent works, for whoever watches. They are never stored.

A delta is not a promise: text that streamed by is acknowledged only by the event that follows its entry
(`MessageRecorded`, `ReplyRecorded`, `ToolFinished`, `TurnFinished`), which is sent after the entry is on disk. While
the disk refuses, the conversation goes on in memory: those events then carry `saved=False`, and a `Notice` tells when
that begins and when everything is on disk again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

from governors.messages import StopReason, Usage

CallReference: TypeAlias = tuple[int, int]  # (entry of the reply, index of the call in it)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`agent` and `session` say whose event it is."""

    type: ClassVar[str] = "event"
    agent: str = ""
    session: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form, `type` first; tuples become lists."""
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecorded(Event):
    """The user's message is recorded as `entry`. `queued`: it waits for the running turn (`steered`: it joins it)."""

    type: ClassVar[str] = "message_recorded"
    entry: int
    queued: bool = False
    steered: bool = False
    saved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged(Event):
    type: ClassVar[str] = "state_changed"
    before: str
    after: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """`model` is what answers; `entry` the user's message that opens the turn."""

    type: ClassVar[str] = "turn_started"
    entry: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent(Event):
    """A request is recorded and leaves now. `tokens` is its estimated size, `budget` what it may be at most."""

    type: ClassVar[str] = "request_sent"
    entry: int
    model: str
    tokens: int
    budget: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    type: ClassVar[str] = "text_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta(Event):
    type: ClassVar[str] = "thinking_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta(Event):
    """The model is writing call `index` of this reply; `arguments` is what came of its JSON with this event."""

    type: ClassVar[str] = "tool_call_delta"
    index: int
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying(Event):
    """A call failed in a way that may pass; it is tried again after `delay` seconds (attempt 2 is the first retry;
    attempt 1 says that a call waits for its turn, and for how long the provider wants to be asked nothing)."""

    type: ClassVar[str] = "retrying"
    why: str
    delay: float
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecorded(Event):
    """A reply is recorded as `entry`. `cost` is in US dollars, None where the model's price is unknown; `usage` has the
    tokens that were read from the provider's cache and written to it. It took `seconds`, `first` of them until the
    first piece came (None: none came)."""

    type: ClassVar[str] = "reply_recorded"
    entry: int
    text: str
    stop: StopReason
    usage: Usage | None
    cost: float | None
    seconds: float
    first: float | None = None
    saved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """The intent to run this call is recorded; the tool starts now. `arguments` is JSON text. If it is not `saved`, it
    starts only if it is read-only, and is refused otherwise."""

    type: ClassVar[str] = "tool_started"
    call: CallReference
    tool: str
    arguments: str
    saved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """The result is recorded as `entry`; `text` is what the model will read."""

    type: ClassVar[str] = "tool_finished"
    call: CallReference
    tool: str
    entry: int
    is_error: bool
    text: str
    seconds: float
    saved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCut(Event):
    """The oldest messages went out of view (they stay in the log). `entry` is the head; figures are tokens."""

    type: ClassVar[str] = "history_cut"
    entry: int
    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(Event):
    """Room is being made: `timing` says when that is (`before_turn`, `mid_turn`, `manual`, `idle`), `reason` what for,
    `strategy` how."""

    type: ClassVar[str] = "compaction_started"
    timing: str
    reason: str
    strategy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFinished(Event):
    """What came of it: `result` is `done`, `nothing` or `failed` (`why`). `before` and `after` are tokens of the whole
    request, `folded` messages went out of view; `dropped` is what people said there that the summary lacks.
    `cost` is in US dollars (None: unknown), `entry` the receipt."""

    type: ClassVar[str] = "compaction_finished"
    result: str
    why: str = ""
    before: int = 0
    after: int = 0
    folded: int = 0
    dropped: tuple[str, ...] = ()
    cost: float | None = None
    entry: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEdited(Event):
    """Old results are shown as a line now, or pictures left out; `recall` reads them back. `entries` are the edits."""

    type: ClassVar[str] = "history_edited"
    entries: tuple[int, ...]
    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKeptWarm(Event):
    """While nobody talked, the provider was asked to go on keeping the prompt; told when the next turn begins.

    `requests` were sent, which read `tokens` and cost `cost` (US dollars, None: unknown). `error` is why the last one
    failed, after which no other was sent.
    """

    type: ClassVar[str] = "cache_kept_warm"
    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """Something a person should know. `level` is `info`, `warning` or `error`."""

    type: ClassVar[str] = "notice"
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(Event):
    """The agent rests; everything is on disk if `saved`. `text` is the last reply's; `error` says what went wrong."""

    type: ClassVar[str] = "turn_finished"
    text: str
    stop: StopReason
    steps: int
    usage: Usage
    cost: float | None
    seconds: float
    error: str | None = None
    saved: bool = True
