"""The plug is pulled: the soak program, for a few rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak_log.py"


def test_killing_the_writer_loses_nothing_acknowledged() -> None:
    """Twenty kills at random moments: every session opens, holds what was acknowledged, and goes on."""
    run = subprocess.run(
        [sys.executable, str(SOAK), "--seeds", "0:20"], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("20 kills") and " 0 lost" in run.stdout
