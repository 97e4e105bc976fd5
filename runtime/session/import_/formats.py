"""Which program wrote a file, told by what stands in it, whatever its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain, islice
from typing import Any, TypeAlias

from ...errors import SessionError
from .book import Account, Book
from .lines import BLANK, Line, Source
from .parts import Object, moment
from .report import Report

Reader: TypeAlias = Callable[[Iterable[Line], Account], Iterator[Book]]

#: The formats by name, and the module that reads each.
FORMATS = {
    "pi": "pi",
    "claude-code": "claude_code",
    "codex": "codex",
    "nanobot": "nanobot",
    "chat": "chat",
}
_LOOKED_AT = 50  # lines: some programs put a few before what tells them apart
_OWN = "moonwake"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_ROLLOUT = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call")


def recognise(values: Iterable[Object]) -> str | None:
    """The format that most of the objects look like; None when they look like none."""
    votes = Counter(name for value in values if (name := _looks_like(value)) is not None)
    if _OWN in votes:
        return _OWN
    if "nanobot" in votes:  # a single line of metadata, the rest are chat messages
        return "nanobot"
    return votes.most_common(1)[0][0] if votes else None


def _looks_like(value: Object) -> str | None:
    kind = value.get("type")
    if kind == "session":
        return _OWN if "agent" in value else "pi"
    if (kind in _ROLLOUT or kind == "token_usage_record") and "payload" in value:
        return "codex"
    if "record_type" in value or (kind in _ITEMS and isinstance(kind, str) and "message" not in value):
        return "codex"
    if value.get("_type") == "metadata":
        return "nanobot"
    if "sessionId" in value or "parentUuid" in value or kind in ("file-history-snapshot", "summary"):
        return "claude-code"
    if value.get("role") in _ROLES or isinstance(value.get("messages"), list):
        return "chat"
    if kind in ("message", "compaction", "model_change", "thinking_level_change") and "timestamp" in value:
        return "pi"
    return None


def read_source(source: Source, wanted: str | None = None) -> tuple[list[Book], Account, Report]:
    """The conversations of a file and the account of its lines, in which no draft has an entry yet.

    Raises `SessionError` when the file cannot be read, is empty, or holds no session of a known format.
    """
    counted = _Counted(_as_lines(source))
    first = list(islice(counted, _LOOKED_AT))
    found = recognise(line.value for line in first if line.value is not None)
    name = wanted or found
    if wanted and found and wanted != found and {wanted, found} != {"chat", "nanobot"}:
        raise SessionError(f"{source.path} looks like a file of {found}, not of {wanted}")
    if name not in FORMATS or (wanted and not any(line.value for line in first)):
        raise SessionError(f"{source.path} {_what_it_is(source, first, found)}")
    account = Account(at=moment(source.changed) or "")
    reader: Reader = import_module(f".{FORMATS[name]}", __package__).read
    books = list(reader(_noted(chain(first, counted), account), account))
    return books, account, Report(name, counted.number)


class _Counted(Iterator[Line]):
    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.number = 0

    def __next__(self) -> Line:
        line = next(self._lines)
        self.number = line.number
        return line


def _as_lines(source: Source) -> Iterator[Line]:
    """The lines of a file, or of a file that is one JSON value: its objects as if each were a line."""
    lines = source.lines()
    head = list(islice(lines, 3))
    if any(line.value is not None for line in head) or (document := _objects(source.document())) is None:
        yield from chain(head, lines)
        return
    yield from (Line(number, value) for number, value in enumerate(document, 1))


def _objects(document: Any) -> list[Object] | None:
    if isinstance(document, dict):
        return [document]
    if isinstance(document, list) and document and all(isinstance(each, dict) for each in document):
        return document
    return None


def _noted(lines: Iterable[Line], account: Account) -> Iterator[Line]:
    """The lines that are objects; the others are left with what is wrong with them."""
    for line in lines:
        if line.value is None:
            account.leave(line.number, line.problem)
        else:
            yield line


def _what_it_is(source: Source, first: list[Line], found: str | None) -> str:
    known = f"What can be imported: session files of {', '.join(each for each in FORMATS if each != 'chat')}, and chat "
    known += "dialogs in OpenAI's form"
    if source.size == 0 or all(line.problem == BLANK for line in first):
        return f"is empty: there is nothing to import. {known}"
    if found == _OWN:
        return "is a session of Moonwake itself: put it into the folder of the sessions, it needs no import"
    objects = [line.value for line in first if line.value is not None]
    if not objects:
        return f"holds no JSON lines (line {first[0].number}: {first[0].problem}). {known}"
    keys = ", ".join(repr(key) for key in islice(objects[0], 6))
    return f"holds JSON of a format that is not known here (the first object has {keys or 'nothing in it'}). {known}"
