"""What docs/prompt.md says is what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from runtime.prompt import layers, pressure
from runtime.prompt.fingerprint import SETTLE_NS
from runtime.prompt.parents import MARKERS
from runtime.sections import place

PAGE = (Path(__file__).parents[2] / "docs" / "prompt.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees the file that it writes."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)  # the page's own code
    assert list(names["changes"]) == ["AGENTS.md"]
    assert "Tests first." in names["text"]


def test_limits_and_figures_of_the_page_are_the_code_s() -> None:
    """A changed limit changes the page."""
    for name, limit in layers.FILE_LIMITS.items():
        (row,) = re.findall(rf"^\|.*`{re.escape(name)}`.*\| ([\d,]+) \|$", PAGE, re.MULTILINE)
        assert row == f"{limit:,}"
    for limit in (layers.MEMORY_LIMIT, layers.ALWAYS_LIMIT, layers.LIST_LIMIT):
        assert f"| {limit:,} |" in PAGE
    assert all(f"`{marker}`" in PAGE for marker in MARKERS)
    assert f"{pressure.LEAST:,}" in PAGE
    assert f"{pressure.CALM:.0%}".replace("%", " %") in PAGE
    assert (pressure.SHARE, pressure.TOKEN_BYTES, SETTLE_NS) == (0.25, 3, 50_000_000)


def test_the_table_of_layers_is_in_order() -> None:
    """Sections stand on the page as they stand in the prompt."""
    table = PAGE.split("## Five layers")[1].split("\n\n")[1]
    cells = [line.split("|")[2] for line in table.splitlines()[2:]]
    names = [name.replace("NAME", "x") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert names == sorted(names, key=place)
    assert len(names) == 11
