"""What a scripted model answers, in Python or as plain text that a person can read and write. Pure.

A script is a text of replies. A line that begins with `@` opens a part, what follows belongs to it:

    @# A comment, to the end of the line.
    @reply
    @thinking The person wants to know what the note says.
    @text Let me look.
    @call read_file {"path": "note.md"}

    @reply
    It says that the moon is full.
    @usage plain=1200 cache_read=900 output=12

`@reply` (its text may follow at once) begins the next answer, `@otherwise` the one that stands for all after the last.
In a reply, in this order: `@wait SECONDS`, `@thinking`, `@text`, any number of `@call TOOL {...}` (`@call TOOL #ID
{...}` names its id, `@raw-call TOOL TEXT` sends what is no JSON); then `@usage NAME=TOKENS ...`, `@stop REASON`, and
`@error KIND [status=N] [retry-after=SECONDS] [words]`, which ends the reply with a failure. A line of text that begins
with `@` is written with two of them. Empty lines around a part are left out.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, get_args

from governors.messages import StopReason, Usage

from ..errors import MoonwakeError
from .base import Problem, ProblemKind, Request


class ScriptError(MoonwakeError):
    """A script cannot be read; the text names the file and the line."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the scripted model makes. `arguments` may be a mapping, or text to be sent as it is."""

    tool: str
    arguments: Mapping[str, Any] | str
    id: str | None = None  # by default counted through the whole script


@dataclass(frozen=True, slots=True)
class Reply:
    """What the scripted model answers once.

    `hold` is awaited after the text was streamed and before the end: tests stop a turn there. `stop` is worked out
    from the calls unless given; with `error` the call fails (after `text` was streamed, if there is any). `wait` are
    seconds before anything comes, for a `Scripted` that was given something to wait with.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""
    stop: StopReason | None = None
    usage: Usage | None = None
    error: ProblemKind | Problem | None = None
    hold: Callable[[], Awaitable[object]] | None = None
    wait: float = 0.0


Script: TypeAlias = "str | Reply | Call | Callable[[Request], str | Reply | Call]"


@dataclass(frozen=True, slots=True)
class Play:
    """A script that was read: its replies in order, and what stands for all after them."""

    replies: tuple[Reply, ...]
    otherwise: Reply | None = None


@dataclass(slots=True)
class _Part:
    """A part as written: its name, what follows on its line, and the lines after it."""

    line: int
    name: str
    rest: str
    body: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """With the lines' ends as they are, without empty lines around."""
        lines = [self.rest, *self.body]
        while lines and not lines[0].strip():
            lines.pop(0)
        while lines and not lines[-1].strip():
            lines.pop()
        return "\n".join(lines)

    def wrong(self, why: str, line: int | None = None) -> ScriptError:
        return ScriptError(f"line {line or self.line}: {why}")


_STOPS: dict[str, StopReason] = {each: each for each in get_args(StopReason)}
_KINDS: dict[str, ProblemKind] = {each: each for each in get_args(ProblemKind)}
_BODIES = ("reply", "otherwise", "thinking", "text", "call", "raw-call")
#: The order of parts in a reply; of the others there is one each.
_ORDER = {"wait": 0, "thinking": 1, "text": 2, "call": 3, "raw-call": 3, "usage": 4, "stop": 5, "error": 6}


def parse_script(text: str, name: str = "the script") -> Play:
    """The replies of `text`. Raises `ScriptError`, which names `name` and the line."""
    try:
        return _play(_parts(text))
    except ScriptError as error:
        raise ScriptError(f"{name}, {error}") from None


def _parts(text: str) -> list[_Part]:
    parts: list[_Part] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if line.startswith("@#"):
            continue
        if line.startswith("@") and not line.startswith("@@"):
            word, _, rest = line[1:].partition(" ")
            part = _Part(number, word.strip(), rest.strip())
            if part.name not in ("reply", "otherwise", *_ORDER):
                known = " ".join(f"@{each}" for each in ("reply", "otherwise", *_ORDER))
                raise part.wrong(
                    f"there is no @{part.name} (a line of text that begins with @ has two). Known: {known}"
                )
            parts.append(part)
        elif parts and (parts[-1].name in _BODIES or not line.strip()):
            parts[-1].body.append(line.removeprefix("@") if line.startswith("@@") else line)
        elif parts:
            raise parts[-1].wrong(f"text cannot follow @{parts[-1].name}; put it before, or under @text", number)
        elif line.strip():
            parts.append(_Part(number, "reply", "", [line.removeprefix("@") if line.startswith("@@") else line]))
    return parts


def _play(parts: Sequence[_Part]) -> Play:
    replies: list[Reply] = []
    otherwise: Reply | None = None
    for group in _groups(parts):
        head = group[0]
        if otherwise is not None:
            raise head.wrong("@otherwise stands for all replies after it, so nothing can follow")
        reply = _reply(group)
        if head.name == "otherwise":
            otherwise = reply
        else:
            replies.append(reply)
    if not replies and otherwise is None:
        raise ScriptError("line 1: there is no reply in it. Begin one with @reply")
    return Play(tuple(replies), otherwise)


def _groups(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    group: list[_Part] = []
    for part in parts:
        if part.name in ("reply", "otherwise"):
            if group:
                yield group
            group = []
        elif not group:
            raise part.wrong(f"@{part.name} belongs to a reply: write @reply above it")
        group.append(part)
    if group:
        yield group


def _reply(group: Sequence[_Part]) -> Reply:
    head, *parts = group
    reply, last = Reply(head.text), -1
    if reply.text:
        last = _ORDER["text"]
    for part in parts:
        order = _ORDER[part.name]
        if order < last or (order == last and order != _ORDER["call"]):
            raise part.wrong(f"@{part.name} stands too late; the order is " + " ".join(f"@{each}" for each in _ORDER))
        last = order
        reply = _with(reply, part)
    return reply


def _with(reply: Reply, part: _Part) -> Reply:
    match part.name:
        case "wait":
            return replace(reply, wait=_number(part, part.rest, "seconds"))
        case "thinking":
            return replace(reply, thinking=part.text)
        case "text":
            return replace(reply, text=part.text)
        case "usage":
            return replace(reply, usage=_usage(part))
        case "stop":
            if part.rest not in _STOPS:
                raise part.wrong(f"no stop reason {part.rest!r}: {', '.join(_STOPS)}")
            return replace(reply, stop=_STOPS[part.rest])
        case "error":
            return replace(reply, error=_problem(part))
        case _:
            return replace(reply, calls=(*reply.calls, _call(part)))


def _call(part: _Part) -> Call:
    words = part.rest.split(None, 1)
    if not words:
        raise part.wrong(f"name the tool: @{part.name} TOOL ...")
    tool, rest = words[0], words[1] if len(words) > 1 else ""
    named = None
    if rest.startswith("#"):
        named, _, rest = rest[1:].partition(" ")
    given = "\n".join([rest, *part.body]).rstrip()
    if part.name == "raw-call":
        return Call(tool, given.strip("\n"), named)
    try:
        arguments = json.loads(given) if given.strip() else {}
    except ValueError as error:
        at = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise part.wrong(f"the arguments of {tool} are no JSON: {error}", part.line + at - 1) from None
    if not isinstance(arguments, dict):
        raise part.wrong(f'the arguments of {tool} must be an object, such as {{"path": "note.md"}}')
    return Call(tool, arguments, named)


def _usage(part: _Part) -> Usage:
    known = [each.name for each in fields(Usage)]
    counts: dict[str, int] = {}
    for word in part.rest.split():
        name, _, value = word.partition("=")
        if name not in known or not value.removeprefix("-").isdecimal():
            raise part.wrong(f"{word!r} is no NAME=TOKENS; the names are {', '.join(known)}")
        counts[name] = int(value)
    return Usage(**counts)


def _problem(part: _Part) -> Problem:
    words = part.rest.split()
    kind = words.pop(0) if words else ""
    if kind not in _KINDS:
        raise part.wrong(f"no kind of error {kind!r}: {', '.join(_KINDS)}")
    problem = Problem(_KINDS[kind], "")
    while words and (option := words[0].partition("="))[1] and option[0] in ("status", "retry-after"):
        value = _number(part, option[2], option[0])
        problem = replace(problem, status=int(value)) if option[0] == "status" else replace(problem, retry_after=value)
        words.pop(0)
    return replace(problem, text=" ".join(words) or f"the scripted model failed ({kind})")


def _number(part: _Part, text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise part.wrong(f"{text!r} is no number of {what}")
    return value
