"""Where sessions lie: `<folder>/<agent>/<session>.jsonl`.

Agent and session names map to file names injectively: what is not a lower-case letter, a digit, `-` or `_` is
percent-encoded, so no two names share a file (not even on a file system that ignores case) and none leaves the folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ..errors import SessionError
from .codec import BadLine, decode_header
from .entries import Header
from .session import Session, create_session, open_session

_SAFE = re.compile(r"[a-z0-9_-]")
_GENERATED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PART = re.compile(r"[0-9a-f-]{6,35}")
_LONGEST_NAME = 200  # bytes; file systems take 255, and side files add their suffix


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as a list shows it. `changed` is the time of its last write (seconds since 1970); `empty`: nothing was
    said in it yet."""

    id: str
    agent: str
    created: str
    path: Path
    changed: float
    empty: bool = False


class SessionStore:
    """The sessions of a workspace. `new_id` gives session ids (uuid7), `now` the time (UTC, ISO 8601)."""

    def __init__(self, folder: Path, new_id: Callable[[], str], now: Callable[[], str]) -> None:
        self.folder = folder
        self._new_id = new_id
        self._now = now

    def path(self, agent: str, session: str) -> Path:
        return self.folder / file_name(agent) / f"{file_name(session)}.jsonl"

    async def create(self, agent: str, session: str | None = None) -> Session:
        """A new session, named or with an id of its own. Raises `SessionError`."""
        header = Header(id=session or self._new_id(), agent=agent, created=self._now())
        path = self.path(agent, header.id)
        try:
            await anyio.to_thread.run_sync(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        except OSError as error:
            raise SessionError(f"cannot create the folder {path.parent} for sessions: {error.strerror}") from error
        return await create_session(path, header, self._now)

    async def open(self, agent: str, session: str) -> Session:
        """Open a session by its id or name. Raises `SessionError`, `SessionLocked`."""
        return await open_session(self.path(agent, session), self._now)

    def exists(self, agent: str, session: str) -> bool:
        return self.path(agent, session).is_file()

    def matching(self, agent: str, part: str) -> tuple[str, ...]:
        """The ids that begin or end with `part` (6 characters or more), newest session first.

        Only ids that were made here count, for people who type what a screen showed: a name of one's own is always
        meant whole, as `tax` may be another session than `taxes`.
        """
        if not _PART.fullmatch(part):
            return ()
        ids = (info.id for info in self.list(agent) if is_generated(info.id))
        return tuple(each for each in ids if each.startswith(part) or each.endswith(part))

    def list(self, agent: str) -> list[SessionInfo]:
        """The sessions of `agent`, newest first. What is no session, or a copy under another name, is left out."""
        folder = self.folder / file_name(agent)
        found = [info for path in folder.glob("*.jsonl") if (info := _info(path)) is not None]
        return sorted(found, key=lambda info: (info.changed, info.id), reverse=True)


def is_generated(session: str) -> bool:
    """Whether a session's id was made here (a uuid), and is no name that somebody gave."""
    return _GENERATED.fullmatch(session) is not None


def file_name(name: str) -> str:
    """`name` as a file name. Raises `SessionError` for an empty or overlong one."""
    encoded = "".join(
        each if _SAFE.match(each) else "".join(f"%{byte:02x}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in name
    )
    if not encoded or len(encoded) > _LONGEST_NAME:
        raise SessionError(
            f"a name must take 1 to {_LONGEST_NAME} bytes as a file name (each letter outside a-z takes 3 or more); "
            f"this one takes {len(encoded)}: {name[:60]!r}"
        )
    return encoded


def _info(path: Path) -> SessionInfo | None:
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            return None
        with path.open("rb") as file:
            header = decode_header(file.readline(65_536))
            empty = not file.read(1)
        if file_name(header.id) != path.stem:
            return None
        return SessionInfo(header.id, header.agent, header.created, path, path.stat().st_mtime, empty)
    except (OSError, BadLine, SessionError):
        return None
