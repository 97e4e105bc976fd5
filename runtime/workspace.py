"""The folder an agent works in, its state folder, and the one careful way to read a small text file.

A workspace is an ordinary folder. What people write stands openly in it (AGENTS.md, memory/, skills/,
moonwake.toml); what the runtime keeps (sessions, input history) goes into `.moonwake`, which is private to the
user and ignores itself in git. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .errors import WorkspaceError

STATE_FOLDER = ".moonwake"
MARKER = "moonwake.toml"  # a folder that holds it is a workspace
TEMPLATES = "workspace_templates"
IDENTITY_TEMPLATE = "identity.md.j2"  # stays with the program, so that an update reaches every workspace
MEMORY_FILE = "memory/MEMORY.md"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that exists. `root` is absolute and free of symbolic links."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / STATE_FOLDER

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"

    @property
    def input_history(self) -> Path:
        return self.state / "input_history"

    @property
    def config_file(self) -> Path:
        return self.root / MARKER

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def memory_file(self) -> Path:
        return self.root / MEMORY_FILE


def default_workspace() -> Path:
    """Where an agent lives when no project is named: `workspace` in the platform's data folder."""
    from platformdirs import user_data_path

    return user_data_path("moonwake", appauthor=False) / "workspace"


def find_workspace(start: Path) -> Path | None:
    """The nearest folder from `start` upwards that holds a `moonwake.toml`.

    Parents that anybody may write to (such as /tmp) are passed over: a stranger could have put the file there.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        try:
            if not (folder / MARKER).is_file():
                continue
            if folder == start or not folder.stat().st_mode & stat.S_IWOTH:
                return folder
        except OSError:
            continue
    return None


def open_workspace(path: Path, create: bool = True) -> Workspace:
    """The workspace at `path`. With `create` the folder and its state folder are made where they are missing.

    Parent folders are made only for the default workspace: elsewhere a missing parent is most likely a typing
    error. Raises `WorkspaceError` that says what to do.
    """
    root = _existing_folder(path, create)
    workspace = Workspace(root)
    if create:
        _make_state(workspace)
    return workspace


def _existing_folder(path: Path, create: bool) -> Path:
    path = path.expanduser()
    try:
        root = path.resolve()
        if root.is_dir():
            return root
        if root.exists():
            raise WorkspaceError(f"{path} is a file, and a workspace is a folder. Name a folder instead")
        if not create:
            raise WorkspaceError(f"there is no workspace at {path}. `moonwake init {path}` makes one")
        parents = root == default_workspace().resolve()
        if not parents and not root.parent.is_dir():
            raise WorkspaceError(
                f"cannot make the workspace {path}: the folder {root.parent} does not exist. "
                f"Make it first (mkdir -p {root.parent}) or check the path"
            )
        root.mkdir(parents=parents, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links; ValueError: a NUL in it
        raise _refused(path, error) from error
    return root


def _make_state(workspace: Workspace) -> None:
    state = workspace.state
    if state.is_symlink() or (state.exists() and not state.is_dir()):
        raise WorkspaceError(f"{state} is not a real folder, so sessions cannot be kept there. Move it away")
    try:
        state.mkdir(mode=0o700, exist_ok=True)
        workspace.sessions.mkdir(mode=0o700, exist_ok=True)
        ignore = state / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise _refused(state, error) from error
    for folder in (state, workspace.sessions):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise WorkspaceError(f"cannot write to {folder}. Give yourself write permission or choose another folder")


def _refused(path: Path, error: Exception) -> WorkspaceError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return WorkspaceError(
        f"cannot use {path}: {reason}. Give yourself write permission, free some space, or choose another folder"
    )


def init_workspace(path: Path) -> list[Path]:
    """Make `path` a workspace and fill it from the templates; existing files are left as they are.

    Returns the files that were made, in a fixed order. Raises `WorkspaceError`.
    """
    workspace = open_workspace(path)
    templates = shipped_path(TEMPLATES)
    created = []
    for source in sorted(templates.rglob("*")):
        if not source.is_file() or source.name == IDENTITY_TEMPLATE:
            continue
        target = workspace.root / source.relative_to(templates)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(target):
                continue
            with target.open("xb") as stream:  # x: never over a file, nor through a link that somebody left
                stream.write(source.read_bytes())
        except OSError as error:
            raise _refused(target, error) from error
        created.append(target)
    return created


def shipped_path(name: str) -> Path:
    """The folder `skills` or `workspace_templates` that comes with the program: in the package, or in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "shipped" / name
    if installed.is_dir():
        return installed
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise WorkspaceError(f"this installation lacks its folder {name} ({installed}). Install moonwake again")


@dataclass(frozen=True, slots=True)
class FileText:
    """What reading a text file gave. `text` is None when there is nothing to show; `problem` says why, for a
    person, and is None for a file that is simply not there. `size` is the whole file's, in bytes; `cut` says that
    `text` is only its beginning. `refused`: the system would not let it be read just now, whatever it holds."""

    text: str | None = None
    problem: str | None = None
    size: int = 0
    cut: bool = False
    refused: bool = False


def read_text(path: Path, limit: int, inside: Path | None) -> FileText:
    """At most `limit` characters of a UTF-8 file that really lies inside the folder `inside`.

    None is for what came with the program: some installers make links of its files, into a store of theirs.

    Never raises for what may be wrong with a file, never waits on a pipe, never reads more than it may show.
    """
    try:
        # as text: paths as objects take twice the time, and a prompt reads dozens of files
        real = os.path.realpath(path)
        if inside is not None and not real.startswith(os.path.realpath(inside).rstrip(os.sep) + os.sep):
            return FileText(problem=f"{path} leads out of {inside} and was not read")
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return FileText()
    except (OSError, RuntimeError, ValueError) as error:
        return FileText(problem=f"cannot read {path}: {getattr(error, 'strerror', None) or error}", refused=True)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return FileText(problem=f"{path} is not an ordinary file and was not read")
    try:
        with os.fdopen(descriptor, "rb") as stream:
            raw = stream.read(4 * limit + 4)  # the longest UTF-8 character has four bytes
    except OSError as error:
        return FileText(problem=f"cannot read {path}: {error.strerror}", refused=True)
    return _decoded(path, raw, limit, status.st_size)


def _decoded(path: Path, raw: bytes, limit: int, size: int) -> FileText:
    if b"\0" in raw:
        return FileText(problem=f"{path} is a binary file and was left out", size=size)
    try:
        # A character cut in half at the end of what was read is no fault of the file.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=len(raw) >= size)
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8 text (byte {error.start:,}) and was left out; save it as UTF-8"
        return FileText(problem=problem, size=size)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return FileText(text[:limit], size=size, cut=len(text) > limit or len(raw) < size)
