"""Random conversations through a whole runtime against strict servers: nothing that leaves is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strict.conversation import WIRES, hold

SEEDS = 3  # `benchmarks/soak_wires.py` has hundreds


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("wire", WIRES)
async def test_nothing_is_refused(tmp_path: Path, wire: str, seed: int) -> None:
    """Tools in every odd way, people who interrupt, steer, undo and switch: each request is a legal one."""
    report = await hold(seed, wire, tmp_path, turns=5)
    assert report.wrong == []
    assert report.done["requests"] > 4


@pytest.mark.parametrize(("wire", "seed"), [("anthropic", 3), ("openai_chat", 1), ("openai_responses", 0)])
async def test_a_window_that_is_smaller_than_the_catalog_says_ends_no_conversation(
    tmp_path: Path, wire: str, seed: int
) -> None:
    """Some hosts tell it in numbers, some in words only; what is made smaller for it is still legal."""
    report = await hold(seed, wire, tmp_path, turns=6, small=3_800)
    assert report.wrong == []
    assert report.done["overflows"] > 0
    assert report.done["ended stop"] > report.done["ended error"]
