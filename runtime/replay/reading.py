"""From files to traces: our own session logs, sizes of coding sessions, and the session files of other programs.

What a file is follows from its first lines; `.gz` is unpacked. A session of ours is read along its current branch,
without its heads and edits: the replay decides those anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from governors.tokens import Counter, system_tokens, tools_tokens

from ..errors import MoonwakeError, SessionError
from ..session.entries import HeadRecord
from ..session.format.codec import BadLine
from ..session.format.reading import read_session
from ..session.import_ import look_at, read_file
from ..session.tree import Tree
from ..session.view.projection import project
from .conversations import Timed, trace_of
from .imported import conversations, seconds
from .segments import is_segment, read_segment
from .trace import Trace


def read_traces(paths: Iterable[Path], counter: Counter) -> list[Trace]:
    """The traces of all files, those without a model call left out.

    Raises `MoonwakeError` for a file that cannot be read or holds no session that is known here.
    """
    return [trace for path in paths for trace in _file(path, counter) if trace.calls]


def _file(path: Path, counter: Counter) -> Iterator[Trace]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise MoonwakeError(f"cannot read {path}: {error}") from error
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    try:
        yield from _traces(path, name, data, counter)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MoonwakeError(f"{path} cannot be replayed: {type(error).__name__}: {error}") from error


def _traces(path: Path, name: str, data: bytes, counter: Counter) -> Iterator[Trace]:
    first = next(_lines(data), {})
    if first.get("type") == "session" and "agent" in first:
        yield _own(name, data, counter)
    elif is_segment(first):
        yield from (read_segment(line) for line in _lines(data))
    else:
        read, _ = read_file(look_at(path))
        for each in read:
            said = conversations(each.entries, timed=each.created is not None)
            yield from _numbered(name if len(read) == 1 else each.name or name, said, counter)


def _numbered(name: str, said: list[list[Timed]], counter: Counter) -> list[Trace]:
    many = len(said) > 1
    return [trace_of(f"{name}/{number}" if many else name, each, counter) for number, each in enumerate(said)]


def _own(name: str, data: bytes, counter: Counter) -> Trace:
    try:
        reading = read_session(data)
    except BadLine as problem:
        raise SessionError(f"{name} is not a session this Moonwake can read: {problem}") from None
    tree = Tree(reading.entries)
    branch = [entry for entry in tree.branch() if not isinstance(entry.record, HeadRecord)]
    view = project(branch, tree.redacted)
    entries = {entry.id: entry for entry in branch}
    said = []
    for message in view.messages:
        entry = entries.get(message.origin) if isinstance(message.origin, int) else None
        said.append(Timed(message, seconds(entry.at) if entry is not None else None))
    base = system_tokens(view.baseline.text, counter) + tools_tokens(view.baseline.offered, counter)
    return trace_of(name, said, counter, base=base)


def _lines(data: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a file, one a line; a line that is none is skipped."""
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
