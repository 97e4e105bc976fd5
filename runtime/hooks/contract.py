"""What a hook is: a name and functions, one for each point of a conversation where it takes part.

Every function gets a `HookContext` and one value, and may be a plain or an `async` one. None, or no return, changes
nothing. Order: hooks of installed packages by name, then those of the workspace by name, then those that the program
passed, as it passed them; each sees what the one before it made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from governors.messages import AssistantMessage, Document, Image, Text, Usage

from ..tools.base import ToolOutput

#: Every point, in the order of a turn.
POINTS = (
    "before_turn",
    "transform_context",
    "before_request",
    "after_response",
    "before_tool",
    "after_tool",
    "on_event",
)
#: Seconds that one call of a hook may take.
DEFAULT_TIMEOUT = 10.0
#: What a hook may be called: it stands in the log and in what a model reads.
HOOK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Names that stand for the runtime's own in the log.
RESERVED = frozenset({"shell"})

Call: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class HookContext:
    """Whose conversation it is. `turn` is the entry that opened the turn; None before the first."""

    agent: str
    session: str
    workspace: Path
    turn: int | None


@dataclass(frozen=True, slots=True)
class TurnPrompt:
    """`text` is what was said, `sections` the system prompt by the names of its sections, in order."""

    text: str
    sections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Response:
    """A reply as it was recorded (`entry`; None: there was nothing to record), its cost in US dollars (None: not known)
    and the problem that ended it."""

    entry: int | None
    message: AssistantMessage
    usage: Usage | None
    cost: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that is about to run. `call` is the entry of its reply and its index there."""

    tool: str
    arguments: Mapping[str, Any]
    call: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ToolDone:
    """A call that has run, and what the model will read of it."""

    tool: str
    arguments: Mapping[str, Any]
    call: tuple[int, int]
    output: ToolOutput


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of `before_tool` that keeps a call from running; the model reads the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hook:
    """`timeout` is in seconds; None is the setting `hooks.timeout`.

    - `before_turn(context, TurnPrompt)`: a text that joins the system prompt for this turn, or a mapping from names of
      sections to other texts (None: left out).
    - `transform_context(context, messages)`: the messages that the model should see.
    - `before_request(context, payload)`: the body that should be sent.
    - `after_response(context, Response)`, `on_event(context, event)`: only told.
    - `before_tool(context, ToolUse)`: other arguments (a mapping), an answer (a text or `ToolOutput`), or `Refused`.
    - `after_tool(context, ToolDone)`: another result (a text or `ToolOutput`).
    """

    name: str
    before_turn: Call | None = None
    transform_context: Call | None = None
    before_request: Call | None = None
    after_response: Call | None = None
    before_tool: Call | None = None
    after_tool: Call | None = None
    on_event: Call | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for what can be no hook."""
        if not HOOK_NAME.fullmatch(str(self.name)):
            raise ValueError(f"{self.name!r} cannot name a hook: use 1 to 64 letters, digits, '.', _ or -")
        if self.name in RESERVED:
            raise ValueError(f"a hook cannot be called {self.name!r}: the runtime itself uses that name")
        given = [point for point in POINTS if getattr(self, point) is not None]
        if not given:
            raise TypeError(f"the hook {self.name} has none of the functions of a hook: {', '.join(POINTS)}")
        for point in given:
            if not callable(getattr(self, point)):
                raise TypeError(f"{point} of the hook {self.name} is no function")
        limit: object = self.timeout
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < float("inf")):
            raise ValueError(f"the timeout of the hook {self.name} must be a number of seconds, not {limit!r}")


def hook_of(thing: object, name: str | None = None) -> Hook:
    """The hook that `thing` is: a `Hook`, or a module or object with functions of the names in `POINTS`. A class is
    made into an object first. Raises `TypeError` or `ValueError` for anything else."""
    if isinstance(thing, type):
        thing = thing()
    if isinstance(thing, Hook):
        return thing
    own = getattr(thing, "name", None)
    called = name or (own if isinstance(own, str) else None)
    called = called or (getattr(thing, "__name__", None) or type(thing).__name__).rsplit(".", 1)[-1]
    limit = getattr(thing, "timeout", None)
    return Hook(called, **{point: getattr(thing, point, None) for point in POINTS}, timeout=limit)


def output_of(value: object) -> ToolOutput | None:
    """The output that a hook gave for a call; None when it is none."""
    if isinstance(value, str):
        return ToolOutput((Text(value),))
    return value if isinstance(value, ToolOutput) and is_content(value.content) else None


def is_content(content: object) -> bool:
    """Whether this is what a message of the user's role, or a result, may hold."""
    return isinstance(content, tuple) and all(map(_is_part, content))


def _is_part(part: object) -> bool:
    words: tuple[object, ...]
    match part:
        case Text(text):
            words = (text,)
        case Image(media_type=media_type, data=data):
            words = (media_type, data)
        case Document(media_type=media_type, data=data, name=name, text=read):
            words = (media_type, data, name, *(() if read is None else (read,)))
        case _:
            return False
    return all(isinstance(each, str) for each in words)
