"""What a model call asks of the spend ledger: a place for its worst case before it leaves, the difference back after.

Whoever calls a model needs the Protocol alone; `NoLimits` is for embedders without a ledger. Laws:
- A call leaves only with a `Reservation`. Each one is settled once, whatever happened between.
- What is not known is not free: a call whose cost nobody can tell is counted at its worst case.
- A call is never counted at more than was reserved for it, so that no report, however wrong, moves a total past a cap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Protocol

from governors.messages import Usage

from ..errors import MoonwakeError


class SpendingLimit(MoonwakeError):
    """A call may cost more than a cap leaves; nothing was sent. The text has the numbers, and what to do."""


class LedgerUnusable(MoonwakeError):
    """Caps are set, and the ledger that holds them cannot be read or written; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """Who spends. `turn` is the entry that opened the turn, None outside of one; `purpose` is that of the request entry
    (`turn`, `compaction`, `warming` ...); `workspace` is its folder, so that what a crash left can be looked up."""

    agent: str
    session: str
    turn: int | None
    purpose: str
    workspace: str

    def __post_init__(self) -> None:
        for name in ("agent", "session", "purpose", "workspace"):
            object.__setattr__(self, name, written(getattr(self, name)))


def written(text: str) -> str:
    """`text` as it can be written down: the path of a folder may hold bytes that are no characters."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What was taken from the caps for one call: `most` US dollars, None where the price is not known. `at` is when
    (seconds since 1970), `day` the local day that it counts for; `id` is None where nothing was written down yet."""

    id: int | None
    spender: Spender
    model: str
    most: float | None
    at: float
    day: str


class Ledger(Protocol):
    """What the agent needs of a spend ledger."""

    async def reserve(self, spender: Spender, model: str, most: float | None) -> Reservation:
        """Take `most` (US dollars, what the call costs in the worst case; None: its price is not known) from all caps
        that hold for `spender`. `model` is `provider/model`.

        Raises `SpendingLimit`, and `LedgerUnusable` where caps are set and cannot be kept.
        """
        ...

    async def settle(self, reservation: Reservation, cost: float | None, usage: Usage | None) -> tuple[str, ...]:
        """Put what the call did cost (US dollars) in the place of its reservation.

        `cost` 0.0 says that nothing was billed (refused, never sent); None that nobody knows, and then the worst case
        stays counted. Gives what a person should be told, a sentence each. Never raises; call it under a shield.
        """
        ...


class NoLimits:
    """A `Ledger` that allows everything and writes nothing down."""

    async def reserve(self, spender: Spender, model: str, most: float | None) -> Reservation:
        return Reservation(id=None, spender=spender, model=model, most=most, at=0.0, day="")

    async def settle(self, reservation: Reservation, cost: float | None, usage: Usage | None) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call is counted at (US dollars; None: its price is not known), and why that is not what was reported."""

    amount: float | None
    why: str = ""


def charge_of(most: float | None, cost: float | None, usage: Usage | None) -> Charge:
    """What is counted for a call that was to cost `most` dollars at the most and is said to have cost `cost`.

    A report that cannot be true (less than nothing, no number, more than the most) is answered by the worst case.
    """
    if cost is None:
        return Charge(most, "" if most is None else "what it cost is not known")
    if usage is not None and not _possible(usage):
        return Charge(most, f"its usage cannot be true ({_told(usage)})")
    if not isfinite(cost) or cost < 0:
        return Charge(most, f"a cost of {cost} dollars cannot be true")
    if most is not None and cost > most:
        return Charge(most, f"it is said to have cost ${cost:.6g}, which is more than it could (${most:.6g})")
    return Charge(cost)


def _possible(usage: Usage) -> bool:
    counts = (usage.plain, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.output, usage.reasoning)
    return all(isfinite(count) and count >= 0 for count in counts)


def _told(usage: Usage) -> str:
    return f"{usage.prompt} tokens in, {usage.output} out"
