"""What may be spent, and on what a call counts. Pure.

A cap is a number of US dollars over a scope: the machine's day or month, an agent's, a session, a turn. Totals are kept
by scope and key for every scope, whether it has a cap or not, so that a cap that is set later counts what was spent
before. Money is counted in whole billionths of a dollar: sums are exact, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite

from .base import Spender

UNIT = 1_000_000_000  # billionths in a dollar
LARGEST = 1_000_000 * UNIT  # a call that costs a million dollars is a mistake of whoever counted
WARN_AT = 0.8  # of a cap


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCaps:
    """US dollars that one agent may spend; None: no cap."""

    day: float | None = None
    month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """US dollars; None: no cap. `day` and `month` are of all agents of all processes on the machine."""

    day: float | None = None
    month: float | None = None
    session: float | None = None
    turn: float | None = None
    agents: Mapping[str, AgentCaps] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        own = (self.day, self.month, self.session, self.turn)
        return any(cap is not None for cap in (*own, *(c for a in self.agents.values() for c in (a.day, a.month))))


@dataclass(frozen=True, slots=True)
class Account:
    """One total that a call counts for: `scope` and `key` name it, `cap` (billionths; None: none) bounds it. `what`
    completes "the cap of $5.00 ...", `setting` is where it is set, `wait` what else there is to do."""

    scope: str
    key: str
    cap: int | None
    what: str
    setting: str
    wait: str


@dataclass(frozen=True, slots=True)
class Total:
    """What an account stands at, in billionths: spent, and held for calls that are not settled."""

    spent: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Left:
    """How a cap stands, in US dollars. `what` as in `Account`."""

    what: str
    setting: str
    cap: float
    spent: float
    held: float

    @property
    def left(self) -> float:
        return max(0.0, self.cap - self.spent - self.held)


def left_of(account: Account, total: Total) -> Left:
    """How the cap of an account that has one stands."""
    cap, spent, held = ((each or 0) / UNIT for each in (account.cap, total.spent, total.held))
    return Left(account.what, account.setting, cap, spent, held)


def accounts(caps: Caps, spender: Spender, day: str) -> tuple[Account, ...]:
    """All totals that a call of `spender` counts for on the local `day` (`2026-12-01`), the narrowest first."""
    own, agent, month = caps.agents.get(spender.agent, AgentCaps()), spender.agent, day[:7]
    session = "\n".join((spender.workspace, agent, spender.session))
    midnight, turned = "wait until midnight, local time", "wait for the next month"
    found = [
        Account("session", session, _cap(caps.session), "a session", "spend.session", "begin a new session (/new)"),
        Account("agent-day", f"{agent}\n{day}", _cap(own.day), f"a day for the agent {agent}",
                f"spend.agents.{agent}.day", midnight),
        Account("agent-month", f"{agent}\n{month}", _cap(own.month), f"a month for the agent {agent}",
                f"spend.agents.{agent}.month", turned),
        Account("day", day, _cap(caps.day), "a day", "spend.day", midnight),
        Account("month", month, _cap(caps.month), "a month", "spend.month", turned),
    ]  # fmt: skip
    if spender.turn is not None:
        turn = f"{session}\n{spender.turn}"
        found.insert(0, Account("turn", turn, _cap(caps.turn), "a turn", "spend.turn", "ask for less in one message"))
    return tuple(found)


def over(account: Account, total: Total, most: int) -> bool:
    """Whether a call that may cost `most` billionths could move `total` past the cap."""
    return account.cap is not None and total.spent + total.held + most > account.cap


def near(account: Account, total: Total) -> bool:
    """Whether so much is spent that a person should know."""
    return account.cap is not None and account.cap > 0 and total.spent >= WARN_AT * account.cap


def refusal(account: Account, total: Total, most: int, model: str, where: str) -> str:
    """Why a call may not leave; `where` is the file that the cap can be raised in."""
    cap = account.cap or 0
    left = max(0, cap - total.spent - total.held)
    held = f", {dollars(total.held)} is reserved for calls that are under way or were lost" if total.held else ""
    return (
        f"The cap of {dollars(cap)} {account.what} leaves {dollars(left)}: {dollars(total.spent)} is spent{held}, and "
        f"this call to {model} may cost up to {dollars(most)}. Nothing was sent. Raise {account.setting} in {where}, "
        f"{account.wait}, or take a cheaper model."
    )


def unpriced(account: Account, model: str, where: str) -> str:
    """Why a call of unknown price may not leave."""
    return (
        f"The price of {model} is not known, so the cap of {dollars(account.cap or 0)} {account.what} could not be "
        f"kept. Nothing was sent. Give its price in {where}, in US dollars per million tokens:\n"
        f'[models."{model}"]\nprice = {{ plain = 1.0, output = 5.0 }}\n'
        f"(0 for both where it costs nothing), or take {account.setting} out."
    )


def warning(account: Account, total: Total) -> str:
    """What a person is told once when most of a cap is spent."""
    cap = account.cap or 0
    share = int(100 * total.spent / cap)
    return (
        f"{share} % of the cap of {dollars(cap)} {account.what} is spent: {dollars(total.spent)} ({account.setting})."
    )


def units(amount: float) -> int:
    """Dollars as billionths."""
    return round(min(amount, LARGEST / UNIT) * UNIT)


def most_units(most: float | None) -> int | None:
    """A worst case as billionths, rounded up; None for what is no amount."""
    if most is None or not isfinite(most) or most < 0:
        return None
    return min(LARGEST, ceil(round(most * UNIT, 3)))


def dollars(amount: int) -> str:
    """Billionths for a person: as many digits as tell something."""
    value = amount / UNIT
    if value == 0 or value >= 1:
        return f"${value:,.2f}"
    return f"${value:.4f}" if value >= 0.0001 else f"${value:.9f}".rstrip("0")


def _cap(value: float | None) -> int | None:
    return None if value is None else units(value)
