"""Workspaces whose files look old, builders on them, and a count of what the interpreter opens."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.prompt.builder import PromptBuilder
from runtime.workspace import Workspace, init_workspace, open_workspace

TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "grep", "exec", "skill")


def workspace_in(folder: Path) -> Workspace:
    """A new workspace in a folder of its own below `folder`."""
    init_workspace(folder / "work")
    found = open_workspace(folder / "work")
    age(folder)
    return found


def builder_of(workspace: Workspace, **options: Any) -> PromptBuilder:
    """A builder that looks no further up than the folder around the workspace."""
    return PromptBuilder(workspace, **{"home": workspace.root.parent, **options})


def age(folder: Path, seconds: float = 60) -> None:
    """Make everything in `folder` look as if it had been written a while ago."""
    then = time.time_ns() - int(seconds * 1e9)
    for path in (*folder.rglob("*"), folder):
        os.utime(path, ns=(then, then))


def names(builder: PromptBuilder, tools: tuple[str, ...] = TOOLS, channel: str = "terminal") -> list[str]:
    return [section.name for section in builder.build(channel, tools).sections]


def text_of(builder: PromptBuilder, name: str, tools: tuple[str, ...] = TOOLS) -> str:
    """What stands in the section of that name, without its tag; empty if there is none."""
    text = {section.name: section.text for section in builder.build("terminal", tools).sections}.get(name, "")
    return text.removeprefix(f'<section name="{name}">\n').removesuffix("\n</section>")


def write_skill(workspace: Workspace, name: str, front: str = "", body: str = "Body.") -> None:
    folder = workspace.skills / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n{front}\n---\n{body}")


def count_opens(action: Callable[[], object]) -> int:
    """How many files `action` opens, as the interpreter itself reports them (other threads may open what they like)."""
    opened: list[object] = []
    listening, here = True, threading.get_ident()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        is_stream = bool(arguments) and isinstance(arguments[0], int)  # over a file that is open already
        if (
            listening
            and threading.get_ident() == here
            and event in ("open", "os.scandir", "os.listdir")
            and not is_stream
        ):
            opened.append(arguments)

    sys.addaudithook(hook)
    action()
    listening = False
    return len(opened)
