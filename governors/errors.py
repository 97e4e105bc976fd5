"""What `governors` raises. Every message carries the numbers, so that a person can act on it."""

from __future__ import annotations

from dataclasses import dataclass

from .wire.base import Violation


class GovernorError(Exception):
    """The base of everything `governors` raises on purpose."""


class ImpossibleBudget(GovernorError, ValueError):
    """A window leaves nothing for a request, or a figure makes no sense."""


@dataclass(eq=False)  # an exception is itself; equal fields would also make it unhashable
class ContextOverflow(GovernorError):
    """What cannot be left out is larger than the budget. All figures are tokens."""

    window: int
    budget: int
    system: int
    tools: int
    turn: int

    def __str__(self) -> str:
        needed = self.system + self.tools + self.turn
        return (
            f"this request cannot fit: it needs about {needed:,} tokens (system prompt {self.system:,}, tools "
            f"{self.tools:,}, current turn {self.turn:,}), and {self.budget:,} are free for it in a window of "
            f"{self.window:,}. Shorten the message, turn tools off, or choose a model with a larger window"
        )


@dataclass(eq=False)  # an exception is itself; equal fields would also make it unhashable
class IllegalPayload(GovernorError):
    """A payload breaks rules of its wire protocol, so it was not sent."""

    wire: str
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        listed = "; ".join(str(violation) for violation in self.violations[:5])
        more = f" (and {len(self.violations) - 5} more)" if len(self.violations) > 5 else ""
        return f"the {self.wire} request was not sent, as the provider would refuse it: {listed}{more}"
