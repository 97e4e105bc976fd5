"""The model calls of a session: each request with what became of it, in the order of sending. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from governors.messages import Usage

from ..session.entries import Entry, OutcomeRecord, RequestRecord

#: The purpose of the requests that are the conversation itself.
TURN = "turn"
#: The purpose of requests that only renew what the provider keeps.
WARMING = "warming"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The request in `entry`, and its outcome; None while there is none. `before` is the newest turn request on the
    branch that it hangs on (its entry)."""

    entry: Entry
    request: RequestRecord
    outcome: OutcomeRecord | None
    before: int | None

    @property
    def id(self) -> int:
        return self.entry.id

    @property
    def usage(self) -> Usage | None:
        """None where the provider told none: a call that failed, or was stopped before its end."""
        return self.outcome.usage if self.outcome is not None else None

    @property
    def model(self) -> str:
        return f"{self.request.provider}/{self.request.model}"

    @property
    def cost(self) -> float | None:
        """US dollars; None where the price or the usage is unknown."""
        return self.outcome.cost if self.outcome is not None else None

    @property
    def cause(self) -> str | None:
        """Why its prefix did not extend the one before, as was recorded then."""
        return self.outcome.cause if self.outcome is not None else None

    @property
    def moment(self) -> float | None:
        """When it was sent (seconds since 1970)."""
        return moment_of(self.entry.at)

    def shares_cache(self, other: ModelCall) -> bool:
        """Whether both went to one model over one wire: others share nothing."""
        return (self.model, self.request.wire) == (other.model, other.request.wire)


def calls_of(entries: Sequence[Entry]) -> tuple[ModelCall, ...]:
    """The calls of a session with `entries` (all of them, in the order of writing), on all branches."""
    outcomes = _outcomes(entries)
    newest: dict[int, int | None] = {}  # entry -> the newest turn request on the branch that ends there
    calls: list[ModelCall] = []
    for entry in entries:
        before = newest.get(entry.parent) if entry.parent is not None else None
        newest[entry.id] = before
        if isinstance(entry.record, RequestRecord):
            calls.append(ModelCall(entry, entry.record, outcomes.get(entry.id), before))
            if entry.record.purpose == TURN:
                newest[entry.id] = entry.id
    return tuple(calls)


def _outcomes(entries: Iterable[Entry]) -> dict[int, OutcomeRecord]:
    found: dict[int, OutcomeRecord] = {}
    for entry in entries:
        if isinstance(entry.record, OutcomeRecord):
            found.setdefault(entry.record.request, entry.record)
    return found


def moment_of(at: str) -> float | None:
    """The time of an entry in seconds since 1970; None when it says none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
