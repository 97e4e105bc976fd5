"""A few processes killed while they make room; `benchmarks/soak_compaction.py` kills hundreds."""

from __future__ import annotations

from benchmarks.soak_compaction import main


def test_a_process_killed_while_it_makes_room_leaves_the_session_before_or_after() -> None:
    """Never between, and nothing promised is lost."""
    assert main(["--seeds", "1:4"]) == 0
