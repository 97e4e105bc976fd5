"""When an edit of what was already sent may be made.

An edit makes later calls smaller, and moves the prefix: what stands after its first changed byte is written to the
cache anew. Three reasons allow one:

- **must**: the request is over budget.
- **cold**: the cache has expired, so that everything is written anew in any case. The edit is free.
- **pays**: `saved per call x expected calls > cost of the rewrite`, and the session has already paid, for lack of
  this edit, as much as the edit costs.

The last half sentence is the ski rental's rule: rent until the rent has reached the price, then buy. It decides how
many results go in one batch, and needs no horizon: with results that arrive evenly it is the cheapest batch there is
(the missed saving grows with the square of the time since the last edit, and equals the rewrite at the optimum), and
on any other sequence it costs at most twice the best. So edits grow rarer by themselves where reading is cheap.

Laws: decisions are functions of their arguments. An older cache never makes an edit less attractive, nor does a
larger saving or a longer wait. What an edit costs now counts both calls exactly, price tiers included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .experience import Experience
from .prices import Prices

Reason = Literal["must", "cold", "pays"]


@dataclass(frozen=True, slots=True)
class Cache:
    """What the provider holds of this session: `tokens` of prefix, last written or read at `used_at` (seconds on the
    caller's clock) for `lifetime` seconds."""

    used_at: float
    lifetime: int
    tokens: int

    def cold(self, now: float) -> bool:
        return now - self.used_at > self.lifetime

    def expires_at(self) -> float:
        return self.used_at + self.lifetime


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit that could be made, in tokens: the request without it (`before`) and with it (`after`), and how much of
    the front both share with the last request (`stable`). `loss` is what else it costs, in money (reasoning that
    has to go with it)."""

    before: int
    after: int
    stable: int
    loss: float = 0.0

    @property
    def saved(self) -> int:
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class EditForecast:
    """What becomes of a proposal. `reason` is None when the edit has to wait. Money is in the unit of the prices:
    `saving` per later call, `cost` of this call beyond the one without the edit, `calls` over which the saving is
    expected, `missed` what calls up to this one would have saved (0 after an edit): hand it in next time."""

    reason: Reason | None
    saved: int
    saving: float
    cost: float
    calls: float
    missed: float

    @property
    def gain(self) -> float:
        return self.saving * self.calls - self.cost


def weigh_edit(
    proposal: Proposal,
    cache: Cache | None,
    prices: Prices,
    experience: Experience,
    *,
    now: float,
    missed: float = 0.0,
    budget: int | None = None,
) -> EditForecast:
    """Whether `proposal` may be made now, and what it is expected to bring.

    `cache` is None before the first call. `missed` comes from the forecast before; who lost it starts again at 0.
    `budget` is in tokens of the whole request.
    """
    lifetime = prices.lifetimes[0]
    saving = _reading(prices, proposal.before) - _reading(prices, proposal.after)
    warm = 0 if cache is None or cache.cold(now) else cache.tokens
    kept = prices.call(proposal.before, min(warm, proposal.before), lifetime)
    edited = prices.call(proposal.after, min(warm, proposal.stable, proposal.after), lifetime)
    cost = edited - kept + proposal.loss
    calls = experience.calls(prices.lifetimes[-1])
    missed += max(0.0, saving)
    reason: Reason | None = None
    if proposal.saved > 0:
        if budget is not None and proposal.before > budget:
            reason = "must"
        elif warm == 0 and proposal.loss == 0:
            reason = "cold"
        elif missed >= cost and saving * calls > cost:
            reason = "pays"
    return EditForecast(reason, proposal.saved, saving, cost, calls, 0.0 if reason else missed)


def low_watermark(budget: int, growth: int, share: float = 0.5) -> int:
    """How many tokens a request may hold after a cut that its size forced, so that the next does not force another.

    `growth` is the most that one call has added so far. Money alone would cut to nothing (a smaller rest is cheaper
    to write and to read), so the share is a choice in favour of memory; it gives way where calls grow by more.
    """
    return max(0, min(int(budget * share), budget - 2 * growth))


def _reading(prices: Prices, prompt: int) -> float:
    return prices.at(prompt).read * prompt
