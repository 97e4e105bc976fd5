"""A few hundred turns on a small window; `benchmarks/long_conversation.py` runs thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.long_runs import Keeps, forgetful, keeping_all, run


@pytest.mark.parametrize("keeps", [keeping_all, forgetful], ids=["a summary keeps all", "a summary forgets"])
async def test_a_long_conversation_loses_nothing_and_stays_within_its_window(tmp_path: Path, keeps: Keeps) -> None:
    """No overflow, nothing illegal, room that lasts, a log that grows with the turns; what a summary loses is named,
    and read back."""
    it = await run(1, tmp_path, turns=100, facts=40, window=16_000, keeps=keeps)
    assert it.violations == []
    assert it.figures["compactions"] >= 4 and it.figures["cuts without a summary"] == 0
    if keeps is forgetful:
        assert it.figures["facts lost by summaries"] > 10 and it.figures["facts recalled"] > 10


async def test_a_fact_that_the_second_summary_loses_is_named(tmp_path: Path) -> None:
    """The receipt holds a summary to what the one before it kept, not only to what is folded now."""
    it = await run(2, tmp_path, turns=90, facts=20, window=16_000, keeps=lambda fact, times: times < 1)
    assert it.violations == [] and it.figures["facts named as dropped"] > 10
