"""docs/caching.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from runtime.config.schema import EconomyConfig
from tests.inspecting.test_causes import EXPECTED

PAGE = (Path(__file__).parents[1] / "docs" / "caching.md").read_text(encoding="utf-8")
CODE = (Path(__file__).parents[1] / "runtime" / "inspecting" / "causes.py").read_text(encoding="utf-8")


def test_every_cause_has_its_row() -> None:
    rows = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert {cause for causes in EXPECTED.values() for cause in causes} <= rows
    returned = set(re.findall(r'return "([a-z -]+)", ', CODE)) | {"tool change", "system folded", "unexplained"}
    assert returned <= rows and rows - returned <= {"edit", "head", "redact", "provider", "hook:NAME", "rounding"}


def test_the_setting_is_what_the_page_says() -> None:
    assert "[economy]\nwarming = true" in PAGE
    assert EconomyConfig().warming is None
