"""A new skill, from a text that shows how one is written. Blocks."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import WorkspaceError
from .faults import MAX_NAME
from .skill import NAME, SKILL_FILE

_TEXT = """\
---
name: {name}
description: Say in one sentence what this does. Use when someone asks for ... (the words that people really say).
# What it needs; the skill is left out where something is missing. Delete what does not apply.
#metadata:
#  requires-tools: exec
#  requires-bins: git
#  requires-env: API_KEY
---

# {title}

What a good result is, in a sentence or two.

## Before

- What to look at first, and what to ask if it cannot be told.

## Steps

1. The first step, as a command that can be copied:

       command --with-its options

2. The next one. What goes wrong here, and how one sees it.

## Check

How to tell that it worked.
"""


def new_skill(folder: Path, name: str) -> Path:
    """Make `folder/NAME/SKILL.md` and return it. Raises `WorkspaceError`: a bad name, or something is there already."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise WorkspaceError(
            f'a skill cannot be called "{name[:80]}": a-z, 0-9 and single hyphens between them, {MAX_NAME} at most'
        )
    file = folder / name / SKILL_FILE
    if os.path.lexists(folder / name) or os.path.lexists(folder / f"{name}.md"):
        raise WorkspaceError(f"{folder / name} is there already; nothing was changed. Edit it, or choose another name")
    try:
        file.parent.mkdir(parents=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_TEXT.format(name=name, title=name.replace("-", " ").capitalize()))
    except OSError as error:
        raise WorkspaceError(f"cannot write {file}: {error.strerror}") from error
    return file
