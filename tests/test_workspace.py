"""Workspaces: made, found, filled from templates, and refused with a way out."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import runtime.workspace as workspace_module
from runtime.config import load_config
from runtime.errors import WorkspaceError
from runtime.workspace import (
    IDENTITY_TEMPLATE,
    TEMPLATES,
    default_workspace,
    find_workspace,
    init_workspace,
    open_workspace,
    read_text,
    shipped_path,
)

REPOSITORY = Path(workspace_module.__file__).resolve().parent.parent


def test_opening_makes_folder_and_private_state(tmp_path: Path) -> None:
    """A new workspace gets its state folder, which git ignores and others cannot read."""
    workspace = open_workspace(tmp_path / "new")
    assert workspace.sessions.is_dir()
    assert (workspace.state / ".gitignore").read_text() == "*\n"
    assert workspace.state.stat().st_mode & 0o077 == 0
    assert open_workspace(tmp_path / "new") == workspace


def test_opening_without_create_touches_nothing(tmp_path: Path) -> None:
    """Reading commands leave a folder as it is, and name `init` when there is none."""
    assert open_workspace(tmp_path, create=False).root == tmp_path.resolve()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WorkspaceError, match="moonwake init"):
        open_workspace(tmp_path / "none", create=False)


def test_a_file_a_missing_parent_and_a_nul_are_refused(tmp_path: Path) -> None:
    """Each impossible path is an error that names it and says what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=r"file is a file.*Name a folder"):
        open_workspace(tmp_path / "file")
    with pytest.raises(WorkspaceError, match="mkdir -p"):
        open_workspace(tmp_path / "a" / "b")
    with pytest.raises(WorkspaceError, match="cannot"):
        open_workspace(tmp_path / "file" / "below")
    with pytest.raises(WorkspaceError, match="cannot use"):
        open_workspace(Path("a\0b"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(WorkspaceError, match="cannot use"):
        open_workspace(tmp_path / "loop")


def test_state_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    """Sessions are never written through a link that came with a project."""
    (tmp_path / "other").mkdir()
    (tmp_path / ".moonwake").symlink_to(tmp_path / "other")
    with pytest.raises(WorkspaceError, match="not a real folder"):
        open_workspace(tmp_path)
    (tmp_path / ".moonwake").unlink()
    (tmp_path / ".moonwake").write_text("")
    with pytest.raises(WorkspaceError, match="not a real folder"):
        open_workspace(tmp_path)


OPEN_WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from runtime.errors import WorkspaceError
from runtime.workspace import open_workspace
if os.geteuid() == 0:  # root writes everywhere
    os.setgid(65534); os.setuid(65534)
try:
    open_workspace(Path(sys.argv[1]))
except WorkspaceError as error:
    print(error)
"""


def test_unwritable_folder_is_refused() -> None:
    """A folder without write permission gives the path and the way out, with or without a state folder."""
    with tempfile.TemporaryDirectory() as folder:
        for state in (False, True):
            if state:
                (Path(folder) / ".moonwake" / "sessions").mkdir(parents=True)
            Path(folder).chmod(0o555)
            command = [sys.executable, "-c", OPEN_WITHOUT_RIGHTS, folder]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
            Path(folder).chmod(0o755)
            if state and os.geteuid() != 0:
                continue  # the state folder is ours and writable
            assert "write permission" in ran.stdout, ran.stderr
            assert folder in ran.stdout


def test_init_copies_templates_and_never_overwrites(tmp_path: Path) -> None:
    """`init` says what it made; a second run, or files that were there before, change nothing."""
    (tmp_path / "SOUL.md").write_text("mine")
    (tmp_path / "USER.md").symlink_to(tmp_path / "dangling")
    created = [str(path.relative_to(tmp_path.resolve())) for path in init_workspace(tmp_path)]
    assert created == ["AGENTS.md", "TOOLS.md", "memory/MEMORY.md", "moonwake.toml"]
    assert (tmp_path / "SOUL.md").read_text() == "mine"
    assert not (tmp_path / "dangling").exists()
    assert not (tmp_path / IDENTITY_TEMPLATE).exists()
    (tmp_path / "AGENTS.md").write_text("changed")
    assert init_workspace(tmp_path) == []
    assert (tmp_path / "AGENTS.md").read_text() == "changed"


def test_init_reports_a_file_where_a_folder_belongs(tmp_path: Path) -> None:
    """A file called `memory` is not destroyed."""
    (tmp_path / "memory").write_text("mine")
    with pytest.raises(WorkspaceError, match="memory"):
        init_workspace(tmp_path)
    assert (tmp_path / "memory").read_text() == "mine"


def test_template_settings_are_valid_as_they_stand_and_uncommented(tmp_path: Path) -> None:
    """Every commented setting of the template is one that loads."""
    init_workspace(tmp_path)
    file = tmp_path / "moonwake.toml"
    default = load_config(tmp_path, {}, {}, tmp_path / "none")
    assert all(origin.layer == "default" for _, _, origin in default.settings())
    lines = file.read_text().splitlines()
    uncommented = [line.removeprefix("#") if line.startswith("#") and line[1:2].strip() else line for line in lines]
    file.write_text("\n".join(uncommented))
    changed = load_config(tmp_path, {}, {}, tmp_path / "none")
    assert sum(origin.layer == "project" for _, _, origin in changed.settings()) >= 8


def test_nearest_workspace_is_found_upwards(tmp_path: Path) -> None:
    """The folder itself counts, then its parents; a parent that anybody may write to does not."""
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    assert find_workspace(inner) is None
    (tmp_path / "moonwake.toml").write_text("")
    assert find_workspace(inner) == tmp_path.resolve()
    (tmp_path / "a" / "moonwake.toml").write_text("")
    assert find_workspace(inner) == (tmp_path / "a").resolve()
    (tmp_path / "a").chmod(0o777)
    assert find_workspace(inner) == tmp_path.resolve()
    assert find_workspace(tmp_path / "a") == (tmp_path / "a").resolve()


def test_default_workspace_may_make_its_parents(tmp_path: Path) -> None:
    """The first start on a new machine needs no mkdir."""
    script = "from runtime.workspace import *; print(open_workspace(default_workspace()).root)"
    environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "x" / "y"), "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=REPOSITORY, env=environ, check=False
    )
    assert ran.stdout.strip().endswith("workspace"), ran.stderr
    assert Path(ran.stdout.strip()).is_dir()
    assert default_workspace().name == "workspace"


def test_shipped_folders_are_found_or_missed_loudly() -> None:
    """Templates and skills are found; an unknown folder means a broken installation."""
    assert (shipped_path(TEMPLATES) / IDENTITY_TEMPLATE).is_file()
    assert (shipped_path("skills") / "memory" / "SKILL.md").is_file()
    with pytest.raises(WorkspaceError, match="Install moonwake again"):
        shipped_path("nothing")


def test_reading_is_bounded_and_never_raises(tmp_path: Path) -> None:
    """Missing, binary, wrongly encoded, huge, a folder, a pipe, a link outside: each is a value."""
    inside = tmp_path / "inside"
    inside.mkdir()
    file = inside / "file"
    assert read_text(file, 10, inside) == workspace_module.FileText()
    file.write_bytes("\ufeffa\r\nb\rüü".encode())
    assert read_text(file, 10, inside).text == "a\nb\nüü"
    assert read_text(file, 5, inside) == workspace_module.FileText("a\nb\nü", None, 12, True)
    for raw, said in ((b"a\0b", "binary"), (b"a\xffb", "byte 1"), ("ü".encode()[:1], "byte 0")):
        file.write_bytes(raw)
        read = read_text(file, 10, inside)
        assert read.text is None
        assert said in (read.problem or "")
    with file.open("wb") as stream:
        stream.write(b"x" + "ü".encode() * 10)
        stream.truncate(1 << 40)
    assert "binary" in (read_text(file, 100, inside).problem or "")
    file.write_bytes("€".encode() * 100_000)
    assert read_text(file, 3, inside) == workspace_module.FileText("€€€", None, 300_000, True)
    file.unlink()
    file.mkdir()
    assert "not an ordinary file" in (read_text(file, 10, inside).problem or "")
    os.mkfifo(inside / "pipe")
    assert "not an ordinary file" in (read_text(inside / "pipe", 10, inside).problem or "")
    (tmp_path / "secret").write_text("secret")
    (inside / "link").symlink_to(tmp_path / "secret")
    assert "leads out of" in (read_text(inside / "link", 10, inside).problem or "")
    (inside / "loop").symlink_to(inside / "loop")
    assert read_text(inside / "loop", 10, inside).problem
