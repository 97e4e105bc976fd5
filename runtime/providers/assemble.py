"""Folding a stream into one reply: what both wires share. Pure.

An assembler takes the JSON objects of a stream one by one and gives the pieces to show. Its `finish` gives the
whole message. Laws:
- The same chunks give the same message, however they were cut into packets.
- What was received is kept, also when the stream breaks; `stop` then says `aborted` or `error`.
- No lone surrogate leaves here. A pair that was split between two chunks is joined.
- A call is incomplete (it must never run) only if its arguments are broken AND the reply was cut: by the length
  limit or by a broken stream. Broken arguments of a reply that ended well stay as written; the toolset answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from governors.messages import AssistantMessage, AssistantPart, StopReason, Text, Thinking, ToolCall
from governors.scrub import scrub

from .base import CallPiece, ModelInfo, Problem, TextPiece, ThinkingPiece, UsagePiece

Piece: TypeAlias = TextPiece | ThinkingPiece | CallPiece | UsagePiece

#: Stops after which arguments may have been cut off in the middle.
CUT: frozenset[str] = frozenset({"length", "aborted", "error", "deferred"})

# One escape of JSON text: a doubled backslash, a proper pair, or half a pair.
_ESCAPE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True, slots=True)
class StreamFault:
    """An error that came inside the stream: the parsed body, and the status it stands for, where it tells."""

    body: Any
    status: int | None = None


class Assembler(Protocol):
    """Folds one reply. `fault` is set when the stream carried an error; `ended` when it carried its end marker."""

    fault: StreamFault | None
    ended: bool

    @property
    def answered(self) -> bool:
        """Whether the model said why it stopped: the reply is whole, though an end marker may be missing."""
        ...

    @property
    def remote(self) -> tuple[Mapping[str, Any], ...]:
        """All items of a reply that holds a compaction, as they came; none of any other reply."""
        ...

    def feed(self, chunk: Mapping[str, Any]) -> list[Piece]: ...

    def finish(self, cut: StopReason | None = None) -> AssistantMessage:
        """The reply. `cut` overrides the stop reason of a stream that did not end well."""
        ...


class Joiner:
    """Text that comes in pieces. A high surrogate at a piece's end waits for its other half."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = ""
        self.length = 0  # of what was added, in characters

    def add(self, piece: str) -> str:
        """What can be shown now."""
        piece = self._held + piece
        self._held = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self._held = piece[-1]
            piece = piece[:-1]
        piece = scrub(piece)
        if piece:
            self._parts.append(piece)
            self.length += len(piece)
        return piece

    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]  # so that asking often costs no join of all pieces each time
        return "".join(self._parts) + scrub(self._held)

    def __bool__(self) -> bool:
        return bool(self._parts or self._held)


def is_object(arguments: str) -> bool:
    """Whether this is the JSON text of an object."""
    if not arguments.rstrip().endswith("}"):
        return False  # the common case of half-written text, without parsing it
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def scrub_escapes(arguments: str) -> str:
    """JSON text whose escaped lone surrogates are U+FFFD (they pass here and break the next request)."""
    if "\\u" not in arguments:
        return arguments
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], arguments)


def make_call(id: str, name: str, arguments: str, stop: StopReason) -> ToolCall:
    """A call as it goes into the reply."""
    text = scrub_escapes(scrub(arguments))
    if stop in CUT:
        return ToolCall(id=id, name=name, arguments=text or "{}", complete=is_object(text))
    return ToolCall(id=id, name=name, arguments=text if text.strip() else "{}")


def collapse(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Without those that repeat id, name and arguments of an earlier one (a stream assembled twice)."""
    return tuple(dict.fromkeys(calls))


def with_ids(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Each nameless id becomes `call_<place>`, or the next free one: a function of this reply alone."""
    listed = tuple(calls)
    taken = {call.id for call in listed}
    named: list[ToolCall] = []
    for place, call in enumerate(listed):
        if not call.id:
            number = place
            while f"call_{number}" in taken:
                number += 1
            call = replace(call, id=f"call_{number}")
            taken.add(call.id)
        named.append(call)
    return tuple(named)


def make_reply(
    parts: Iterable[Text | Thinking], calls: Iterable[ToolCall], stop: StopReason, model: ModelInfo
) -> AssistantMessage:
    """The message, its calls last."""
    content: tuple[AssistantPart, ...] = (*parts, *calls)
    return AssistantMessage(content=content, stop=stop, model=model.id, wire=model.wire)


def count(usage: Mapping[str, Any], *path: str) -> int:
    """The whole number at `path`, 0 where there is none (providers leave out, null, and nest)."""
    value: Any = usage
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def broken_off(problem: Problem) -> StopReason:
    """How a reply ended that this problem cut: a lost connection aborts it, all else is an error."""
    return "aborted" if problem.kind == "network" else "error"
