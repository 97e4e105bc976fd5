"""What a list or a search of sessions is asked for, and what it answers. Pure values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, overload


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session as a list shows it.

    `said` is the time of its newest message (UTC, ISO 8601; None: nothing was said yet), `changed` the time of the
    file's last write (seconds since 1970), `size` its bytes. `title` is how the person began, or a tag. `cost` is in
    US dollars; None: some of it is unknown. `origin` is that of a fork or an import.
    """

    id: str
    agent: str
    created: str
    path: Path
    changed: float
    size: int = 0
    said: str | None = None
    title: str = ""
    channel: str | None = None
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    cost: float | None = 0.0
    messages: int = 0
    calls: int = 0
    origin: Mapping[str, Any] | None = None

    @property
    def empty(self) -> bool:
        """Nothing was said in it yet."""
        return not self.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which sessions; None asks nothing. Archived ones are left out unless asked for (`archived=None`: both kinds).

    `since` (included) and `until` (not included) hold the newest message of a session in a list, and each message in
    a search; a time without a zone is local. `model` is `provider/model` or the model alone. `origin` is its kind
    (`fork`, `import`; `own`: neither). An unknown cost is in no range. `limit` None: all.
    """

    agent: str | None = None
    channel: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    pinned: bool | None = None
    archived: bool | None = False
    tag: str | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    model: str | None = None
    origin: str | None = None
    empty: bool | None = None
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """How well an answer is founded.

    `fallback`: why the folder was read instead of the index (`missing`, `corrupt`, `version`, `locked`, `read-only`,
    `failed`), None when the index answered. `behind`: files that the answer may not know as they are now. `skipped`:
    what lies in the folder and is no session, counted by reason.
    """

    fallback: str | None = None
    behind: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """Sessions, the one with the newest message first. `total`: how many there are without the limit."""

    sessions: tuple[SessionInfo, ...]
    total: int
    state: State = State()

    @property
    def fallback(self) -> str | None:
        return self.state.fallback

    @property
    def behind(self) -> int:
        return self.state.behind

    @property
    def skipped(self) -> Mapping[str, int]:
        return self.state.skipped

    def __len__(self) -> int:
        return len(self.sessions)

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    @overload
    def __getitem__(self, place: int) -> SessionInfo: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[SessionInfo, ...]: ...

    def __getitem__(self, place: int | slice) -> SessionInfo | tuple[SessionInfo, ...]:
        return self.sessions[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """A message that says what was looked for. `current`: it is on the branch that is talked on now."""

    session: str
    agent: str
    entry: int
    who: Literal["user", "assistant"]
    at: str
    passage: str
    current: bool
    title: str
    path: Path


_MOST = 2**43  # milliseconds since 1970: the year 2248


def milliseconds(at: str) -> int | None:
    """The time of an entry as milliseconds since 1970 (UTC); None for what is no time."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return moment_of(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def moment_of(time: datetime) -> int:
    """Milliseconds since 1970, from 0 to 2 ** 43 - 1."""
    try:
        found = int(time.timestamp() * 1000 + 0.5)
    except (OverflowError, ValueError, OSError):  # the years 1 and 9999, in some zones
        found = 0 if time.year < 1970 else _MOST
    return min(max(found, 0), _MOST - 1)


def iso(moment: int) -> str:
    """Milliseconds since 1970 as entries have their times: UTC, ISO 8601."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
