"""The `skill` tool: the full text of a skill by its name, and its other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import anyio.to_thread

from governors.messages import ToolSpec

from ..errors import ToolError
from ..skills import (
    Around,
    Skill,
    SkillRoot,
    Skills,
    load_skills,
    read_skill_file,
    skill_files,
    this_machine,
)
from .base import Tool, ToolContext, ToolOutput, text_output

SKILL_SPEC = ToolSpec(
    name="skill",
    description=(
        "Read a skill: instructions for one kind of task, listed by name in the system prompt. "
        "Read it before you start on such a task."
    ),
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The skill's name, as in the list."},
            "file": {
                "type": "string",
                "description": "One of the skill's other files, as its text lists them, such as scripts/run.py.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    read_only=True,
)


def skill_tool(
    roots: Sequence[SkillRoot] | Callable[[], Sequence[SkillRoot]], tools: frozenset[str] | None = None
) -> Tool:
    """A tool over the skills in `roots` (see `runtime.skills.skill_roots`; a function is asked at each call); it reads
    them anew each time. `tools` are those that are on, for skills that need some; None: that is not checked."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        name, file = arguments.get("name"), arguments.get("file")
        if not isinstance(name, str) or not name.strip():
            raise ToolError('skill needs "name", the name of a skill as text, such as {"name": "git"}')
        if file is not None and not isinstance(file, str):
            raise ToolError('"file" is a path in the skill, as text, such as {"name": "x", "file": "scripts/a.py"}')
        where = roots() if callable(roots) else roots
        work = partial(_answer, where, this_machine(tools), name.strip(), (file or "").strip())
        return text_output(await anyio.to_thread.run_sync(work))

    return Tool(SKILL_SPEC, run, timeout=30.0)


def _answer(roots: Sequence[SkillRoot], around: Around, name: str, file: str) -> str:
    skills = load_skills(roots, around)
    skill = skills.get(name)
    if skill is None:
        raise ToolError(_unknown(name, skills))
    if not file or file == skill.file.name:
        return skill_text(skill, skill_files(skill))
    content = read_skill_file(skill, file)
    if content.text is None:
        files = ", ".join(skill_files(skill)) or "none"
        raise ToolError(f"{content.problem or f'there is no file {file[:80]!r} in the skill'}. Its files: {files}")
    cut = f"\n[cut here: the file has {content.size:,} bytes]" if content.cut else ""
    return f"{content.text}{cut}"


def skill_text(skill: Skill, files: Sequence[str] = ()) -> str:
    """What the model reads of a skill: its text, and which other files it has and how they are reached."""
    head = f"Skill {skill.name}: {skill.description}"
    if skill.compatibility:
        head += f"\nIt says of itself: {skill.compatibility}"
    if files:
        head += f'\nIts other files, which the skill tool reads with "file": {", ".join(files)}'
    if skill.source == "workspace" and skill.folder is not None:
        head += f"\nIts files are in skills/{skill.folder.name}/ of the workspace."
    elif files:
        head += "\nThey lie outside the workspace: to run a script, read it, write it into the workspace, run it there."
    return f"{head}\n\n{skill.text or '(this skill has no text)'}"


def _unknown(name: str, skills: Skills) -> str:
    lacking = next((skill for skill in skills.unavailable if skill.name == name), None)
    if lacking is not None:
        return f'the skill "{name}" cannot be used here: it needs {", ".join(lacking.missing)}'
    names = [skill.name for skill in skills.all]
    if not names:
        return "there are no skills here"
    close = get_close_matches(name.lower(), names, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f'there is no skill "{name[:80]}".{meant} There are: {", ".join(names)}'
