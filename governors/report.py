"""What governing did, and why, in tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .decisions import Decision
from .economy import Economy
from .messages import Message


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a governor did. `tokens` is what it takes off this request (negative: adds). `money` is what it
    is expected to save over the session, in the unit of the prices, None where that was no matter of money."""

    governor: str
    what: str
    why: str
    tokens: int = 0
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a request costs and may cost, in tokens of the model. `before` and `after` are the whole request without
    and with what was decided now; `actions` say what was done. `most` is the request at its upper bound, for reserving
    money: never under the family's factor, whatever was measured (0: not worked out)."""

    budget: int
    system: int
    tools: int
    before: int
    after: int
    actions: tuple[Action, ...] = ()
    most: int = 0


@dataclass(frozen=True, slots=True)
class Governed:
    """`messages` are ready for a wire's `encode`. `decisions` are those made now: keep them, make them durable before
    sending, and hand them in next time. `economy` is the one that was handed in, after weighing; None without one."""

    messages: Sequence[Message]
    decisions: tuple[Decision, ...]
    report: Report
    economy: Economy | None = None
