"""How much of a window a request may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.budget import Budget
from governors.errors import ContextOverflow, GovernorError, IllegalPayload, ImpossibleBudget
from governors.wire.base import Violation


@given(st.integers(1, 2_000_000), st.integers(1, 200_000), st.one_of(st.none(), st.integers(0, 100_000)))
def test_fault_a_threshold_that_never_fires(window: int, max_output: int, margin: int | None) -> None:
    """What a request may take is less than the window and more than nothing, or the budget is refused."""
    try:
        budget = Budget(window, max_output, margin)
    except ImpossibleBudget as error:
        assert window - max_output < 1_024 + window * 0.025 + (margin or 0)
        assert f"{window:,}" in str(error)
    else:
        assert 0 < budget.tokens < window
        assert budget.tokens + max_output + budget.reserve == window


@pytest.mark.parametrize(
    ("window", "reserve"),
    [(2_048, 64), (8_192, 204), (32_767, 819), (32_768, 1_024), (64_000, 1_600), (200_000, 5_000)],
)
def test_the_margin_grows_with_the_window(window: int, reserve: int) -> None:
    """2.5 %, at least 64 tokens, from a 32k window on at least 1,024."""
    assert Budget(window, 512).reserve == reserve
    assert Budget(window, 512, margin=7).tokens == window - 512 - 7


@pytest.mark.parametrize("figures", [(0, 1, None), (1_000, 0, None), (1_000, 10, -1), (1_000, 1_000, 0)])
def test_figures_that_make_no_sense_are_refused(figures: tuple[int, int, int | None]) -> None:
    """As a ValueError that says what to do."""
    with pytest.raises(ImpossibleBudget) as caught:
        Budget(*figures)
    assert isinstance(caught.value, ValueError)


def test_errors_carry_their_numbers() -> None:
    """A person can see what to shorten, and by how much."""
    overflow = ContextOverflow(window=8_192, budget=6_000, system=1_000, tools=2_000, turn=4_500)
    assert "7,500" in str(overflow) and "6,000" in str(overflow) and "8,192" in str(overflow)
    violations = tuple(Violation("A2", "E", f"messages[{n}]", "is wrong") for n in range(7))
    illegal = IllegalPayload("anthropic", violations)
    assert "A2 at messages[4]: is wrong (and 2 more)" in str(illegal)
    assert str(IllegalPayload("anthropic", violations[:1])).endswith("A2 at messages[0]: is wrong")
    for error in (overflow, illegal):
        assert isinstance(error, GovernorError)
        assert len({error}) == 1  # as keys, which traceback and group handling may need
