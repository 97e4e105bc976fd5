"""The page about hooks: its code is run, its table has every point, its settings are settings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from runtime import Call, Reply
from runtime.config import load_config
from runtime.hooks.contract import POINTS
from runtime.session.entries import EditRecord, ExtensionRecord, IntentRecord, RequestRecord, SystemRecord
from tests.agents import talk
from tests.agents_again import assert_every_request_is_made_again

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")


def page() -> dict[str, Any]:
    """What the code of the page makes, from the first block to the last."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)  # the page's own code
    return names


async def test_the_hooks_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    """All of them together, in one conversation; every request follows from the log."""
    names = page()
    (tmp_path / "notes.txt").write_text("the password is hunter2\n")
    calls = [Call("read_file", {"path": "private/diary.txt"}), Call("read_file", {"path": "notes.txt"})]
    script = [Reply("", calls), "Roses are red.", "It rains."]
    async with talk(tmp_path, script, hooks=names["HOOKS"]) as it:
        await it.say("a poem about my notes")
        await it.say("how is the weather?")
        refused, read = it.records(IntentRecord)
        assert (refused.hook, read.hook) == ("careful", "careful")
        assert read.arguments == '{"path": "notes.txt", "limit": 50}'
        assert "Refused by the hook careful, and nothing was done: the folder private/" in str(it.bodies[1])
        assert "Answer in verse." in str(it.bodies[0])
        assert [record.cause for record in it.records(SystemRecord)] == ["hook:tone", "hook:tone"]
        assert "hunter2" not in str(it.bodies) and "*******" in str(it.bodies[1])
        assert {edit.cause for edit in it.records(EditRecord)} == {"hook:veil"}
        (rain,) = it.records(ExtensionRecord)
        assert rain.name == "veil"
        assert {change.path for record in it.records(RequestRecord) for change in record.changes} == {"/metadata"}
        assert_every_request_is_made_again(it)
        session = it.agent.session.id
    assert [(each, cost is not None) for each, cost in names["COSTS"]] == [(session, True)] * 2


def test_every_point_has_its_row() -> None:
    (table,) = re.findall(r"\| function \|.*?\n\n", PAGE, re.DOTALL)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(POINTS)


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    package, settings = map(tomllib.loads, re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    assert list(package["project"]["entry-points"]) == ["moonwake.hooks"]
    file = tmp_path / "user.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    config = load_config(tmp_path, {}, {}, file)
    assert config.hooks.trust == tuple(settings["hooks"]["trust"])
