"""Who decides in a replay: `append-only`, `every-call`, `cold-only`, `pays-N`, `moonwake`, or a Python path.

A policy is a function of the prices and the budget that gives a fresh `Player` for each trace. `moonwake` asks
`governors.economy`, the same code that decides in a live session. The others are for comparison. What a Python path
names is a guest: each call of it is watched, so that its faults are told as its own (`docs/replay.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from governors.economy import UNTAUGHT, Cache, Economy, Experience, Prices, Proposal, low_watermark

from ..errors import MoonwakeError
from .loading import blaming, load

#: Seconds: a warming that came at the very end of the lifetime would be too late by a rounding error.
JUST_BEFORE = 1e-3


@dataclass(frozen=True, slots=True)
class View:
    """What is known when a call is made, in tokens of the prompt: as it would be sent (`prompt`), after an edit of
    all that can be edited (`edited`), how much of the last request such an edit leaves alone (`stable`), and how much
    the cache holds (`warm`, 0 when it has expired). `now` is in seconds on the session's clock. `rested`: the turn had
    ended before this call. `budget`: the most that a prompt may hold, None where there is no limit."""

    now: float
    prompt: int
    edited: int
    stable: int
    warm: int
    rested: bool
    budget: int | None = None

    @property
    def saved(self) -> int:
        """What an edit would take off this prompt, in tokens."""
        return self.prompt - self.edited


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether to edit; and when the prompt was over budget, how many tokens it may hold at most when the oldest of it
    is cut as well (None: the budget)."""

    edit: bool = False
    target: int | None = None


class Player(Protocol):
    """A policy at work on one trace."""

    def decide(self, view: View) -> Choice:
        """What to do to the prompt of this call."""

    def sent(self, now: float, prompt: int, written: int, waiting: int) -> int:
        """The call was made; the lifetime in seconds of what it wrote. `waiting`: what an edit would save now."""

    def warmings(self, cache: Cache, rested: bool, waiting: int) -> tuple[float, ...]:
        """When to keep the cache warm after the reply, if no call comes before."""

    def warmed(self, at: float) -> None:
        """A warming was sent."""


Policy: TypeAlias = Callable[[Prices, int | None], Player]


@dataclass(slots=True)
class Rule:
    """A fixed rule: one lifetime, at most `most` warmings a gap, each just before the lifetime ends."""

    edits: Callable[[View, Prices], bool]
    prices: Prices
    lifetime: int
    most: int = 0

    def decide(self, view: View) -> Choice:
        over = view.budget is not None and view.prompt > view.budget
        return Choice(over or self.edits(view, self.prices))

    def sent(self, now: float, prompt: int, written: int, waiting: int) -> int:
        return self.lifetime

    def warmings(self, cache: Cache, rested: bool, waiting: int) -> tuple[float, ...]:
        return tuple(cache.used_at + (cache.lifetime - JUST_BEFORE) * number for number in range(1, self.most + 1))

    def warmed(self, at: float) -> None:
        pass


class Moonwake:
    """The governors' economy."""

    def __init__(self, prices: Prices, budget: int | None, experience: Experience = UNTAUGHT) -> None:
        self.economy = Economy(prices, experience)
        self._budget = budget
        self._last = 0
        self._growth = 0

    def decide(self, view: View) -> Choice:
        self.economy = self.economy.came(view.now, view.rested)
        proposal = Proposal(view.prompt, view.edited, view.stable)
        forecast = self.economy.weigh(proposal, view.now, budget=view.budget)
        self.economy = self.economy.weighed(forecast)
        self._growth = max(self._growth, view.prompt - self._last) if self._last else 0
        target = None if self._budget is None else low_watermark(self._budget, self._growth)
        return Choice(forecast.reason is not None, target)

    def sent(self, now: float, prompt: int, written: int, waiting: int) -> int:
        self._last = prompt
        self.economy = self.economy.sent(now, prompt, written, waiting)
        assert self.economy.cache is not None
        return self.economy.cache.lifetime

    def warmings(self, cache: Cache, rested: bool, waiting: int) -> tuple[float, ...]:
        plan = self.economy.warmings(rested, waiting)
        return () if plan is None else plan.times

    def warmed(self, at: float) -> None:
        self.economy = self.economy.warmed(at)


def rule(edits: Callable[[View, Prices], bool], *, lifetime: int | None = None, most: int = 0) -> Policy:
    """A policy from a fixed rule. Without `lifetime` it is the first that the prices offer."""
    return lambda prices, budget: Rule(edits, prices, lifetime or prices.lifetimes[0], most)


def pays(calls: float) -> Callable[[View, Prices], bool]:
    """Edit when cold, or when what `calls` more calls save is more than what the rewritten rest costs."""

    def edits(view: View, prices: Prices) -> bool:
        rates = prices.at(view.prompt)
        rewritten = (view.edited - view.stable) * (rates.write(prices.lifetimes[0]) - rates.read)
        return not view.warm or view.saved * rates.read * calls > rewritten

    return edits


def _never(view: View, prices: Prices) -> bool:
    return False


def _always(view: View, prices: Prices) -> bool:
    return True


def _cold(view: View, prices: Prices) -> bool:
    return not view.warm


_NAMED: dict[str, Policy] = {
    "append-only": rule(_never),
    "append-only-1h": rule(_never, lifetime=3_600),
    "every-call": rule(_always),
    "cold-only": rule(_cold),
    "moonwake": Moonwake,
}
NAMES = ("append-only", "every-call", "cold-only", "moonwake")


def policy_named(name: str) -> Policy:
    """The policy of that name. `pays-15` edits by that many expected calls, `pays-15-warm-4` warms as well.

    `module:function` or `./file.py:function` names a function of a `View` that gives a bool (whether to edit) or a
    `Choice`, or a policy (a class of prices and budget that makes a `Player`, or a function that does, with
    `is_policy = True`). Raises `MoonwakeError`; whatever such a policy raises at work becomes one as well.
    """
    if name in _NAMED:
        return _NAMED[name]
    if ":" in name:
        return _imported(name)
    words = name.split("-")
    if words[0] == "pays" and all(word.isdigit() for word in words[1::2]):
        if len(words) == 2:
            return rule(pays(int(words[1])))
        if len(words) == 4 and words[2] == "warm":
            return rule(pays(int(words[1])), most=int(words[3]))
    raise MoonwakeError(
        f"there is no policy {name!r}. Known are {', '.join(_NAMED)}, pays-N, pays-N-warm-M, "
        "module:function and ./file.py:function"
    )


@dataclass(slots=True)
class _Function(Rule):
    """A plain function that decides from the view alone."""

    function: Callable[[View], bool | Choice] = lambda view: False

    def decide(self, view: View) -> Choice:
        choice = self.function(view)
        return Choice(choice) if isinstance(choice, bool) else choice


@dataclass(slots=True)
class _Guest:
    """A player of the user's own, at `path`: it is blamed for what it raises, and held to what a player returns."""

    path: str
    player: Player

    def decide(self, view: View) -> Choice:
        with blaming(self.path):
            choice: object = self.player.decide(view)
        if not isinstance(choice, Choice):
            raise self._misfit("decide", choice, "True, False or a Choice")
        return choice

    def sent(self, now: float, prompt: int, written: int, waiting: int) -> int:
        with blaming(self.path):
            lifetime: object = self.player.sent(now, prompt, written, waiting)  # whatever it is
        if not isinstance(lifetime, int) or lifetime <= 0:
            raise self._misfit("sent", lifetime, "a lifetime in whole seconds")
        return lifetime

    def warmings(self, cache: Cache, rested: bool, waiting: int) -> tuple[float, ...]:
        with blaming(self.path):
            return tuple(float(at) for at in self.player.warmings(cache, rested, waiting))

    def warmed(self, at: float) -> None:
        with blaming(self.path):
            self.player.warmed(at)

    def _misfit(self, method: str, given: object, wanted: str) -> MoonwakeError:
        return MoonwakeError(f"the policy {self.path!r} failed: to `{method}` it answered {given!r}, not {wanted}")


def _imported(path: str) -> Policy:
    found = load(path)
    makes_players = isinstance(found, type) or getattr(found, "is_policy", False)

    def policy(prices: Prices, budget: int | None) -> Player:
        if not makes_players:
            return _Guest(path, _Function(_never, prices, prices.lifetimes[0], 0, found))
        with blaming(path):
            return _Guest(path, found(prices, budget))

    return policy
