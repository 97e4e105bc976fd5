"""Laws of the economy that hold for all prices, sizes and gaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from governors.economy import (
    UNTAUGHT,
    Cache,
    Experience,
    Prices,
    Proposal,
    Rates,
    Tier,
    choose_lifetime,
    plan_warming,
    weigh_edit,
)

ORDER = {None: 0, "pays": 1, "cold": 1, "must": 1}


def rates(scale: float, read: float, premium: float) -> Rates:
    return Rates(scale, scale * read, scale * premium, scale * max(premium, 2.0), scale * 5)


@st.composite
def prices(draw: st.DrawFn) -> Prices:
    read, premium = draw(st.sampled_from([0.025, 0.05, 0.1, 0.25])), draw(st.sampled_from([1.0, 1.25, 2.0]))
    tiers = (Tier(draw(st.integers(1_000, 200_000)), rates(2.0, read, premium)),) if draw(st.booleans()) else ()
    lifetimes = draw(st.sampled_from([(300,), (300, 3_600)]))
    return Prices(rates(1.0, read, premium), tiers, lifetimes, draw(st.booleans()))


@st.composite
def proposals(draw: st.DrawFn) -> tuple[Proposal, Cache]:
    """An edit within a prompt that extends what the cache holds."""
    held = draw(st.integers(1_000, 200_000))
    stable = draw(st.integers(0, held))
    saved = draw(st.integers(1, max(1, held - stable)))
    before = held + draw(st.integers(0, 20_000))
    return Proposal(before, max(stable, before - saved), stable), Cache(0.0, 300, held)


@st.composite
def experiences(draw: st.DrawFn) -> Experience:
    learned = UNTAUGHT
    for gap, rested in draw(st.lists(st.tuples(st.floats(0, 1e5), st.booleans()), max_size=12)):
        learned = learned.after(gap, rested)
    return learned


missed = st.floats(0, 1e6)
times = st.floats(0, 1e5)


@given(proposals(), prices(), experiences(), times, times, missed)
def test_an_older_cache_never_makes_an_edit_less_attractive(
    case: tuple[Proposal, Cache], asked: Prices, learned: Experience, one: float, other: float, waited: float
) -> None:
    """What may be edited now may be edited later."""
    proposal, cache = case
    early, late = sorted((one, other))
    before = weigh_edit(proposal, cache, asked, learned, now=early, missed=waited)
    after = weigh_edit(proposal, cache, asked, learned, now=late, missed=waited)
    assert ORDER[before.reason] <= ORDER[after.reason]
    assert after.cost <= before.cost + 1e-6


@given(proposals(), prices(), experiences(), times, missed, st.integers(0, 50_000))
def test_a_larger_saving_is_never_less_attractive(
    case: tuple[Proposal, Cache], asked: Prices, learned: Experience, now: float, waited: float, more: int
) -> None:
    """For the same place in the prompt."""
    proposal, cache = case
    larger = replace(proposal, after=max(proposal.stable, proposal.after - more))
    before = weigh_edit(proposal, cache, asked, learned, now=now, missed=waited)
    after = weigh_edit(larger, cache, asked, learned, now=now, missed=waited)
    assert ORDER[before.reason] <= ORDER[after.reason]


@given(proposals(), prices(), experiences(), times, missed, missed)
def test_having_waited_longer_is_never_less_attractive(
    case: tuple[Proposal, Cache], asked: Prices, learned: Experience, now: float, one: float, other: float
) -> None:
    """Patience only grows."""
    proposal, cache = case
    less, more = sorted((one, other))
    before = weigh_edit(proposal, cache, asked, learned, now=now, missed=less)
    after = weigh_edit(proposal, cache, asked, learned, now=now, missed=more)
    assert ORDER[before.reason] <= ORDER[after.reason]
    assert before == weigh_edit(proposal, cache, asked, learned, now=now, missed=less)


@given(experiences(), st.booleans(), times, times)
def test_the_chance_of_a_longer_gap_is_never_larger(
    learned: Experience, rested: bool, one: float, other: float
) -> None:
    """And chances are chances."""
    waiting = learned.waiting(rested)
    short, long = sorted((one, other))
    assert 0 <= waiting.ends_after(long) <= waiting.ends_after(short) <= 1
    assert waiting.never <= waiting.lasts(long) <= waiting.lasts(short) <= 1 + 1e-9
    assert learned.calls(short + 1) >= 1


@given(st.integers(1, 500_000), prices(), experiences(), st.booleans(), st.floats(0, 1e6))
def test_a_plan_costs_no_more_than_no_plan_and_its_warmings_no_more_than_a_cold_start(
    tokens: int, asked: Prices, learned: Experience, rested: bool, edit: float
) -> None:
    """The ski rental's bound, and times that rise within the lifetime of each other."""
    cache = Cache(1_000.0, 300, tokens)
    plan = plan_warming(cache, asked, learned, rested=rested, waiting_edit=edit)
    assert plan.cost <= plan.without * (1 + 1e-9) + 1e-9
    assert len(plan.times) * asked.at(tokens).read * tokens <= asked.cold(tokens) * (1 + 1e-9)
    moments = (cache.used_at, *plan.times)
    assert all(0 < after - before < 300 for before, after in pairwise(moments))
    if not asked.warming:
        assert plan.times == ()


@given(st.integers(1, 500_000), prices(), experiences(), st.integers(0, 500_000), st.integers(0, 500_000))
def test_more_to_write_never_asks_for_a_longer_lifetime(
    prefix: int, asked: Prices, learned: Experience, one: int, other: int
) -> None:
    """The premium is on what is written."""
    less, more = sorted((min(one, prefix), min(other, prefix)))
    assert choose_lifetime(prefix, more, asked, learned) <= choose_lifetime(prefix, less, asked, learned)
    assert choose_lifetime(prefix, less, asked, learned) in asked.lifetimes
