"""The `skill` tool: the full text of a skill by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import anyio.to_thread

from governors.messages import ToolSpec

from ..errors import ToolError
from ..skills import Skill, SkillRoot, Skills, load_skills
from .base import Tool, ToolContext, ToolOutput, text_output

SKILL_SPEC = ToolSpec(
    name="skill",
    description=(
        "Read a skill: instructions for one kind of task, listed by name in the system prompt. "
        "Read it before you start on such a task."
    ),
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The skill's name, as in the list."}},
        "required": ["name"],
        "additionalProperties": False,
    },
    read_only=True,
)


def skill_tool(roots: Sequence[SkillRoot]) -> Tool:
    """A tool over the skills in `roots` (see `runtime.skills.skill_roots`); it reads them anew at each call."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        name = arguments.get("name")
        if not isinstance(name, str) or not name.strip():
            raise ToolError('skill needs "name", the name of a skill as text, such as {"name": "git"}')
        skills = await anyio.to_thread.run_sync(load_skills, roots)
        skill = skills.get(name.strip())
        if skill is None:
            raise ToolError(_unknown(name.strip(), skills))
        return text_output(skill_text(skill))

    return Tool(SKILL_SPEC, run, timeout=30.0)


def skill_text(skill: Skill) -> str:
    """What the model reads of a skill, and where its other files are, if they can be reached."""
    head = f"Skill {skill.name}: {skill.description}"
    if skill.source == "workspace":
        head += f"\nIts files are in skills/{skill.file.parent.name}/ of the workspace."
    return f"{head}\n\n{skill.text or '(this skill has no text)'}"


def _unknown(name: str, skills: Skills) -> str:
    names = [skill.name for skill in skills.all]
    if not names:
        return "there are no skills here"
    close = get_close_matches(name.lower(), names, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f'there is no skill "{name[:80]}".{meant} There are: {", ".join(names)}'
