"""How long the cache is to last: the lifetime of the next write, and requests that keep it warm.

A **warming** is a minimal request just before the cache expires: it costs one read of the prefix and renews the
lifetime. Sending one more pays while

    chance that a call comes within the lifetime it buys  x  what a cold start costs more  >  one read of the prefix

The longer one has waited, the smaller that chance (`experience.py`), so the first warming that does not pay ends the
plan: none after it would. The plan never costs more than the cold start that it avoids (the ski rental's bound).

A cold start is not all loss: an edit that waits for one becomes free. What it would save is taken off.

The **lifetime** of a write is the one with the smaller sum of what the new tokens cost and what the gap after the
reply is expected to cost under that plan. A provider bills an hour's premium on the new tokens only, while the whole
prefix lives on, so a small addition to a large prefix is worth an hour sooner than the first write.
"""

from __future__ import annotations

from dataclasses import dataclass

from .editing import Cache
from .experience import Experience, Waiting
from .prices import Prices

#: Seconds before the end of the lifetime at which a warming is sent: it has to arrive in time.
EARLY = 10.0
#: A gap is never worth more warmings than this, however cheap reading is.
MOST = 12


@dataclass(frozen=True, slots=True)
class WarmingPlan:
    """When to warm if no call comes before (on the clock of the cache), and what the whole gap is expected to cost
    by it, cold start included, against `without`. In the unit of the prices."""

    times: tuple[float, ...]
    cost: float
    without: float


def plan_warming(
    cache: Cache,
    prices: Prices,
    experience: Experience,
    *,
    rested: bool,
    waiting_edit: float = 0.0,
    early: float = EARLY,
) -> WarmingPlan:
    """The warmings of the gap that began at `cache.used_at`, made once after each reply (`rested`: it ended its turn).

    `waiting_edit` is what the edit that waits for a cold start would bring (`edit_when_cold`).
    """
    waiting = experience.waiting(rested)
    loss = max(0.0, prices.cold(cache.tokens) - waiting_edit)
    step = max(1.0, cache.lifetime - early)
    count, cost = _gap(cache.tokens, cache.lifetime, prices, waiting, loss, step)
    times = tuple(cache.used_at + step * number for number in range(1, count + 1))
    return WarmingPlan(times, cost, waiting.ends_after(cache.lifetime) * loss)


def choose_lifetime(
    prefix: int, written: int, prices: Prices, experience: Experience, *, waiting_edit: float = 0.0
) -> int:
    """The lifetime in seconds for the write of a request of `prefix` tokens, `written` of which are new."""
    if len(prices.lifetimes) == 1:
        return prices.lifetimes[0]
    rates = prices.at(prefix)
    loss = max(0.0, prices.cold(prefix) - waiting_edit)

    def cost(lifetime: int) -> float:
        gaps = (
            (experience.rest, experience.person),
            (1 - experience.rest, experience.tool),
        )
        step = max(1.0, lifetime - EARLY)
        expected = sum(chance * _gap(prefix, lifetime, prices, gap, loss, step)[1] for chance, gap in gaps)
        return rates.write(lifetime) * written + expected

    return min(prices.lifetimes, key=cost)


def edit_when_cold(saved: int, prefix: int, prices: Prices, experience: Experience) -> float:
    """What a cold start brings by letting an edit of `saved` tokens be made for nothing: they are not written, and
    the calls expected after it do not read them."""
    rates = prices.at(prefix)
    return saved * (rates.write(prices.lifetimes[0]) + rates.read * experience.calls(prices.lifetimes[-1]))


def _gap(prefix: int, lifetime: int, prices: Prices, waiting: Waiting, loss: float, step: float) -> tuple[int, float]:
    """How many warmings a gap is worth, and what it is then expected to cost."""
    read = prices.at(prefix).read * prefix
    count, spent = 0, 0.0
    late = waiting.ends_after(lifetime)  # the chance of a cold start
    if prices.warming and loss > 0:
        most = MOST if read * MOST <= loss else int(loss / read)
        for start in (step * number for number in range(1, most + 1)):
            later, waits = waiting.ends_after(start + lifetime), waiting.lasts(start)
            if (late - later) * loss <= read * waits:
                break
            count += 1
            spent += read * waits
            late = later
    return count, spent + late * loss
