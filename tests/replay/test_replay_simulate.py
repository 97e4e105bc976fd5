"""What a trace costs: by hand on small ones, by law on random ones."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.economy import UNIT, Prices
from governors.tokens import ByteCounter
from runtime.errors import MoonwakeError
from runtime.replay import Call, Choice, Item, Trace, View, hindsight, policy_named, read_traces, simulate
from runtime.replay.policies import Moonwake, rule

from .traces import SEGMENTS, result, said, steady, traces

POLICIES = ("append-only", "append-only-1h", "every-call", "cold-only", "pays-15", "pays-15-warm-4", "moonwake")
WHOLE = tuple(name for name in POLICIES if name != "append-only-1h")


def of(name: str, trace: Trace, prices: Prices = UNIT) -> float:
    return simulate(trace, policy_named(name), prices).cost


class TestByHand:
    def test_a_warm_call_reads_the_last_request_and_writes_the_rest(self) -> None:
        """Two calls ten seconds apart."""
        trace = Trace("two", 1_000, (Call(0, (Item(100),), False), Call(10, (Item(50),), True)))
        first, second = simulate(trace, policy_named("append-only"), UNIT).rows
        assert (first.read, first.written, first.cost) == (0, 1_100, pytest.approx(1_375))
        assert (second.read, second.written, second.cost) == (1_100, 50, pytest.approx(172.5))

    def test_after_its_lifetime_the_cache_is_cold(self) -> None:
        """At the lifetime it is warm, later not; an hour's write lasts an hour."""
        for gap, name, read in ((300, "append-only", 1_000), (301, "append-only", 0), (301, "append-only-1h", 1_000)):
            trace = Trace("two", 1_000, (Call(0, (), True), Call(gap, (), True)))
            assert simulate(trace, policy_named(name), UNIT).rows[1].read == read

    def test_a_warming_reads_the_prefix_and_renews_the_lifetime(self) -> None:
        """Two warmings bridge a gap of thirteen minutes."""
        trace = Trace("two", 1_000, (Call(0, (), True), Call(780, (), True)))
        row = simulate(trace, policy_named("pays-15-warm-4"), UNIT).rows[1]
        assert (row.warmings, row.warmed, row.read) == (2, 2_000, 1_000)
        assert row.cost == pytest.approx(300)

    def test_warmings_that_nobody_came_back_for_are_told_apart(self) -> None:
        """They are no part of the cost, as the record does not say how long nobody came."""
        run = simulate(Trace("one", 1_000, (Call(0, (), True),)), policy_named("pays-15-warm-4"), UNIT)
        assert (run.cost, run.after) == (pytest.approx(1_250), pytest.approx(400))

    def test_every_call_leaves_the_newest_ten_results(self) -> None:
        """With eleven the first becomes a line, and all behind it is written anew."""
        row = simulate(steady(12), policy_named("every-call"), UNIT).rows[11]
        whole = 5_000 + 100 + 11 * 1_050
        assert row.prompt == whole - 980
        assert (row.read, row.broke) == (5_000 + 100 + 50, True)

    def test_results_that_a_line_would_not_shorten_stay(self) -> None:
        """There is nothing to save."""
        calls = tuple(Call(float(number), (Item(10, 10),), False) for number in range(20))
        assert not any(row.broke for row in simulate(Trace("tiny", 0, calls), policy_named("every-call"), UNIT).rows)

    def test_over_budget_the_oldest_go_at_a_boundary(self) -> None:
        """Never one of the newest ten results."""
        calls = [Call(float(10 * n), (said(500), result(1_000)), True) for n in range(40)]
        run = simulate(Trace("long", 2_000, tuple(calls)), policy_named("append-only"), UNIT, budget=20_000)
        assert max(row.prompt for row in run.rows) <= 20_000
        assert min(row.prompt for row in run.rows[12:]) >= 2_000 + 10 * 1_000

    def test_after_a_cut_forced_by_size_moonwake_has_room_again(self) -> None:
        """No two breaks in a row, where cutting to fit breaks the prefix on most calls."""
        calls = tuple(Call(float(10 * n), (said(1_500), Item(500)), True) for n in range(60))
        trace = Trace("chat", 2_000, calls)
        breaks = [row.broke for row in simulate(trace, policy_named("moonwake"), UNIT, budget=30_000).rows]
        assert sum(breaks) <= 10
        assert not any(one and other for one, other in pairwise(breaks))
        assert sum(row.broke for row in simulate(trace, policy_named("append-only"), UNIT, budget=30_000).rows) > 40


class TestLaws:
    @given(traces(), st.sampled_from(POLICIES), st.none() | st.integers(15_000, 80_000))
    def test_every_token_is_read_or_written(self, trace: Trace, name: str, budget: int | None) -> None:
        """And nothing is read that the last request did not hold."""
        rows = simulate(trace, policy_named(name), UNIT, budget=budget).rows
        held = 0
        for row in rows:
            assert row.read + row.written == row.prompt
            assert 0 <= row.read <= held
            assert row.cost > 0 or row.prompt == 0
            held = row.prompt

    @given(traces(), st.sampled_from(POLICIES))
    def test_a_replay_is_deterministic(self, trace: Trace, name: str) -> None:
        """Twice the same."""
        assert simulate(trace, policy_named(name), UNIT) == simulate(trace, policy_named(name), UNIT)

    @given(traces(most=40))
    def test_never_editing_sends_the_whole_history(self, trace: Trace) -> None:
        """Each prompt is the sum of all before."""
        added = [sum(item.tokens for item in call.items) for call in trace.calls]
        rows = simulate(trace, policy_named("append-only"), UNIT).rows
        assert [row.prompt - trace.base for row in rows] == list(accumulate(added))

    @settings(deadline=None)
    @given(traces(most=40), st.sampled_from(WHOLE))
    def test_nobody_is_cheaper_than_who_knows_the_future(self, trace: Trace, name: str) -> None:
        """Within what the schedule may choose."""
        assert hindsight(trace, UNIT) <= of(name, trace) * (1 + 1e-6) + 0.01

    @given(traces(most=8, results=6))
    def test_hindsight_is_the_best_of_all_schedules(self, trace: Trace) -> None:
        """Against trying each set of calls to edit at, with one lifetime and without warming."""
        prices = Prices(lifetimes=(300,), warming=False)
        best = min(
            simulate(trace, rule(_at(trace, chosen)), prices).cost for chosen in range(1 << (len(trace.calls) - 1))
        )
        assert hindsight(trace, prices) == pytest.approx(best)

    @given(traces(most=12))
    def test_more_freedom_is_never_dearer_in_hindsight(self, trace: Trace) -> None:
        """Edits, lifetimes and warmings each only help."""
        free = hindsight(trace, UNIT)
        for bound in (
            hindsight(trace, UNIT, edits=False),
            hindsight(trace, UNIT, warming=False),
            hindsight(trace, UNIT, lifetimes=(300,)),
        ):
            assert free <= bound + 1e-6

    def test_an_empty_trace_costs_nothing(self) -> None:
        """There is no call."""
        assert hindsight(Trace("none", 5, ()), UNIT) == 0


def _at(trace: Trace, chosen: int):  # type: ignore[no-untyped-def]  # a closure of the shape that `rule` takes
    times = {call.at for number, call in enumerate(trace.calls[1:]) if chosen >> number & 1}
    return lambda view, prices: view.now in times


class TestRecorded:
    """Three real sessions (sizes and times), and what is known of each policy on them."""

    def test_moonwake_is_cheaper_than_never_editing(self) -> None:
        """Over the three together; where it paid for an hour that was not used, by a few percent not."""
        recorded = read_traces([SEGMENTS], ByteCounter())
        runs = [simulate(trace, policy_named("moonwake"), UNIT) for trace in recorded]
        never = [of("append-only", trace) for trace in recorded]
        assert sum(run.cost for run in runs) < 0.95 * sum(never)
        assert all(run.cost < 1.03 * cost for run, cost in zip(runs, never, strict=True))
        assert sum(row.broke for run in runs for row in run.rows) <= 2

    def test_the_live_economy_decides(self) -> None:
        """The policy asks the fold that a session asks: its experience is there to see afterwards."""
        trace = read_traces([SEGMENTS], ByteCounter())[0]
        players = []

        def policy(prices: Prices, budget: int | None) -> Moonwake:
            players.append(Moonwake(prices, budget))
            return players[-1]

        simulate(trace, policy, UNIT)
        (player,) = players
        assert player.economy.experience.replies == 20 + len(trace.calls) - 1


def always(view: View) -> bool:
    return view.saved > 0


def when_cold(view: View) -> Choice:
    return Choice(edit=not view.warm)


class TestNames:
    def test_a_python_path_is_a_policy(self) -> None:
        """A function that gives a bool or a choice, or a class that makes players."""
        trace = steady(30)
        here = "tests.replay.test_replay_simulate"
        assert of(f"{here}:always", trace) == of("every-call", trace)
        assert of(f"{here}:when_cold", trace) == of("cold-only", trace)
        assert of("runtime.replay.policies:Moonwake", trace) == of("moonwake", trace)

    @pytest.mark.parametrize(
        "name", ["nothing", "pays", "pays-x", "pays-5-cool-3", "no.such:thing", "json:nothing", "json:__name__", ":"]
    )
    def test_an_unknown_policy_is_refused_by_name(self, name: str) -> None:
        """The error says which there are, or why the path fails."""
        with pytest.raises(MoonwakeError, match=name):
            policy_named(name)
