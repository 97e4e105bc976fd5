"""The message model: what a conversation is, apart from any provider's wire format.

Everything here is frozen and holds plain values, so a message can be shared between branches, cached by
identity and compared byte for byte. A message's `origin` names where it came from (the runtime puts the id of
a log entry there; a library user may put anything hashable, or nothing). `memo` holds what was computed from
the message once (token counts, encoded forms); it takes no part in equality and never outlives the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

StopReason = Literal["stop", "length", "tool_use", "error", "aborted", "deferred", "refused"]

#: Replies that ended so are left out of what a model sees, with their calls.
UNFINISHED: frozenset[str] = frozenset({"error", "aborted", "deferred", "refused"})

Origin: TypeAlias = int | str | None


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, as a person or a model wrote it.

    `phase` is what some providers call a part of a reply (`commentary` or `final_answer`); it goes back to the model
    that gave it.
    """

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, base64 in `data`; `width` and `height` in pixels where known (they set its token cost)."""

    media_type: str
    data: str
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document (a PDF), base64 in `data`; `name` is its file's, `pages` where known. `text` is what was read out of
    it when it was taken, for models that take no documents: "" when there was none in it, None when nobody has read it.
    Without `data` only its text can be sent.
    """

    media_type: str
    data: str
    name: str = ""
    pages: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. It is replayed byte for byte to the model that signed it and to no other.

    `redacted` blocks carry only an opaque `signature` (the provider's encrypted form) and no text.
    """

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it. `arguments` is JSON text of an object, kept as written.

    `complete` is false for a call whose arguments were cut off in the stream: it must never run, and is
    never sent back. `signature` is what some providers sign a call with (Gemini's thought signature); like
    reasoning it goes back unchanged to the model that gave it, and to no other.
    """

    id: str
    name: str
    arguments: str = "{}"
    complete: bool = True
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, as the provider counted them. The prompt is the sum of the first four."""

    plain: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.plain + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> int:
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class CompactionItem:
    """What a provider's own compaction made of a conversation: `payload` is its JSON text, as it came.

    Whoever made it can read it, over the protocol `wire` and at the vendor whose items a model's abilities name
    (`Abilities.compaction`); nobody else can. `tokens` is what the provider counted for it, 0 where it told nothing.
    """

    vendor: str
    wire: str
    payload: str
    tokens: int = 0


UserPart: TypeAlias = Text | Image | Document
AssistantPart: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a user says. An `item` goes in the place of `content` to models that can read it; the content is what all
    others read, and people."""

    content: tuple[UserPart, ...]
    origin: Origin = None
    item: CompactionItem | None = None
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A model's reply. `model` and `wire` say who produced it (reasoning goes back to nobody else)."""

    content: tuple[AssistantPart, ...]
    stop: StopReason = "stop"
    model: str | None = None
    wire: str | None = None
    usage: Usage | None = None
    origin: Origin = None
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.content if isinstance(part, ToolCall)])  # sooner than from a generator

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of the call whose id is `call_id`. `stand_in` marks one that nobody reported (see `repair`)."""

    call_id: str
    tool: str
    content: tuple[UserPart, ...]
    is_error: bool = False
    stand_in: bool = False
    origin: Origin = None
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool. `parameters` is a JSON Schema object; treat it as immutable.

    `read_only`: running it twice changes nothing (a crash may repeat it). `bulky`: its old results may be
    reduced to a one-line stub.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False
    bulky: bool = False


@dataclass(frozen=True, slots=True)
class ToolChange:
    """Tools that come and go inside a conversation, as seen by whoever read all that stands before.

    `added` were never defined before. `changed` were, otherwise: from here on this definition holds. `back` were
    taken away and are offered again, as they were. `removed` are offered no longer.
    """

    added: tuple[ToolSpec, ...] = ()
    changed: tuple[ToolSpec, ...] = ()
    back: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.back or self.removed)

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of all tools that can be called from here on and could not, or not so, before."""
        return tuple(sorted([*(tool.name for tool in (*self.added, *self.changed)), *self.back]))

    @property
    def text(self) -> str:
        """The change in words: what a model reads on every wire."""
        lines = []
        if self.offered:
            lines.append(f"Tools that are now available: {', '.join(self.offered)}.")
        if self.removed:
            lines.append(f"Tools that are no longer available: {', '.join(self.removed)}.")
        return "\n\n".join(lines)


@dataclass(frozen=True, slots=True)
class SystemPatch:
    """A change to the system prompt that is sent at its place in the conversation, not at the front.

    `text` says all of it in words. `tools` is for wires that take definitions of tools inside a conversation; on
    others the definitions stand in the request's array of tools, and the words are all that is sent here. Either way
    they count as tools of the request, not as a part of this message.
    """

    text: str
    origin: Origin = None
    tools: ToolChange | None = None
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResult | SystemPatch
Messages: TypeAlias = tuple[Message, ...]


Computed = TypeVar("Computed")


def remember(message: Message, key: str, compute: Callable[[], Computed]) -> Computed:
    """The value of `compute()`, worked out once for this message and `key`."""
    memo = message.memo
    if key not in memo:
        memo[key] = compute()
    value: Computed = memo[key]
    return value


def same_or(messages: Messages, changed: Sequence[Message]) -> Messages:
    """`messages` itself when `changed` holds the very same objects, else `changed` as a tuple."""
    if len(messages) == len(changed) and all(a is b for a, b in zip(messages, changed, strict=True)):
        return messages
    return tuple(changed)
