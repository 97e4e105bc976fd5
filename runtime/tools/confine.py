"""Keeps file tools inside the workspace.

Two steps, as a name can change its meaning between check and use. `locate` resolves what the model wrote (also
symlinks that stay inside) to plain path parts below the workspace's real path, and refuses what leads out. The
openers then walk those parts from a descriptor of the workspace, following no symlink at all: one that is put in
the way after the check is refused, not followed.

Protected in every workspace: `.moonwake` (session logs; neither read nor written) and `moonwake.toml` (settings;
not written), so that no model can change its own history or grant itself rights.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import ToolError
from ..workspace import MARKER, STATE_FOLDER

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# O_NONBLOCK: opening a FIFO that was put in the way after the check must not wait for a writer.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the workspace: the real path of its root, and the parts below it, free of symlinks when located."""

    root: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(self.parts) or "."


def locate(workspace: Path, given: str, *, writing: bool = False) -> Place:
    """Where `given` (relative to the workspace, or absolute) is. Raises `ToolError` if no tool may go there.

    The place need not exist. `writing` also refuses what may only be read.
    """
    _check_text(given)
    root = os.path.realpath(workspace)
    joined = os.path.join(root, given)  # noqa: PTH118 - pathlib would drop a trailing `..` meaning; text stays text
    real = os.path.realpath(joined)
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        plain = os.path.normpath(joined)
        inside = plain == root or plain.startswith(root.rstrip("/") + "/")
        why = "is or passes a symlink that leads" if inside else "is"
        raise ToolError(f"{given!r} {why} outside the workspace {root}; only paths inside the workspace can be used")
    place = Place(root, tuple(Path(real).relative_to(root).parts))
    _check_protected(place, writing)
    return place


def _check_text(given: str) -> None:
    if not given:
        raise ToolError("the path is empty; give a path relative to the workspace, or `.` for the workspace itself")
    if "\0" in given:
        raise ToolError(f"the path {given!r} holds a NUL character, which no file name can")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise ToolError(f"the path {given!r} holds a lone surrogate, which is not a valid character") from None
    if given.startswith("~"):
        raise ToolError(
            f"{given!r}: `~` is not expanded, and home folders are outside the workspace; give a path relative to the "
            "workspace (`./~name` for a file that is really called so)"
        )


def _check_protected(place: Place, writing: bool) -> None:
    first = place.parts[0].casefold() if place.parts else ""  # some file systems ignore case
    if first == STATE_FOLDER:
        raise ToolError(f"{STATE_FOLDER} holds the session logs; tools neither read nor write there")
    if writing and first == MARKER:
        raise ToolError(f"{MARKER} holds the user's settings; no tool writes it, so ask the user to change it")


@contextmanager
def explained(place: Place) -> Iterator[None]:
    """Turns what the operating system says of `place` into a `ToolError` that a model can act on."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"{place} does not exist in the workspace; list_dir shows what does") from None
    except NotADirectoryError:
        raise ToolError(f"{place}: a part of this path is not a folder (or became a symlink just now)") from None
    except OSError as error:
        raise ToolError(f"{place}: {error.strerror or error}") from None


@contextmanager
def open_folder(place: Place, *, create: bool = False) -> Iterator[int]:
    """A descriptor of the folder at `place`, reached without following symlinks; `create` makes missing ones."""
    descriptor = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in place.parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            below = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_parent(place: Place, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `place`, and the name in it."""
    if not place.parts:
        raise ToolError("this is the workspace folder itself, not a file; list_dir shows what it holds")
    with open_folder(Place(place.root, place.parts[:-1]), create=create) as descriptor:
        yield descriptor, place.parts[-1]


def open_file(place: Place) -> BinaryIO:
    """The regular file at `place`, open for reading; raises `ToolError` for anything else."""
    with explained(place), open_parent(place) as (folder, name):
        _check_regular(place, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        descriptor = os.open(name, _OPEN_FILE, dir_fd=folder)
        try:
            _check_regular(place, os.fstat(descriptor).st_mode)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


def replace_file(place: Place, data: bytes) -> bool:
    """Write `data` to `place` in one step: readers see the old file or the new one. Says whether one was there.

    Missing folders are made; the permissions of a replaced file are kept.
    """
    with explained(place), open_parent(place, create=True) as (folder, name):
        before = _permissions(place, folder, name)
        temporary = f".moonwake-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, _OPEN_NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(data)
                handle.flush()
                if before is not None:
                    os.fchmod(handle.fileno(), before)
                os.fsync(handle.fileno())
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        return before is not None


def _permissions(place: Place, folder: int, name: str) -> int | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    _check_regular(place, mode)
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError(f"{place} is read-only, so it was not changed")
    return stat.S_IMODE(mode) & 0o777


def _check_regular(place: Place, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolError(f"{place} is a folder, not a file; list_dir shows what it holds")
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a symlink put there just now"}
    raise ToolError(
        f"{place} is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a regular file; file tools leave it alone"
    )
