"""What a session has taught about the time between its calls, and what is assumed before it has taught anything.

Two kinds of waiting: for a tool (the turn goes on) and for a person (the agent rests). Gaps are heavy-tailed: who has
waited ten minutes will likely wait ten more. The model of one kind is the Lomax distribution with the median as
scale, its shape unknown; the prior over the shape is a Gamma, so that what was seen adds up in two numbers and the
chance of a gap longer than t is `(logs / (logs + ln(1 + t / scale))) ** gaps`. Beside it stands the chance that
nobody ever comes back, which falls with each return.

The priors below are round figures, set after a look at the gaps of 117 recorded coding sessions. They need not be
exact: with any one of them off by two, or all fitted to half of the sessions and used on the other half, the cost
changed by up to a percent of the whole (`benchmarks/replay_costs.py`). A session outweighs them after ten or twenty
gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import log1p


@dataclass(frozen=True, slots=True)
class Waiting:
    """One kind of gap. `scale` is its median in seconds, as assumed; `gaps` and `logs` are what was seen, the prior
    included (as many gaps as it weighs); `returns` are the gaps that ended, for each of which one might not have."""

    scale: float
    gaps: float
    logs: float
    returns: float

    @classmethod
    def expected(cls, median: float, weight: float, returns: float) -> Waiting:
        """A prior: half of all gaps are longer than `median` seconds (it weighs as much as `weight` gaps seen), one
        in `returns + 1` never ends."""
        return cls(median, weight, weight, returns)

    def after(self, gap: float) -> Waiting:
        """With one more `gap`, in seconds, seen."""
        seen = log1p(max(0.0, gap) / self.scale)
        return replace(self, gaps=self.gaps + 1, logs=self.logs + seen, returns=self.returns + 1)

    @property
    def never(self) -> float:
        """The chance that no call follows at all."""
        return 1 / (1 + self.returns)

    def ends_after(self, seconds: float) -> float:
        """The chance that a gap ends, and later than `seconds` from its start."""
        survival: float = (self.logs / (self.logs + log1p(seconds / self.scale))) ** self.gaps
        return survival * self.returns / (1 + self.returns)

    def lasts(self, seconds: float) -> float:
        """The chance that a gap is longer than `seconds`, whether it ends or not."""
        return self.never + self.ends_after(seconds)


#: A tool or the next step takes seconds; one session in some hundred calls is left in the middle of a turn.
TOOL = Waiting.expected(median=5.0, weight=20.0, returns=200.0)
#: A person answers after a minute or two; one rest in six is the last.
PERSON = Waiting.expected(median=100.0, weight=10.0, returns=5.0)


@dataclass(frozen=True, slots=True)
class Experience:
    """What is known of a session's rhythm: both kinds of waiting, and how many of its `replies` (the prior included)
    ended their turn (`rests`)."""

    tool: Waiting = field(default=TOOL)
    person: Waiting = field(default=PERSON)
    replies: float = 20.0
    rests: float = 2.0

    def after(self, gap: float, rested: bool) -> Experience:
        """With one more gap of `gap` seconds seen between two calls; `rested`: the turn had ended before it."""
        if rested:
            return replace(self, person=self.person.after(gap), replies=self.replies + 1, rests=self.rests + 1)
        return replace(self, tool=self.tool.after(gap), replies=self.replies + 1)

    def waiting(self, rested: bool) -> Waiting:
        return self.person if rested else self.tool

    @property
    def rest(self) -> float:
        """The chance that the next reply ends its turn."""
        return self.rests / self.replies

    def lasts(self, seconds: float) -> float:
        """The chance that the gap after the next reply is longer than `seconds`."""
        return self.rest * self.person.lasts(seconds) + (1 - self.rest) * self.tool.lasts(seconds)

    def calls(self, lifetime: float) -> float:
        """How many more calls are expected to come within `lifetime` seconds of each other, before the session ends
        or pauses for longer. At least 1."""
        return 1 / max(1e-6, self.lasts(lifetime))


#: Before the first call.
UNTAUGHT = Experience()
