"""The examples run as they stand, without a key and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "hello.py": ["Hello! I am a script", "[done]"],
    "hooks.py": ["I was told to wait.", "watched: Good night."],
    "rehearsal.py": ["The note says that the moon is full.", "faults: {'cut': 1, 'overloaded': 1}"],
    "own_tool.py": ["-> moon_phase", "<- on 2026-12-24 the moon is about", "done"],
    "govern_a_list.py": ["violations: ()", "outcome is unknown"],
    "plain_openai.py": ["snip: the oldest messages left out, because the request had"],
    "growing_conversation.py": ["because the cache was cold", "because it pays", "messages again"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    for text in SAYS[example.name]:
        assert text in done.stdout
