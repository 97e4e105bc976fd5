"""A short year of random changes; `benchmarks/prompt_year.py` runs a long one and prints what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.prompt_year import Year


@pytest.mark.parametrize("seed", [11, 12])
def test_what_is_shown_is_what_was_written_and_costs_its_own_size(tmp_path: Path, seed: int) -> None:
    """After each of 120 edits the log shows the files and tools as they are; telling it costs a fraction of folding."""
    year = Year(tmp_path, seed)
    year.run(120)
    bills = year.bills
    frozen = bills["frozen"].written
    assert year.heads and year.hits and year.shed and year.patched > 60
    assert (bills["patches"].written - frozen) * 20 < bills["folding"].written - frozen
    assert bills["patches"].paid < bills["patches, array grows"].paid < bills["folding"].paid
