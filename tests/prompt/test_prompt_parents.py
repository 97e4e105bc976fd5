"""AGENTS.md of the folders above: which count, in which order, and that each change of them is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.prompt.builder import PromptBuilder
from runtime.prompt.parents import MARKERS, parent_folders
from runtime.sections import diff, parent_agents, place
from runtime.workspace import Workspace, open_workspace
from tests.prompts import TOOLS, age, builder_of, count_opens, names, text_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository `home/repository` with AGENTS.md on each level down to the workspace `home/repository/a/b`."""
    root = tmp_path / "home" / "repository"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    for name, folder in (("home", root.parent), ("top", root), ("middle", root / "a"), ("own", root / "a" / "b")):
        (folder / "AGENTS.md").write_text(f"{name} rules")
    age(tmp_path)
    return root


def builder_at(project: Path) -> PromptBuilder:
    return PromptBuilder(open_workspace(project / "a" / "b"), home=project.parent)


def test_parents_come_farthest_first_up_to_the_project_root(project: Path) -> None:
    """Each is a section of its own, named by its path; what lies above the project does not count."""
    builder = builder_at(project)
    assert names(builder)[:4] == ["identity", "../../AGENTS.md", "../AGENTS.md", "AGENTS.md"]
    assert text_of(builder, "../../AGENTS.md") == "top rules"
    assert text_of(builder, "../AGENTS.md") == "middle rules"
    assert names(builder) == sorted(names(builder), key=place)


@pytest.mark.parametrize("marker", MARKERS)
def test_the_nearest_root_bounds_the_search(project: Path, marker: str) -> None:
    """A root between the workspace and another root is the project's, also when the marker comes in mid-session."""
    builder = builder_at(project)
    assert "../../AGENTS.md" in names(builder)
    (project / "a" / marker).write_text("")
    assert names(builder)[:3] == ["identity", "../AGENTS.md", "AGENTS.md"]


def test_without_a_root_nothing_above_counts(project: Path) -> None:
    """A folder that belongs to no project is not told what lies around it."""
    (project / ".git").rmdir()
    assert names(builder_at(project))[:2] == ["identity", "AGENTS.md"]


def test_a_workspace_under_version_control_is_its_own_project(project: Path) -> None:
    """Its own settings file, which every workspace has, does not make it one."""
    (project / "a" / "b" / "moonwake.toml").write_text("")
    assert "../AGENTS.md" in names(builder_at(project))
    (project / "a" / "b" / ".git").write_text("gitdir: elsewhere")
    assert "../AGENTS.md" not in names(builder_at(project))


def test_nothing_above_the_home_folder_counts(project: Path) -> None:
    """A project that begins above the user's home is not theirs."""
    workspace = open_workspace(project / "a" / "b")
    assert "../AGENTS.md" not in names(PromptBuilder(workspace, home=project / "a"))
    assert "../AGENTS.md" not in names(PromptBuilder(workspace, home=workspace.root))
    (project.parent / ".git").mkdir()
    (project / ".git").rmdir()
    assert text_of(builder_at(project), "../../../AGENTS.md") == "home rules"  # the home folder itself may be one


def test_a_folder_that_anybody_writes_to_ends_the_search(project: Path) -> None:
    """A stranger could have put both the root and the file there."""
    (project / "a").chmod(0o777)
    assert names(builder_at(project))[:2] == ["identity", "AGENTS.md"]


def test_a_new_a_changed_and_a_deleted_parent_are_seen(project: Path) -> None:
    """Each costs its own section and nothing else."""
    builder = builder_at(project)
    middle = project / "a" / "AGENTS.md"
    before = builder.build("terminal", TOOLS).sections
    middle.unlink()
    without = builder.build("terminal", TOOLS).sections
    assert diff(before, without) == {"../AGENTS.md": None}
    middle.write_text("new rules")
    assert list(diff(without, builder.build("terminal", TOOLS).sections)) == ["../AGENTS.md"]
    middle.write_text("newer rules")
    assert text_of(builder, "../AGENTS.md") == "newer rules"
    (project / "a").rename(project / "c")
    assert builder.build("terminal", TOOLS).sections  # the workspace has gone; nothing fails


def test_a_hit_opens_nothing_above_either(project: Path) -> None:
    """Folders above are told by their stamps alone."""
    builder = builder_at(project)
    age(project.parent)
    first = builder.build("terminal", TOOLS).sections
    assert count_opens(lambda: builder.build("terminal", TOOLS)) == 0
    assert builder.build("terminal", TOOLS).sections is first


def test_an_untouched_template_above_says_nothing_twice(workspace: Workspace) -> None:
    """A workspace inside another one does not repeat what both were given."""
    inner = workspace.root / "inner"
    inner.mkdir()
    outer = workspace.root.parent
    assert names(PromptBuilder(open_workspace(inner), home=outer))[:2] == ["identity", "skills"]
    (workspace.root / "AGENTS.md").write_text("Mine.")
    assert text_of(PromptBuilder(open_workspace(inner), home=outer), "../AGENTS.md") == "Mine."


def test_a_link_out_of_its_folder_is_not_followed(project: Path) -> None:
    """A parent's file is read from that parent only."""
    (project / "a" / "AGENTS.md").unlink()
    (project / "a" / "AGENTS.md").symlink_to(project.parent / "AGENTS.md")
    prompt = builder_at(project).build("terminal", TOOLS)
    assert "home rules" not in "".join(section.text for section in prompt.sections)
    assert any("leads out of" in warning for warning in prompt.warnings)


def test_a_long_file_above_names_no_tool_that_cannot_reach_it(project: Path) -> None:
    """`read_file` stays within the workspace, so the note does not offer it."""
    (project / "AGENTS.md").write_text("word " * 20_000)
    text = text_of(builder_at(project), "../../AGENTS.md")
    assert text.endswith("of a file of 100,000 bytes]")


def test_every_folder_is_watched_before_it_is_looked_into(project: Path) -> None:
    """What decides the answer is among what the fingerprint holds."""
    watched: list[Path] = []
    found = parent_folders(project / "a" / "b", project.parent, watched.append)
    assert found == (project / "a", project)
    assert watched == [project / "a" / "b", project / "a", project]


def test_names_of_parents() -> None:
    """A section's name is the path from the workspace."""
    assert parent_agents(2) == "../../AGENTS.md"
    ordered = [parent_agents(11), parent_agents(2), parent_agents(1), "AGENTS.md", "SOUL.md"]
    assert sorted(set(ordered), key=place) == ordered


def test_builders_look_up_to_the_home_of_the_user_by_default(workspace: Workspace) -> None:
    """Without a home of its own a builder takes the process's."""
    assert names(PromptBuilder(workspace)) == names(builder_of(workspace))
