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
