"""When an edit pays, how long a cache should last, when to keep it warm: by example."""

from __future__ import annotations

import pytest

from governors.economy import (
    LONG,
    SHORT,
    UNIT,
    UNTAUGHT,
    Cache,
    Economy,
    Experience,
    Prices,
    Proposal,
    Rates,
    Tier,
    Waiting,
    choose_lifetime,
    edit_when_cold,
    low_watermark,
    plan_warming,
    weigh_edit,
)

WARM = Cache(used_at=0.0, lifetime=SHORT, tokens=100_000)
#: 20,000 tokens of results go; 30,000 after the first of them are written anew.
PROPOSAL = Proposal(before=101_000, after=81_000, stable=51_000)


class TestPrices:
    def test_a_call_reads_what_the_cache_holds_and_writes_the_rest(self) -> None:
        """The two rates of a prompt, by hand."""
        assert UNIT.call(1_000, 900) == pytest.approx(900 * 0.1 + 100 * 1.25)
        assert UNIT.call(1_000, 900, LONG) == pytest.approx(900 * 0.1 + 100 * 2.0)

    def test_a_tier_holds_for_all_tokens_of_a_larger_prompt(self) -> None:
        """One token more and the whole prompt is dearer; at the bound it is not."""
        prices = Prices(Rates(), (Tier(100_000, Rates(5, 0.5, 6.25, 10, 25)),))
        assert prices.call(100_000, 100_000) == pytest.approx(10_000)
        assert prices.call(100_001, 100_001) == pytest.approx(50_000.5)

    def test_the_highest_tier_that_is_passed_counts(self) -> None:
        """Tiers do not add up."""
        prices = Prices(Rates(), (Tier(10, Rates(plain=2)), Tier(20, Rates(plain=3))))
        assert [prices.at(size).plain for size in (10, 11, 20, 21)] == [1, 2, 2, 3]

    def test_a_cold_start_costs_a_write_less_a_read(self) -> None:
        """At the cheapest write; never less than nothing, whatever a provider asks for reading."""
        assert UNIT.cold(1_000) == pytest.approx(1_150)
        assert Prices(Rates(read=2.0, write_5m=1.0)).cold(1_000) == 0

    @pytest.mark.parametrize("lifetimes", [(), (0,), (300, -1)])
    def test_lifetimes_that_cannot_be_are_refused(self, lifetimes: tuple[int, ...]) -> None:
        """The error names them."""
        with pytest.raises(ValueError, match="lifetimes"):
            Prices(lifetimes=lifetimes)

    def test_tiers_out_of_order_are_refused(self) -> None:
        """A bound twice is out of order as well."""
        with pytest.raises(ValueError, match="tiers must rise"):
            Prices(tiers=(Tier(5, Rates()), Tier(5, Rates())))


class TestExperience:
    def test_the_prior_is_what_it_says(self) -> None:
        """Near half of the gaps that end are longer than the median, one in seven never ends."""
        waiting = Waiting.expected(median=60, weight=1_000, returns=6)
        assert waiting.never == pytest.approx(1 / 7)
        assert waiting.ends_after(0) == pytest.approx(6 / 7)
        assert waiting.ends_after(60) / waiting.ends_after(0) == pytest.approx(0.5, abs=0.001)

    def test_long_gaps_teach_to_expect_long_gaps(self) -> None:
        """And short ones the contrary; each return makes it likelier that there is a next."""
        slow = fast = UNTAUGHT.person
        for _ in range(10):
            slow, fast = slow.after(1_000), fast.after(5)
        assert slow.ends_after(300) > UNTAUGHT.person.ends_after(300) > fast.ends_after(300)
        assert slow.never < UNTAUGHT.person.never

    def test_the_two_kinds_of_waiting_do_not_mix(self) -> None:
        """What a person does says nothing of the tools."""
        after = UNTAUGHT.after(1_000, rested=True)
        assert after.tool == UNTAUGHT.tool
        assert after.waiting(True) != UNTAUGHT.waiting(True)
        assert after.rest > UNTAUGHT.rest > UNTAUGHT.after(1, rested=False).rest

    def test_a_clock_that_went_back_counts_as_no_gap(self) -> None:
        """No logarithm of a negative number."""
        assert UNTAUGHT.tool.after(-50) == UNTAUGHT.tool.after(0)

    def test_a_busy_session_expects_more_calls(self) -> None:
        """Short gaps raise the number of calls before the next pause."""
        busy = UNTAUGHT
        for _ in range(50):
            busy = busy.after(3, rested=False)
        assert busy.calls(SHORT) > UNTAUGHT.calls(SHORT) > 1
        assert UNTAUGHT.calls(LONG) > UNTAUGHT.calls(SHORT)


class TestEdits:
    def test_an_edit_is_free_when_the_cache_is_cold(self) -> None:
        """It even makes the call cheaper."""
        forecast = weigh_edit(PROPOSAL, WARM, UNIT, UNTAUGHT, now=301)
        assert (forecast.reason, forecast.missed) == ("cold", 0)
        assert forecast.cost == pytest.approx(-20_000 * 1.25)
        assert forecast.gain > 0

    def test_before_the_first_call_everything_is_cold(self) -> None:
        """There is no cache yet."""
        assert weigh_edit(PROPOSAL, None, UNIT, UNTAUGHT, now=0).reason == "cold"

    def test_a_warm_edit_waits_until_missing_it_has_cost_as_much(self) -> None:
        """The cost is exact: 30,000 tokens written instead of 50,000 read, 1,000 new ones either way."""
        forecast = weigh_edit(PROPOSAL, WARM, UNIT, UNTAUGHT, now=10)
        cost = (51_000 * 0.1 + 30_000 * 1.25) - (100_000 * 0.1 + 1_000 * 1.25)
        assert forecast.cost == pytest.approx(cost)
        assert (forecast.reason, forecast.saving) == (None, pytest.approx(2_000))
        missed, calls = 0.0, 0
        while (forecast := weigh_edit(PROPOSAL, WARM, UNIT, UNTAUGHT, now=10, missed=missed)).reason is None:
            missed, calls = forecast.missed, calls + 1
        assert forecast.reason == "pays"
        assert calls == int(cost / 2_000)
        assert forecast.missed == 0

    def test_an_edit_that_will_never_be_earned_back_waits_though_much_was_missed(self) -> None:
        """A session about to pause expects too few calls."""
        ending = Experience(person=Waiting.expected(1e6, 1_000, 0.01), replies=20, rests=19.9)
        assert weigh_edit(PROPOSAL, WARM, UNIT, ending, now=10, missed=1e9).reason is None

    def test_over_budget_it_must(self) -> None:
        """Whatever it costs; at the budget it need not."""
        assert weigh_edit(PROPOSAL, WARM, UNIT, UNTAUGHT, now=10, budget=100_999).reason == "must"
        assert weigh_edit(PROPOSAL, WARM, UNIT, UNTAUGHT, now=10, budget=101_000).reason is None

    def test_nothing_to_save_is_no_edit(self) -> None:
        """Not even over budget, or cold."""
        nothing = Proposal(before=101_000, after=101_000, stable=100_000)
        assert weigh_edit(nothing, None, UNIT, UNTAUGHT, now=0, budget=1).reason is None

    def test_crossing_a_price_tier_pays_at_once(self) -> None:
        """Five times the price above 100,000 tokens: the edit that comes under it is cheaper even now."""
        prices = Prices(Rates(), (Tier(100_000, Rates(5, 0.5, 6.25, 10, 25)),))
        forecast = weigh_edit(PROPOSAL, WARM, prices, UNTAUGHT, now=10)
        assert forecast.saving == pytest.approx(101_000 * 0.5 - 81_000 * 0.1)
        assert forecast.reason == "pays"

    def test_a_loss_is_priced_in(self) -> None:
        """Reasoning that goes with the edit makes even a cold one weigh up."""
        lossy = Proposal(PROPOSAL.before, PROPOSAL.after, PROPOSAL.stable, loss=1e9)
        assert weigh_edit(lossy, WARM, UNIT, UNTAUGHT, now=1_000).reason is None
        small = Proposal(PROPOSAL.before, PROPOSAL.after, PROPOSAL.stable, loss=10)
        assert weigh_edit(small, WARM, UNIT, UNTAUGHT, now=1_000).reason == "pays"

    def test_the_low_watermark_leaves_room_for_the_next_calls(self) -> None:
        """Half of the budget, less where calls grow by more, never negative."""
        assert low_watermark(100_000, growth=8_000) == 50_000
        assert low_watermark(100_000, growth=40_000) == 20_000
        assert low_watermark(100_000, growth=90_000) == 0


class TestKeeping:
    def test_a_person_who_will_be_back_is_worth_a_warming(self) -> None:
        """Sent shortly before the cache expires; the plan is cheaper than none."""
        plan = plan_warming(WARM, UNIT, UNTAUGHT, rested=True)
        assert plan.times[0] == SHORT - 10
        assert plan.cost < plan.without
        assert len(plan.times) <= 11  # more would cost more than the cold start

    def test_nothing_is_kept_warm_where_nobody_comes_back(self) -> None:
        """One in a hundred is not worth it."""
        gone = Experience(person=Waiting.expected(100, 10, returns=0.01))
        assert plan_warming(WARM, UNIT, gone, rested=True).times == ()

    def test_nothing_is_kept_warm_where_the_provider_has_no_such_thing(self) -> None:
        """The forecast then is that of a plain gap."""
        plan = plan_warming(WARM, Prices(warming=False), UNTAUGHT, rested=True)
        assert plan.times == ()
        assert plan.cost == plan.without

    def test_an_edit_that_waits_for_a_cold_start_makes_warming_less_worth(self) -> None:
        """Up to nothing at all."""
        worth = edit_when_cold(90_000, WARM.tokens, UNIT, UNTAUGHT)
        assert plan_warming(WARM, UNIT, UNTAUGHT, rested=True, waiting_edit=worth).times == ()

    def test_free_reading_warms_a_bounded_number_of_times(self) -> None:
        """Not for ever."""
        plan = plan_warming(WARM, Prices(Rates(read=0.0)), UNTAUGHT, rested=True)
        assert len(plan.times) == 12

    def test_an_hour_pays_for_a_small_addition_to_a_large_prefix(self) -> None:
        """And not for the first write, when the prefix is all new."""
        assert choose_lifetime(100_000, 500, UNIT, UNTAUGHT) == LONG
        assert choose_lifetime(100_000, 100_000, UNIT, UNTAUGHT) == SHORT

    def test_quick_sessions_do_not_pay_for_an_hour(self) -> None:
        """Fifty answers within seconds."""
        quick = UNTAUGHT
        for number in range(300):
            quick = quick.after(4, rested=number % 2 == 0)
        assert choose_lifetime(20_000, 2_000, UNIT, quick) == SHORT

    def test_a_provider_that_chooses_by_itself_has_one_lifetime(self) -> None:
        """There is nothing to choose."""
        assert choose_lifetime(100_000, 500, Prices(lifetimes=(600,)), UNTAUGHT) == 600


class TestEconomy:
    def test_it_learns_from_gaps_between_calls_not_from_warmings(self) -> None:
        """A warming renews the cache and is no call."""
        economy = Economy().came(0, rested=False).sent(0, 50_000, 50_000)
        assert economy.experience == UNTAUGHT
        warmed = economy.warmed(290)
        assert warmed.cache is not None
        assert (warmed.cache.used_at, warmed.cache.expires_at()) == (290, 590)
        assert warmed.came(400, rested=True).experience == UNTAUGHT.after(400, rested=True)

    def test_it_carries_what_was_missed_until_an_edit_is_made(self) -> None:
        """Each call adds to it, an edit ends it."""
        economy = Economy().sent(0, 100_000, 100_000)
        first = economy.weigh(PROPOSAL, 10)
        economy = economy.weighed(first)
        assert economy.missed == first.missed > 0
        assert economy.weighed(economy.weigh(PROPOSAL, 10_000)).missed == 0

    def test_it_forgets_what_a_switch_of_model_makes_void(self) -> None:
        """The rhythm of the session stays known."""
        economy = Economy().sent(0, 100_000, 100_000).came(50, rested=True)
        forgotten = economy.forgot()
        assert (forgotten.cache, forgotten.missed) == (None, 0)
        assert forgotten.experience == economy.experience
        assert forgotten.weigh(PROPOSAL, 60).reason == "cold"

    def test_without_a_call_there_is_nothing_to_warm(self) -> None:
        """Before the first one, and after a switch."""
        assert Economy().warmings(rested=True) is None
        assert Economy().warmed(5) == Economy()

    def test_an_edit_that_waits_counts_in_the_plan(self) -> None:
        """The same through the fold as through the parts."""
        economy = Economy().sent(0, 100_000, 100_000, waiting=1_000)
        with_edit, without = economy.warmings(True, waiting=60_000), economy.warmings(True)
        assert with_edit is not None
        assert without is not None
        assert len(with_edit.times) < len(without.times)
