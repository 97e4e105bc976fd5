"""A few sessions with a provider in chaos; `benchmarks/soak_calls.py` runs many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos_runs import run

#: In these a false alarm of overflow, or a call that was retried and then refused, was once taken for more than it was.
ONCE_WRONG = (66, 67, 80, 91, 98)


@pytest.mark.parametrize("seed", [*range(40), *ONCE_WRONG])
async def test_a_session_in_chaos_stays_sound(tmp_path: Path, seed: int) -> None:
    """Every turn ends in an answer or an error in words, nothing is shown twice, no call and no cent is lost."""
    assert (await run(seed, tmp_path)).violations == []


async def test_a_seed_is_the_same_session_each_time(tmp_path: Path) -> None:
    """So that what went wrong can be looked at."""
    first, again = await run(8, tmp_path / "first"), await run(8, tmp_path / "again")
    assert first.figures == again.figures
    assert first.figures["faults"] > 0
