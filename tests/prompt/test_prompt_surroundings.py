"""What skills need of the machine is part of what a prompt rests on, and costs a hit a few looks and no file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from runtime.skills import SkillRoot, collect_skills, parse_skill, read_skill_file
from runtime.workspace import Workspace, read_text
from tests.prompts import TOOLS, age, builder_of, count_opens, text_of, write_skill


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is on the path, alone."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_a_program_is_seen_to_come_and_go(workspace: Workspace, programs: Path) -> None:
    """Nothing else changes; a hit opens no file whether the program is there or not."""
    write_skill(workspace, "paint", "metadata:\n  requires-any-bins: brush roller")
    builder = builder_of(workspace)
    age(workspace.root.parent)
    for there in (False, True, False):
        if there:
            install(programs, "roller")
        else:
            (programs / "roller").unlink(missing_ok=True)
        assert ("- paint:" in text_of(builder, "skills")) is there
        age(programs)
        builder.build("terminal", TOOLS)
        prompt = builder.build("terminal", TOOLS)
        assert count_opens(lambda: builder.build("terminal", TOOLS)) == 0
        assert builder.build("terminal", TOOLS) is prompt


def test_a_variable_and_a_path_are_seen_to_change(
    workspace: Workspace, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only variables that skills name matter, and the path."""
    write_skill(workspace, "mail", "metadata:\n  requires-env: MAIL_KEY_OF_A_TEST")
    write_skill(workspace, "paint", "metadata:\n  requires-bins: brush")
    builder = builder_of(workspace)
    age(workspace.root.parent)
    builder.build("terminal", TOOLS)
    prompt = builder.build("terminal", TOOLS)
    monkeypatch.setenv("ANOTHER_OF_A_TEST", "x")
    assert builder.build("terminal", TOOLS) is prompt and "mail" not in text_of(builder, "skills")
    monkeypatch.setenv("MAIL_KEY_OF_A_TEST", "x")
    assert "mail" in text_of(builder, "skills") and "paint" not in text_of(builder, "skills")
    other = workspace.root.parent / "other"
    other.mkdir()
    install(other, "brush")
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), str(other)]))
    assert "paint" in text_of(builder, "skills")


def test_a_package_is_seen_to_come(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of `sys.path` in which it turns up is one that the prompt rests on."""
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    write_skill(workspace, "paint", "metadata:\n  requires-python: paint_of_a_test")
    builder = builder_of(workspace)
    age(workspace.root.parent)
    assert "paint" not in text_of(builder, "skills")
    (packages / "paint_of_a_test.py").write_text("")
    assert "paint" in text_of(builder, "skills")


def test_a_skill_is_parsed_once_as_long_as_its_text_is_kept(tmp_path: Path) -> None:
    """The same text at the same place is the same skill; what is said of it cannot be changed by whoever got it."""
    text, file = "---\nname: other\ndescription: d\n---\nBody.", tmp_path / "one" / "SKILL.md"
    skill, faults = parse_skill(text, file, "user")
    assert faults
    faults.clear()
    again = parse_skill(text, file, "user")
    assert again[0] is skill and again[1]
    assert parse_skill(text, file, "workspace")[0] is not skill


def test_shipped_skills_may_be_links_and_others_may_not_lead_out(tmp_path: Path) -> None:
    """Some installers make links into a store; in a workspace a link could show any file of the machine."""
    store, folder = tmp_path / "store", tmp_path / "installed" / "paint"
    store.mkdir()
    folder.mkdir(parents=True)
    for name, text in (("SKILL.md", "---\nname: paint\ndescription: d\n---\nBody."), ("more.md", "More.")):
        (store / name).write_text(text)
        (folder / name).symlink_to(store / name)
    for root in (SkillRoot("shipped", folder.parent), SkillRoot("workspace", folder.parent)):
        content = read_text(folder / "SKILL.md", 1_000, root.inside)
        skills = collect_skills([(root, folder / "SKILL.md", content)]).all
        if root.source == "shipped":
            assert [skill.name for skill in skills] == ["paint"]
            assert read_skill_file(skills[0], "more.md").text == "More."
        else:
            assert skills == () and content.problem and "leads out" in content.problem
