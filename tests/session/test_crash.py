"""The plug is pulled: the soak program, for a few rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak_log.py"


def test_killing_the_writer_loses_nothing_acknowledged() -> None:
    """Kills at random moments, power losses and refusing disks: every session opens and holds what was acknowledged.

    And two processes that open one session at the same moment do not write into each other's lines.
    """
    run = subprocess.run(
        [sys.executable, str(SOAK), "--seeds", "0:16", "--locks", "5"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("16 kills (4 alone, 4 many, 4 power, 4 refusing)")
    assert " 0 lost, 0 sessions did not open" in run.stdout and " 0 interleavings" in run.stdout
