"""The laws of the governor over random conversations that grow; `benchmarks/soak_governors.py` runs many more."""

from __future__ import annotations

import pytest

from governors.wire import WIRES
from tests.governor_runs import FIGURES, Run
from tests.governor_trials import Trial, trial_of
from tests.growing import story


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_conversations_keep_every_law(first: int) -> None:
    """Legal, paired, stable, rebuilt the same, idempotent, recallable, within budget: see `governor_laws.py`."""
    runs = [Run(seed) for seed in range(first, first + 50)]
    assert [violation for run in runs for violation in run.violations] == []
    assert all(sum(run.figures()[name] for run in runs) for name in FIGURES)


def test_a_seed_is_a_history() -> None:
    """The same seed tells the same story and decides the same."""
    one, two = Run(7), Run(7)
    assert one.raw == two.raw and one.decisions == two.decisions
    assert [list(view) for view, _ in one.snapshots] == [list(view) for view, _ in two.snapshots]


@pytest.mark.parametrize("wire", WIRES)
def test_every_prefix_of_a_long_conversation_is_a_request(wire: str) -> None:
    """Fed message by message, as the traces are."""
    from random import Random

    told = story(Random(3), 150, model=None, wire=wire)
    found = trial_of(Trial("a story", wire, 20_000, tuple(told.messages)))
    assert found.violations == []
    assert found.edits and found.requests > 100
