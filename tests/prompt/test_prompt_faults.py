"""Whatever is wrong with a file, or with the template, costs its own section only, and is told once."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.prompt.builder import PromptBuilder
from runtime.prompt.identity import PLAIN_IDENTITY
from runtime.workspace import MEMORY_FILE, Workspace
from tests.prompts import TOOLS, age, builder_of, count_opens, names, text_of, write_skill


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(10 * 1024**3)


def long_text(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(b"word " * 50_000)
        stream.truncate(10 * 1024**3)


def loop(path: Path) -> None:
    other = path.with_name("other")
    other.symlink_to(path)
    path.symlink_to(other)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # an address has at most 107 bytes


def rubbish(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x80 text")


@pytest.mark.parametrize(
    "break_it", [sparse, loop, pipe, listener, rubbish, Path.mkdir], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("name", ["AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", MEMORY_FILE, "skills/mine/SKILL.md"])
def test_a_broken_file_costs_its_section_and_a_warning(
    workspace: Workspace, name: str, break_it: Callable[[Path], None]
) -> None:
    """The rest is byte for byte as without the file."""
    file = workspace.root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    rest = builder_of(workspace).build("terminal", TOOLS).sections
    break_it(file)
    builder = builder_of(workspace)
    prompt = builder.build("terminal", TOOLS)
    assert prompt.sections == rest
    assert len(prompt.warnings) == len([each for each in prompt.warnings if str(file) in each]) == 1
    assert len(prompt.failed) == 1
    assert builder.build("terminal", TOOLS).warnings == ()


def test_ten_gigabytes_of_text_are_cut(workspace: Workspace) -> None:
    """Only what may be shown is read of it."""
    long_text(workspace.root / "AGENTS.md")
    builder = builder_of(workspace)
    prompt = builder.build("terminal", TOOLS)
    assert "word word" in text_of(builder, "AGENTS.md")
    assert "[cut here" in text_of(builder, "AGENTS.md")
    assert any("10,737,418,240 bytes" in warning for warning in prompt.warnings)


def test_a_file_that_may_be_read_again_is_seen(workspace: Workspace) -> None:
    """A refusal is no content: it is tried again, and what comes is shown."""
    file = workspace.root / "SOUL.md"
    file.unlink()
    loop(file)
    builder = builder_of(workspace)
    assert builder.build("terminal", TOOLS).failed == {"SOUL.md"}
    file.unlink()
    file.write_text("Calm again.")
    assert text_of(builder, "SOUL.md") == "Calm again."
    assert builder.build("terminal", TOOLS).failed == frozenset()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Nothing can be opened inside, as in a process that has too many files open; stat calls work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_refusal_that_leaves_no_trace_in_a_stamp_is_tried_again(workspace: Workspace) -> None:
    """Out of descriptors once, nothing is lost for good: neither files nor the list of skills."""
    whole = builder_of(workspace).build("terminal", TOOLS)
    builder = builder_of(workspace)
    with no_descriptors():
        without = builder.build("terminal", TOOLS)
    assert without.failed >= {"AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "memory/project", "skills", "skill/"}
    assert [section.name for section in without.sections] == ["identity", "runtime"]
    assert builder.build("terminal", TOOLS).sections == whole.sections


def test_a_file_put_in_the_place_of_another_is_seen(workspace: Workspace) -> None:
    """Equal in size and time, it differs in its inode."""
    file, other = workspace.root / "SOUL.md", workspace.root / "other"
    file.write_text("one")
    other.write_text("two")
    age(workspace.root.parent)
    builder = builder_of(workspace)
    assert text_of(builder, "SOUL.md") == "one"
    other.rename(file)
    assert text_of(builder, "SOUL.md") == "two"


def test_a_change_of_mode_is_seen(workspace: Workspace) -> None:
    """Permission changes neither time, size nor inode."""
    builder = builder_of(workspace)
    first = builder.build("terminal", TOOLS).sections
    (workspace.root / "SOUL.md").chmod(0o600)
    assert count_opens(lambda: builder.build("terminal", TOOLS)) == 1
    assert builder.build("terminal", TOOLS).sections == first


def test_a_folder_of_skills_that_is_a_file_or_a_loop(workspace: Workspace) -> None:
    """The shipped skills stand; a root that is no folder has none."""
    workspace.skills.write_text("no folder")
    assert "skills" in names(builder_of(workspace))
    workspace.skills.unlink()
    workspace.skills.symlink_to(workspace.skills)
    prompt = builder_of(workspace).build("terminal", TOOLS)
    assert prompt.failed == {"skills", "skill/"}
    assert "skills" in {section.name for section in prompt.sections}


def test_renamed_folders_of_skills_are_seen(workspace: Workspace) -> None:
    """A skill goes with its folder, and comes back with it."""
    write_skill(workspace, "mine")
    builder = builder_of(workspace)
    assert "- mine:" in text_of(builder, "skills")
    workspace.skills.rename(workspace.root / "away")
    assert "- mine:" not in text_of(builder, "skills")
    (workspace.root / "away").rename(workspace.skills)
    assert "- mine:" in text_of(builder, "skills")


@pytest.mark.parametrize(
    "template", ["{% if %}", "{{ nothing }}", "{{ 1 // 0 }}", "  ", "{{ ''.__class__.mro() }}", "\0"]
)
def test_a_template_that_fails_costs_the_identity_only(workspace: Workspace, tmp_path: Path, template: str) -> None:
    """A plain sentence stands in, the section counts as failed, and mending the file mends it."""
    own = tmp_path / "templates"
    own.mkdir()
    (own / "identity.md.j2").write_text(template)
    builder = builder_of(workspace, templates=own)
    prompt = builder.build("terminal", TOOLS)
    assert prompt.failed == {"identity"}
    assert PLAIN_IDENTITY in prompt.sections[0].text
    assert prompt.sections[1:] == builder_of(workspace).build("terminal", TOOLS).sections[1:]
    assert len(prompt.warnings) == 1
    (own / "identity.md.j2").write_text("I am {{ channel }} in {{ workspace }}.")
    assert f"I am terminal in {workspace.root}." in builder.build("terminal", TOOLS).sections[0].text


def test_whose_user_file_is_shown(workspace: Workspace, tmp_path: Path) -> None:
    """`workspace` and `global` look at one place only; `nearest` at both."""
    user = tmp_path / "user"
    user.mkdir()

    def shown() -> list[str]:
        kinds = ("nearest", "workspace", "global")
        return [text_of(builder_of(workspace, user_folder=user, user_file=kind), "USER.md") for kind in kinds]

    assert shown() == ["", "", ""]
    (user / "USER.md").write_text("mine")
    assert shown() == ["mine", "", "mine"]
    (workspace.root / "USER.md").write_text("here")
    assert shown() == ["here", "here", "mine"]


def test_a_desktop_sees_the_workspace(workspace: Workspace) -> None:
    """The desktop's face tells what has a place in the workspace; a phone's does not."""
    builder = builder_of(workspace)
    desktop, telegram = (builder.build(channel, TOOLS).sections[0].text for channel in ("desktop", "telegram"))
    for place in ("AGENTS.md", "memory/", "skills/", "moonwake.toml", ".moonwake/", "tables"):
        assert place in desktop
    assert ".moonwake/" not in telegram


def test_old_files_need_no_second_look(workspace: Workspace, tmp_path: Path) -> None:
    """With every kind of source in use, the second build opens nothing."""
    user = tmp_path / "user"
    (user / "memory").mkdir(parents=True)
    (user / "USER.md").write_text("mine")
    (user / MEMORY_FILE).write_text("- known")
    write_skill(workspace, "pinned", "always: true")
    age(tmp_path)
    builder = PromptBuilder(workspace, user_folder=user, home=tmp_path)
    builder.build("terminal", TOOLS)
    assert count_opens(lambda: builder.build("terminal", TOOLS)) == 0
