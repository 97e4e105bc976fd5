"""Whether a session is sound: its file, every entry, the blobs that it names, and what lies beside it.

Synchronous on purpose: call it in a thread. Laws:
- Nothing is changed, locked or moved, however damaged it is.
- It may run while another process writes: what is still being written is no error.
- What is wrong is a value, never an exception.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import SessionError
from ..entries import Blob, Header
from ..format.blobs import BlobState, FolderBlobs
from ..format.codec import BadLine
from ..format.located import Located, blobs_named, locate, read_unopened
from ..format.reading import Reading
from ..index.indexing import read_facts
from ..index.listing import SessionInfo
from ..store import file_name
from ..view.redaction import stale_summaries
from .checking import Problem, Severity, check_entries
from .erasure import ERASED_SUMMARY

_KINDS = {
    ".torn-": "the end of a write that did not finish, kept from",
    ".broken-": "a line that could not be read, kept from",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in a session file of `size` bytes. `session` and `agent` are None when its header says nothing."""

    path: Path
    session: str | None
    agent: str | None
    entries: int
    size: int
    problems: tuple[Problem, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing was lost: warnings and notes may stand."""
        return not self.of("error")

    def of(self, severity: Severity) -> tuple[Problem, ...]:
        return tuple(each for each in self.problems if each.severity == severity)


def verify(path: Path, blobs: FolderBlobs, listed: SessionInfo | None = None) -> Verification:
    """Read the session file at `path` whole and report everything that is wrong with it.

    `listed` is what a list says of it (from the index): where that is of the same bytes, it must say the same.
    """
    beside = tuple(_beside(path))
    if _leads_away(path):
        return _unreadable(path, "it is a link that leads out of the folder of sessions, and is not followed", beside)
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            return _unreadable(path, "it is no file" if path.exists() else "it is not there", beside)
        data, reading, locked = _settled(path)
    except OSError as error:
        return _unreadable(path, f"it cannot be read: {error.strerror or error}", beside)
    except BadLine as problem:
        return _unreadable(path, f"it is no session that this Moonwake can read: {problem}", beside)
    located = locate(data, reading)
    problems = (
        *_named(path, reading.header),
        *sorted(
            (
                *_of_file(reading, locked),
                *check_entries(located, _copied(reading.header)),
                *_of_blobs(located, blobs),
                *_stale(located),
            ),
            key=lambda problem: problem.offset or 0,
        ),
        *beside,
        *(() if listed is None or listed.size != len(data) else _listed(listed, reading)),
    )
    header = reading.header
    return Verification(path, header.id, header.agent, len(located), len(data), problems)


def verify_all(folder: Path, blobs: FolderBlobs, listed: Iterable[SessionInfo] = ()) -> Iterator[Verification]:
    """Every session of every agent under `folder` (`sessions/`), by name; `listed` is what a list says of them."""
    by_path = {info.path: info for info in listed}
    for path in sorted(folder.glob("*/*.jsonl")):
        yield verify(path, blobs, by_path.get(path))


def is_locked(path: Path) -> bool:
    """Whether somebody writes the session now. A writer that wants to begin at this very moment may be refused."""
    import fcntl  # not everywhere

    try:
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _leads_away(path: Path) -> bool:
    """Whether the session file `path`, or the folder of its agent, is a link to somewhere else."""
    folder = path.parent.parent if path.parent.parent.name == "sessions" else path.parent
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return True


def _settled(path: Path) -> tuple[bytes, Reading, bool]:
    """The file's bytes and what they say, and whether a writer is at it; a tail that grows is read once more."""
    data = path.read_bytes()
    reading = read_unopened(data)
    if reading.torn is None and not reading.unterminated:
        return data, reading, False
    locked = is_locked(path)
    again = path.read_bytes()
    return again, reading if again == data else read_unopened(again), locked


def _unreadable(path: Path, problem: str, beside: Sequence[Problem]) -> Verification:
    size = 0
    with contextlib.suppress(OSError):
        size = path.lstat().st_size
    return Verification(path, None, None, 0, size, (Problem("error", problem), *beside))


def _copied(header: Header) -> str:
    """Until when entries were copied from elsewhere."""
    return header.created if header.origin else ""


def _named(path: Path, header: Header) -> Iterator[Problem]:
    try:
        name = file_name(header.id)
    except SessionError:
        name = ""
    if name != path.stem:
        yield Problem("warning", f"its header says that it is the session {header.id}: lists leave it out", 1, 0)


def _of_file(reading: Reading, locked: bool) -> Iterator[Problem]:
    for finding in reading.broken:
        severity: Severity = "error" if finding.content else "warning"  # without: it was read
        yield Problem(severity, finding.problem, finding.line, finding.offset)
    if reading.torn is not None:
        torn = reading.torn
        size = len(torn.content)
        if locked:
            problem = f"{size:,} bytes are being written"
            yield Problem("note", problem, torn.line, torn.offset)
        else:
            problem = f"{torn.problem} ({size:,} bytes, never acknowledged); opening it moves them aside"
            yield Problem("warning", problem, torn.line, torn.offset)
    if reading.unterminated and not locked:
        yield Problem("warning", "the last line lacks its newline; opening the session adds it")


def _of_blobs(located: Iterable[Located], blobs: FolderBlobs) -> Iterator[Problem]:
    seen: dict[Blob, str | None] = {}
    for each in located:
        for blob in blobs_named(each.content):
            if blob not in seen:
                seen[blob] = _wrong(blob, blobs)
            wrong = seen[blob]
            if wrong is not None:
                yield Problem("error", wrong, each.line, each.offset)


def _stale(located: Sequence[Located]) -> Iterator[Problem]:
    stale = stale_summaries([each.entry for each in located])
    for each in located if stale else ():
        text = getattr(each.entry.record, "summary", None) or getattr(each.entry.record, "text", None)
        if each.entry.id in stale and text != ERASED_SUMMARY:
            problem = (
                "it sums up an entry that was redacted since, and may tell of it; `sessions gc --redacted` erases it"
            )
            yield Problem("warning", problem, each.line, each.offset)


def _wrong(blob: Blob, blobs: FolderBlobs) -> str | None:
    name = f"the blob {blob.name[:12]}… ({blob.size:,} bytes)"
    try:
        state: BlobState = blobs.state(blob)
    except OSError as error:
        return f"{name} cannot be read: {error.strerror or error}"
    aside = blobs.folder / blob.name[:2] / f"{blob.name}.damaged"
    if state == "missing":
        return f"{name} is missing" + (f"; a damaged one was kept as {aside}" if aside.exists() else "")
    return f"{name} is damaged" if state == "damaged" else None


def _listed(listed: SessionInfo, reading: Reading) -> Iterator[Problem]:
    """Where the index and the file differ. (What is said is not compared: large texts were not read.)"""
    facts, _ = read_facts(reading.header, reading.entries)
    for name in ("messages", "calls", "cost", "pinned", "archived", "tags", "models"):
        here, there = getattr(facts, name), getattr(listed, name)
        if here != there:
            yield Problem("warning", f"the index says {name}: {there!r}, the file {here!r}. Remove index.sqlite")


def _beside(path: Path) -> Iterator[Problem]:
    """What lies beside the file and belongs to it."""
    with contextlib.suppress(OSError):
        for each in sorted(path.parent.iterdir()):
            suffix = each.name.removeprefix(path.name)
            if suffix == each.name:
                continue
            for kind, says in _KINDS.items():
                if suffix.startswith(kind):
                    where = suffix.removeprefix(kind).split("-")[0]
                    yield Problem("note", f"{each.name} holds {says} byte {where}")
            if suffix.startswith(".erasing-") or suffix.endswith(".new"):
                yield Problem("note", f"{each.name} was left by a process that died; `sessions gc` removes it")
