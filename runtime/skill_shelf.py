"""What `moonwake skills` does and prints. Lines fit a terminal; what skills say is shown without control sequences."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .channels.plain import write_text
from .channels.sanitize import clean
from .config import Config, load_config
from .errors import MoonwakeError
from .skills import Skill, Skills, load_skills, skill_files, skill_roots, this_machine
from .workspace import Workspace, default_workspace

_WIDEST = 100
_NAME_ROOM = 24


def found_skills(folder: Path) -> Skills:
    """The skills that agents of the workspace in `folder` have, against this machine and the tools of its settings."""
    workspace, config = _opened(folder)
    return load_skills(skill_roots(workspace, _user_folder(), config.skills.folders), this_machine(_tools(config)))


def list_skills(folder: Path, *, as_json: bool) -> int:
    skills = found_skills(folder)
    if as_json:
        told = {"skills": [_as_json(skill) for skill in skills.every], "problems": list(skills.problems)}
        _print([json.dumps(told, indent=2)])
        return 0
    width = _width()
    room = min(_NAME_ROOM, max((len(skill.name) for skill in skills.every), default=0))
    lines: list[str] = []
    for skill in skills.every:
        mark, state = _state(skill)
        head = f"{mark} {skill.name:<{room}}  {skill.source:<9}  "
        lines += _wrapped(head, state or skill.description, width, lines=3 if state else 1)
    if skills.problems:
        lines += ["", "What is wrong:", *_bullets(skills.problems, width)]
    lines += ["", f"{len(skills.all)} can be used, {len(skills.unavailable)} not (✗ ·). moonwake skills show NAME"]
    _print(lines)
    return 0


def show_skill(folder: Path, name: str, *, as_json: bool) -> int:
    """Raises `MoonwakeError` for a name that no skill has."""
    skill = _named(found_skills(folder), name)
    files = skill_files(skill)
    if as_json:
        _print([json.dumps({**_as_json(skill), "files": list(files), "text": skill.text}, indent=2)])
        return 0
    width, told = _width(), [("from", f"{skill.source}, {skill.file}"), ("does", skill.description)]
    told += [("state", _state(skill)[1] or "can be used"), ("in the prompt", "in full" if skill.always else "a line")]
    told += [("needs", _needs(skill)), ("says it needs", skill.compatibility), ("license", skill.license)]
    told += [("uses", " ".join(skill.allowed_tools)), ("files", "  ".join(files))]
    lines = [line for what, text in told if text for line in _wrapped(f"{what:<13}  ", text, width)]
    _print([*lines, "", *skill.text.splitlines()])
    return 0


def begin_skill(folder: Path, name: str, *, user: bool) -> int:
    from .skills.checking import check_skill
    from .skills.starting import new_skill

    place = default_workspace() / "skills" if user else _opened(folder)[0].skills
    file = new_skill(place, name)
    shown = [f"made {file}", "Write it, then: moonwake skills check " + _quoted(file.parent)]
    shown += [str(fault) for fault in check_skill(file) if not fault.advice]
    _print(shown)
    return 0


def check_skills(folder: Path, paths: Sequence[Path], *, as_json: bool) -> int:
    from .skills.checking import check_skill, skills_at

    if not paths:
        workspace, config = _opened(folder)
        roots = skill_roots(workspace, _user_folder(), config.skills.folders)
        paths = [root.folder for root in roots if root.folder.is_dir() and root.source != "shipped"]
    files: list[Path] = []
    for path in paths:
        try:
            at = skills_at(path.expanduser())
        except OSError as error:
            raise MoonwakeError(f"cannot list {path}: {error.strerror}") from error
        if not at and not path.is_dir():
            raise MoonwakeError(f"there is no skill at {path}: name a SKILL.md, its folder, or a folder of skills")
        files += at
    faults = [fault for file in dict.fromkeys(files) for fault in check_skill(file)]
    bad = sum(not fault.advice for fault in faults)
    if as_json:
        _print([json.dumps([{**asdict(fault), "file": str(fault.file)} for fault in faults], indent=2)])
    else:
        counted = f"{len(files)} skill{'' if len(files) == 1 else 's'}, {bad} fault{'' if bad == 1 else 's'}"
        _print([*map(str, faults), counted])
    return int(bad > 0)


def _opened(folder: Path) -> tuple[Workspace, Config]:
    """The workspace, of which nothing is made by looking at it."""
    workspace = Workspace(folder.expanduser().resolve())
    return workspace, load_config(workspace.root, os.environ, {})


def _user_folder() -> Path | None:
    folder = default_workspace()
    return folder if folder.is_dir() else None


def _tools(config: Config) -> frozenset[str]:
    """The names of the tools that are on by these settings, on this machine."""
    from .tools.shell import sandbox_problem
    from .tools.standard import standard_tools

    mode = config.tools.exec
    if mode == "sandbox" and sandbox_problem() is not None:
        mode = "off"
    names = {tool.spec.name for tool in standard_tools(mode, config.tools.network)}
    return frozenset((names | {"skill"}) - set(config.tools.disabled))


def _named(skills: Skills, name: str) -> Skill:
    found = next((skill for skill in skills.every if skill.name == name), None)
    if found is None:
        names = [skill.name for skill in skills.every]
        near = get_close_matches(name.lower(), names, n=1)
        meant = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}"
        raise MoonwakeError(f'there is no skill "{name[:80]}". {meant}')
    return found


def _state(skill: Skill) -> tuple[str, str]:
    """A mark, and what stands in the way."""
    if skill.missing:
        return "✗", f"needs {', '.join(skill.missing)}"
    if skill.by_hand:
        return "·", "only when a person names it"
    return ("!", "") if skill.always else ("✓", "")


def _needs(skill: Skill) -> str:
    told = asdict(skill.requirements)
    return "; ".join(f"{what.replace('_', ' ')} {', '.join(names)}" for what, names in told.items() if names)


def _as_json(skill: Skill) -> dict[str, Any]:
    told = asdict(skill)
    del told["text"]
    return {**told, "file": str(skill.file), "available": not skill.missing}


def _wrapped(head: str, text: str, width: int, lines: int = 100) -> list[str]:
    """`head` and `text` beside it, in at most `lines` lines."""
    wrapper = textwrap.TextWrapper(
        max(20, width - len(head)), max_lines=lines, placeholder=" …", break_on_hyphens=False
    )
    parts = wrapper.wrap(text) or [""]
    return [f"{head}{parts[0]}".rstrip(), *(" " * len(head) + part for part in parts[1:])]


def _bullets(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for line in _wrapped("- ", text, width)]


def _width() -> int:
    return min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _print(lines: Iterable[str]) -> None:
    write_text(sys.stdout, "\n".join(clean(line) for line in lines) + "\n")
