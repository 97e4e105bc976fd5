"""The model calls that a session pays for, each with what it did cost: read from `request` and `outcome`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Literal

from governors.messages import Usage

from ..session.entries import Entry, Header, MessageRecord, OutcomeRecord, RequestRecord

#: `billed`: its cost is known. `unpriced`: its tokens are, its price is not. `unknown`: it was stopped, or the program
#: ended, before the provider told what it had counted. `refused`: the provider answered with an error, and bills none.
#: `elsewhere`: a reply of an imported session, which another program paid for.
State = Literal["billed", "unpriced", "unknown", "refused", "elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One call. `at` is when it was sent (seconds since 1970), `model` is `provider/model`; `cost` and `reserved` are
    US dollars."""

    agent: str
    session: str
    entry: int
    at: float
    model: str
    wire: str
    purpose: str
    usage: Usage
    cost: float | None
    reserved: float | None
    state: State


def bills_of(header: Header, entries: Iterable[Entry]) -> Iterator[Bill]:
    """The calls of a session on all its branches, in the order of sending, but for those that a fork copied.

    Of `entries` only those of calls matter (all of them for an import); they come in the order of writing.
    """
    paid = [entry for entry in entries if entry.id > header.copied]
    outcomes: dict[int, OutcomeRecord] = {}
    for entry in paid:
        if isinstance(entry.record, OutcomeRecord):
            outcomes.setdefault(entry.record.request, entry.record)
    imported = is_import(header)
    for entry in paid:
        if isinstance(entry.record, RequestRecord):
            imported = False  # what comes from here on was asked for here
            yield _bill(header, entry, entry.record, outcomes.get(entry.id))
        elif imported and isinstance(entry.record, MessageRecord) and entry.record.usage is not None:
            yield _elsewhere(header, entry, entry.record, entry.record.usage)


def is_import(header: Header) -> bool:
    """Whether the session began in another program."""
    return header.origin is not None and header.origin.get("kind") == "import"


def moment(at: str) -> float:
    """The time of an entry in seconds since 1970; 0 where it says none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _bill(header: Header, entry: Entry, request: RequestRecord, outcome: OutcomeRecord | None) -> Bill:
    usage = outcome.usage if outcome is not None else None
    cost = outcome.cost if outcome is not None else None
    if cost is not None and (not isfinite(cost) or cost < 0):
        cost = None
    return Bill(
        agent=header.agent,
        session=header.id,
        entry=entry.id,
        at=moment(entry.at),
        model=f"{request.provider}/{request.model}",
        wire=request.wire,
        purpose=request.purpose,
        usage=usage or Usage(),
        cost=cost,
        reserved=request.reserved,
        state=_state(outcome, cost),
    )


def _state(outcome: OutcomeRecord | None, cost: float | None) -> State:
    if outcome is None:
        return "unknown"
    if cost is not None:
        return "billed"
    if outcome.usage is not None:
        return "unpriced"
    return "refused" if outcome.stop == "error" and _by_provider(outcome.problem) else "unknown"


def _by_provider(problem: Mapping[str, object] | None) -> bool:
    """Whether the provider itself refused: what broke on the way may have been counted before."""
    return problem is not None and problem.get("kind") not in (None, "network", "unknown")


def _elsewhere(header: Header, entry: Entry, reply: MessageRecord, usage: Usage) -> Bill:
    model, at = reply.model or "unknown", moment(entry.at)
    return Bill(
        agent=header.agent,
        session=header.id,
        entry=entry.id,
        at=at,
        model=model,
        wire=reply.wire or "",
        purpose="turn",
        usage=usage,
        cost=None,
        reserved=None,
        state="elsewhere",
    )
