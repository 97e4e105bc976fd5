"""docs/exporting.md: its program runs, its commands and options are there, its JSON has the names that it tells."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from runtime.exports import to_jsonl
from runtime.session.index.listing import Find, SessionInfo
from runtime.session_commands import sessions

from .growing_logs import HEADER
from .test_files import a_turn

PAGE = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And writes what it says."""
    session = tmp_path / "sessions" / "assistant" / "demo.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(to_jsonl(HEADER, a_turn().tree.entries))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    page: dict[str, Any] = {}
    exec(code, page)  # the page's own code
    page["save"](session, tmp_path)
    assert [each.name for each in sorted(tmp_path.glob("talk.*"))] == ["talk.html", "talk.jsonl", "talk.md"]
    assert capsys.readouterr().out == "3 steps\n0.01 US dollars\n4 messages that a model would see now\n"


def test_every_command_and_option_is_on_the_page_and_none_besides() -> None:
    """The table of commands tells what there is."""
    command: Any = typer.main.get_command(sessions)
    for name, each in command.commands.items():
        assert f"`{name}" in PAGE, name
        for option in (flag for parameter in each.params for flag in parameter.opts if flag.startswith("--")):
            if option not in ("--workspace", "--help"):
                assert option in PAGE, option
    table = PAGE.split("## Commands")[1].split("## Formats")[0]
    known = {flag for each in command.commands.values() for parameter in each.params for flag in parameter.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", table)) <= known


@pytest.mark.parametrize("kind", [SessionInfo, Find])
def test_names_in_the_json_are_told(kind: type) -> None:
    """All of them."""
    told = PAGE.split("## JSON")[1]
    assert all(field.name in told for field in fields(kind))
