"""The other files of a skill: scripts, references, assets. Nothing outside its folder is listed or read. Blocks."""

from __future__ import annotations

import os
from pathlib import Path

from ..workspace import FileText, read_text
from .skill import SKILL_FILE, Skill

MOST_FILES = 100
MAX_FILE_CHARACTERS = 64_000

_HIDDEN = frozenset({"__pycache__", "node_modules"})


def skill_files(skill: Skill) -> tuple[str, ...]:
    """Paths relative to the skill's folder, `/` between the parts, sorted; at most `MOST_FILES`."""
    if skill.folder is None:
        return ()
    found: list[str] = []
    for here, folders, names in os.walk(skill.folder):  # links to folders are not followed
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _HIDDEN)
        below = Path(here).relative_to(skill.folder)
        found += [(below / name).as_posix() for name in names if not name.startswith(".")]
        if len(found) > 10 * MOST_FILES:
            break
    return tuple(sorted(name for name in found if name != SKILL_FILE)[:MOST_FILES])


def read_skill_file(skill: Skill, path: str) -> FileText:
    """The text of one of its files. A path that leads out, also through a link, gives a problem and no text."""
    if skill.folder is None:
        return FileText(problem=f"the skill {skill.name} is one file and has no others")
    if not path or path.startswith(("/", "~")) or ".." in Path(path).parts:
        return FileText(problem=f"{path[:80]!r} is not a path inside the skill's folder")
    inside = None if skill.source == "shipped" else skill.folder
    content = read_text(skill.folder / path, MAX_FILE_CHARACTERS, inside)
    if content.problem:
        return FileText(problem=content.problem.replace(f"{skill.folder}{os.sep}", ""), refused=content.refused)
    return content
