"""docs/testing.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from governors.messages import StopReason, Usage
from runtime.providers.base import ProblemKind
from runtime.providers.chaos import FAULTS
from runtime.providers.scripts import parse_script

PAGE = (Path(__file__).parents[1] / "docs" / "testing.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section(title), re.MULTILINE)


def _tests() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)  # the page's own code
    return {name: value for name, value in names.items() if name.startswith("test_")}


@pytest.mark.parametrize("name", _tests())
async def test_the_tests_of_the_page_pass(name: str, tmp_path: Path) -> None:
    await _tests()[name](tmp_path)


def test_the_script_of_the_page_is_one() -> None:
    (script,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    play = parse_script(script)
    assert len(play.replies) == 3 and play.otherwise is not None
    assert play.replies[0].calls and play.replies[1].usage == Usage(plain=1200, cache_read=900, output=12)
    assert play.replies[2].wait == 2.0 and play.replies[2].error is not None


def test_every_part_has_its_row_in_order() -> None:
    named = [row.split()[0] for row in rows("Scripts in plain text")]
    for part in named[:-1]:
        head = "" if part in ("@reply", "@otherwise") else "@reply\n"
        rest = {"@wait": "1", "@call": "f", "@raw-call": "f x", "@stop": "stop", "@error": "auth"}.get(part, "")
        parse_script(f"{head}{part} {rest}")
    with pytest.raises(Exception, match=r"Known: " + " ".join(sorted(named[:2], reverse=True))):
        parse_script("@x")
    with pytest.raises(Exception, match=" ".join(named[2:-1]) + "$"):
        parse_script("@reply\n@stop stop\n@wait 1")
    table = section("Scripts in plain text")
    for name in (*get_args(StopReason), *get_args(ProblemKind), *Usage.__dataclass_fields__):
        assert f"`{name}`" in table


def test_every_fault_has_its_row() -> None:
    assert tuple(rows("Chaos")) == FAULTS
