"""The economy of one session as a running value: what was seen, what the cache holds, what waiting has cost.

The order around each model call, all pure (`now` in seconds on one clock, tokens of whole requests):

    economy = economy.came(now, rested)                     # a call is wanted: the gap before it is known
    forecast = economy.weigh(proposal, now, budget=...)     # for each edit that could be made
    economy = economy.weighed(forecast)
    economy = economy.sent(now, prefix, written, waiting)   # the request left; `economy.cache.lifetime` is chosen
    plan = economy.warmings(rested, waiting)                # after the reply, until the next call
    economy = economy.warmed(at)                            # for each warming that was sent
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .editing import Cache, EditForecast, Proposal, weigh_edit
from .experience import UNTAUGHT, Experience
from .keeping import WarmingPlan, choose_lifetime, edit_when_cold, plan_warming
from .prices import UNIT, Prices


@dataclass(frozen=True, slots=True)
class Economy:
    """`called_at` is the time of the last call (a warming is none), `missed` see `weigh_edit`."""

    prices: Prices = UNIT
    experience: Experience = UNTAUGHT
    cache: Cache | None = None
    called_at: float | None = None
    missed: float = 0.0

    def came(self, now: float, rested: bool) -> Economy:
        """A call is wanted; `rested`: the turn had ended before it."""
        if self.called_at is None:
            return self
        return replace(self, experience=self.experience.after(now - self.called_at, rested))

    def weigh(self, proposal: Proposal, now: float, *, budget: int | None = None) -> EditForecast:
        return weigh_edit(
            proposal, self.cache, self.prices, self.experience, now=now, missed=self.missed, budget=budget
        )

    def weighed(self, forecast: EditForecast) -> Economy:
        return replace(self, missed=forecast.missed)

    def sent(self, now: float, prefix: int, written: int, waiting: int = 0) -> Economy:
        """A request of `prefix` tokens left, `written` of them new to the cache; `waiting` is what the edit that has
        to wait would save."""
        worth = edit_when_cold(waiting, prefix, self.prices, self.experience) if waiting else 0.0
        lifetime = choose_lifetime(prefix, written, self.prices, self.experience, waiting_edit=worth)
        return replace(self, cache=Cache(now, lifetime, prefix), called_at=now)

    def warmings(self, rested: bool, waiting: int = 0) -> WarmingPlan | None:
        """The plan for the gap after a reply; None before the first call."""
        if self.cache is None:
            return None
        worth = edit_when_cold(waiting, self.cache.tokens, self.prices, self.experience) if waiting else 0.0
        return plan_warming(self.cache, self.prices, self.experience, rested=rested, waiting_edit=worth)

    def warmed(self, now: float) -> Economy:
        if self.cache is None:
            return self
        return replace(self, cache=replace(self.cache, used_at=now))

    def forgot(self) -> Economy:
        """After a switch of model or wire, or a head: nothing of the session is in the cache, nothing was missed."""
        return replace(self, cache=None, missed=0.0)
