"""When a compaction is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.compaction.breaker import Breaker
from runtime.compaction.timing import Load, Marks, Timing, made_room, wanted

MARKS = Marks()
OPEN = Breaker(3, 100, "m")


def load(tokens: int, *, fixed: int = 100, messages: int = 10, known: bool = True) -> Load:
    return Load(tokens, fixed, 1000, messages, known)


@pytest.mark.parametrize("timing", ["before_turn", "mid_turn"])
def test_tokens_decide_before_a_call(timing: Timing) -> None:
    """From the higher mark on, however many messages those are."""
    assert wanted(load(849, messages=500), MARKS, timing, Breaker()) is None
    assert wanted(load(850), MARKS, timing, Breaker()) == "full"


def test_while_nobody_waits_the_lower_mark_counts_on_a_cold_cache() -> None:
    """The cheap moment: what is folded would have to be written anew in any case."""
    assert wanted(load(500), MARKS, "idle", Breaker(), cold=True) == "cold"
    assert wanted(load(500), MARKS, "idle", Breaker()) is None
    assert wanted(load(499), MARKS, "idle", Breaker(), cold=True) is None
    assert wanted(load(900), MARKS, "idle", Breaker()) == "full"


def test_messages_count_only_while_nobody_waits() -> None:
    """And by themselves only where nobody knows the window."""
    assert wanted(load(300, messages=51), MARKS, "idle", Breaker()) is None
    assert wanted(load(500, messages=51), MARKS, "idle", Breaker()) == "messages"
    assert wanted(load(300, messages=51, known=False), MARKS, "idle", Breaker()) == "messages"
    assert wanted(load(300, messages=51, known=False), MARKS, "before_turn", Breaker()) is None


@pytest.mark.parametrize("timing", ["before_turn", "mid_turn", "idle"])
def test_an_open_breaker_and_a_floor_above_the_mark_want_nothing(timing: Timing) -> None:
    """The fault of the compaction after each call that frees nothing."""
    assert wanted(load(990), MARKS, timing, OPEN, cold=True) is None
    assert wanted(load(900, fixed=900), MARKS, timing, Breaker(), cold=True) is None


def test_by_hand_it_is_always_made() -> None:
    """Whatever the breaker says."""
    assert wanted(load(10), MARKS, "manual", OPEN) == "asked"


@pytest.mark.parametrize("marks", [{"block": 1.0}, {"idle": 0.9}, {"idle": 0.0}, {"messages": 25}, {"keep": 0}])
def test_marks_that_could_never_be_reached_are_refused(marks: dict[str, float]) -> None:
    """The fault of the threshold that equals the window."""
    with pytest.raises(ValueError, match=r"marks|folded"):
        Marks(**marks)  # type: ignore[arg-type] # whole numbers where those are meant


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 200), st.booleans(), st.booleans())
def test_what_made_room_wants_no_other_before_a_call(
    tokens: int, fixed: int, messages: int, known: bool, cold: bool
) -> None:
    """The two judge by the same mark."""
    here = Load(tokens, fixed, 1000, messages, known)
    if made_room(here, MARKS):
        assert wanted(here, MARKS, "before_turn", Breaker(), cold=cold) is None
        assert wanted(here, MARKS, "mid_turn", Breaker(), cold=cold) is None
