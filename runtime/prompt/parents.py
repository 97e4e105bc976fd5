"""The folders above a workspace whose AGENTS.md holds in it, too. Blocks, but opens nothing.

They reach up to the root of the project, which is the nearest folder with one of `MARKERS`; without one, nothing above
the workspace counts. Laws: never above the user's home, nor into or beyond a folder that anybody may write to (a
stranger could have put the file there); a workspace that is itself under version control is its own project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ..workspace import MARKER

#: What the root of a project holds: version control, or the settings of a workspace around this one.
MARKERS = (".git", ".hg", ".svn", ".jj", MARKER)


def user_home() -> Path | None:
    """The user's home folder, free of symbolic links; None where there is none."""
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return None


def parent_folders(root: Path, home: Path | None, watch: Callable[[Path], None]) -> tuple[Path, ...]:
    """The folders above the workspace `root` (absolute, free of links), the nearest first, up to the project's root.

    `watch` is told each folder before it is looked into: what is found changes only when one of these does.
    """
    watch(root)
    if root == home or any(_has(root, marker) for marker in MARKERS if marker != MARKER):
        return ()
    found: list[Path] = []
    for folder in root.parents:
        if _anybody_writes(folder):
            return ()
        watch(folder)
        found.append(folder)
        if any(_has(folder, marker) for marker in MARKERS):
            return tuple(found)
        if folder == home:
            return ()
    return ()


def _has(folder: Path, name: str) -> bool:
    return os.path.lexists(folder / name)


def _anybody_writes(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return True
