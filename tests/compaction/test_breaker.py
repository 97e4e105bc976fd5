"""The breaker: opens after three, and always has a way back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.compaction.breaker import MOST, Breaker, breaker_from

BUDGET = 1000


def missed(times: int, tokens: int = 500, model: str = "m") -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker = breaker.missed(tokens, model)
    return breaker


def test_three_in_a_row_open_it() -> None:
    """And one that made room in between begins the count anew."""
    assert [missed(times).open for times in range(5)] == [False, False, False, True, True]
    assert not missed(2).succeeded().missed(1, "m").missed(1, "m").open


def test_it_closes_when_the_user_spoke_and_the_request_grew() -> None:
    """Neither alone is enough: else a turn that goes on would try for ever, or never again."""
    opened = missed(MOST, 500)
    assert opened.at(700, BUDGET, "m").open
    assert opened.heard().at(599, BUDGET, "m").open
    assert not opened.heard().at(600, BUDGET, "m").open


def test_it_closes_at_the_budget_however_large_the_request_was_when_it_opened() -> None:
    """The fault of the breaker that wanted more growth than there is room for."""
    opened = missed(MOST, BUDGET - 10).heard()
    assert opened.at(BUDGET - 1, BUDGET, "m").open
    assert not opened.at(BUDGET, BUDGET, "m").open


def test_another_model_closes_it() -> None:
    """It may have another window, and other habits."""
    assert not missed(MOST).at(500, BUDGET, "n").open


states = st.builds(missed, st.integers(0, 6), st.integers(0, 10**6), st.sampled_from("mn"))


@given(states, st.booleans())
def test_it_comes_back_from_the_log_as_it_was(breaker: Breaker, spoken: bool) -> None:
    """So that a resumed session goes on counting."""
    breaker = breaker.heard() if spoken else breaker
    assert breaker_from(breaker.as_json()) == (breaker if breaker.misses else Breaker())


@given(states)
def test_there_is_always_a_way_back(breaker: Breaker) -> None:
    """The fault of the guard that switched compaction off for good."""
    assert not breaker.heard().at(breaker.tokens + BUDGET, BUDGET, breaker.model).open


@given(st.dictionaries(st.sampled_from(["misses", "tokens", "model", "spoken"]), st.integers() | st.text() | st.none()))
def test_what_is_no_breaker_is_a_closed_one(value: dict[str, object]) -> None:
    """A log that somebody else wrote opens nothing by accident."""
    breaker = breaker_from(value)
    assert breaker == Breaker() or (breaker.misses, breaker.tokens) == (value["misses"], value["tokens"])
