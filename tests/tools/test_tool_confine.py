"""File tools stay in the workspace."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ToolError
from runtime.tools.base import ToolContext
from runtime.tools.confine import Place, locate, open_file, open_folder, open_parent, replace_file


@pytest.fixture
def workspace(context: ToolContext) -> Path:
    root = context.workspace
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    (root.parent / "secret").write_text("key")
    (root.parent / "workspace2").mkdir()
    return root


@pytest.mark.parametrize(
    ("given_path", "parts"),
    [
        ("src/a.py", ("src", "a.py")), ("./src/../src/a.py", ("src", "a.py")), (".", ()), ("src/", ("src",)),
        ("src/new/file", ("src", "new", "file")), ("a~", ("a~",)), ("./~", ("~",)), ("..a", ("..a",)),
    ],
)  # fmt: skip
def test_places_inside_are_found(workspace: Path, given_path: str, parts: tuple[str, ...]) -> None:
    """Ordinary paths are allowed, absolute ones inside too."""
    assert locate(workspace, given_path, writing=True).parts == parts
    assert locate(workspace, f"{workspace}/{given_path}").parts == parts


@pytest.mark.parametrize(
    ("given_path", "said"),
    [
        ("..", "is outside"), ("../secret", "is outside"), ("src/../../secret", "is outside"),
        ("/etc/passwd", "is outside"),
        ("../workspace2/x", "is outside"), ("/proc/self/root/etc/passwd", "is outside"), ("//etc/passwd", "is outside"),
        ("~", "not expanded"), ("~/x", "not expanded"), ("~root/x", "not expanded"), ("", "is empty"),
        ("a\0b", "NUL"), ("a\ud800", "surrogate"),
        (".moonwake", "session logs"), (".moonwake/sessions/x", "session logs"), ("src/../.Moonwake/x", "session logs"),
    ],
)  # fmt: skip
def test_places_outside_and_protected_ones_are_refused(workspace: Path, given_path: str, said: str) -> None:
    """Each way out is refused with a sentence that says why."""
    with pytest.raises(ToolError, match=said):
        locate(workspace, given_path)


def test_settings_may_be_read_and_not_written(workspace: Path) -> None:
    """No tool changes what its user allowed, also not by way of a symlink."""
    (workspace / "moonwake.toml").write_text("")
    (workspace / "other").symlink_to("moonwake.toml")
    for name in ("moonwake.toml", "other"):
        locate(workspace, name)
        with pytest.raises(ToolError, match="user's settings"):
            locate(workspace, name, writing=True)


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../", "up/secret", "/proc/self/cwd"])
def test_fault_193_symlinks_that_lead_out_are_refused(workspace: Path, target: str) -> None:
    """Relative and absolute symlinks, and chains of them, do not leave the workspace."""
    (workspace / "up").symlink_to("..")
    (workspace / "link").symlink_to(target)
    for path in ("link", "link/secret", "src/../link"):
        with pytest.raises(ToolError, match="symlink that leads outside"):
            locate(workspace, path)


def test_symlinks_that_stay_inside_are_followed(workspace: Path) -> None:
    """A link within the workspace is as good as its target, and a workspace may be reached through one."""
    (workspace / "link").symlink_to("src")
    assert locate(workspace, "link/a.py").parts == ("src", "a.py")
    outer = workspace.parent / "alias"
    outer.symlink_to(workspace)
    assert locate(outer, "src/a.py") == locate(workspace, f"{outer}/src/a.py")


def test_symlink_loop_is_refused(workspace: Path) -> None:
    """A loop ends in an error, not in a loop."""
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    with pytest.raises(ToolError):
        open_file(locate(workspace, "a"))


@pytest.mark.parametrize("path", ["src/a.py", "a.py"])
def test_symlink_put_in_the_way_after_the_check_is_not_followed(workspace: Path, path: str) -> None:
    """What is swapped between check and use is refused: the last part, and a folder on the way."""
    (workspace / "a.py").write_text("x")
    (workspace.parent / "a.py").write_text("secret")
    place = locate(workspace, path, writing=True)
    if path == "a.py":
        (workspace / "a.py").unlink()
        (workspace / "a.py").symlink_to("../a.py")
    else:
        (workspace / "src").rename(workspace / "old")
        (workspace / "src").symlink_to("..")
    with pytest.raises(ToolError):
        open_file(place)
    with pytest.raises(ToolError):
        replace_file(place, b"overwritten")
    assert (workspace.parent / "a.py").read_text() == "secret"


def test_special_files_are_refused_and_not_waited_for(workspace: Path) -> None:
    """Pipes, sockets, devices and folders are no files, for reading and for writing."""
    os.mkfifo(workspace / "pipe")
    os.mknod(workspace / "socket", stat.S_IFSOCK | 0o600)
    kinds = {"pipe": "a named pipe", "socket": "a socket", "src": "is a folder", ".": "workspace folder itself"}
    for name, said in kinds.items():
        with pytest.raises(ToolError, match=said):
            open_file(locate(workspace, name))
        with pytest.raises(ToolError, match=said):
            replace_file(locate(workspace, name, writing=True), b"")
    with pytest.raises(ToolError, match="a device"):
        open_file(Place("/dev", ("null",)))


def test_missing_things_are_told(workspace: Path) -> None:
    """A missing file, a file taken for a folder and a name that is too long each have a sentence."""
    for path, said in (("none", "does not exist"), ("src/a.py/x", "not a folder"), ("x" * 300, "too long")):
        with pytest.raises(ToolError, match=said):
            open_file(locate(workspace, path))


def test_replacing_keeps_permissions_and_leaves_nothing_behind(workspace: Path) -> None:
    """A written file is whole, keeps its mode, and no temporary file stays, also when the write fails."""
    script = workspace / "src" / "a.py"
    script.chmod(0o750)
    assert replace_file(locate(workspace, "src/a.py"), b"new")
    assert not replace_file(locate(workspace, "deep/er/file"), b"made")
    assert script.read_bytes() == b"new"
    assert script.stat().st_mode & 0o777 == 0o750
    with pytest.raises(ToolError, match="too long"):
        replace_file(locate(workspace, "src/" + "x" * 300), b"")
    assert sorted(path.name for path in (workspace / "src").iterdir()) == ["a.py"]


def test_descriptors_are_closed(workspace: Path) -> None:
    """Whatever happens, no descriptor is left open."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with open_folder(locate(workspace, "src")), open_parent(locate(workspace, "src/a.py")):
        pass
    for path in ("src/none", "src", "src/a.py/x", "none/x"):
        with pytest.raises(ToolError):
            open_file(locate(workspace, path))
    open_file(locate(workspace, "src/a.py")).close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


parts = st.sampled_from(["..", ".", "src", "in", "out", "rel", "abs", "a.py", "new", ".moonwake", "", "~"])


@given(st.lists(parts, max_size=6), st.booleans())
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, chosen: list[str], absolute: bool) -> None:
    """Whatever a path is made of, what is located lies in the workspace, as the system itself resolves it."""
    root = maze(tmp_path_factory)
    given_path = "/".join([str(root), *chosen] if absolute else chosen)
    try:
        place = locate(root, given_path)
    except ToolError:
        return
    real = Path(os.path.realpath(root / given_path))
    assert real == root.joinpath(*place.parts)
    assert real.is_relative_to(root)
    assert not real.is_relative_to(root / ".moonwake")


mazes: list[Path] = []


def maze(factory: pytest.TempPathFactory) -> Path:
    """A workspace full of links that lead in, out and around."""
    if not mazes:
        root = factory.mktemp("maze") / "root"
        (root / "src" / "src").mkdir(parents=True)
        (root / ".moonwake").mkdir()
        (root / "a.py").touch()
        (root / "in").symlink_to("src/src")
        (root / "out").symlink_to("..")
        (root / "src" / "rel").symlink_to("../../root/out")
        (root / "src" / "src" / "abs").symlink_to(root / ".moonwake")
        mazes.append(Path(os.path.realpath(root)))
    return mazes[0]
