"""A skill, and how its text becomes one. Pure.

Rules of the front matter: https://agentskills.io/specification. What other agents leave out or add is read as they read
it: a missing name is the folder's, a missing description the first paragraph; both are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .faults import (
    MAX_COMPATIBILITY,
    MAX_DESCRIPTION,
    MAX_NAME,
    NO_DESCRIPTION,
    NO_FRONT_MATTER,
    long_description,
    long_name,
    no_flag,
    no_name,
    other_name,
    unread,
    wrong_name,
)
from .front_matter import parse_front_matter, split_front_matter, unread_lines
from .requirements import Requirements, metadata_of, read_requirements

SKILL_FILE = "SKILL.md"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

Source: TypeAlias = Literal["shipped", "folder", "user", "workspace"]


@dataclass(frozen=True, slots=True)
class Skill:
    """`text` is the Markdown below the front matter. `always`: it stands in the prompt in full. `by_hand`: only a
    person may ask for it. `allowed_tools` is what its author expects it to use; it grants nothing. `missing` is what it
    needs and is not there, in words."""

    name: str
    description: str
    text: str
    always: bool
    source: Source
    file: Path
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    requirements: Requirements = field(default_factory=Requirements)
    by_hand: bool = False
    missing: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """Where its other files lie; None for a skill that is one file."""
        return self.file.parent if self.file.name == SKILL_FILE else None


def parse_skill(text: str, file: Path, source: Source) -> tuple[Skill | None, list[str]]:
    """The skill in `text`, or None, and what is wrong with it. `file` gives its usual name.

    Parsed once: whoever keeps texts by the stamps of their files has them for a look in a table.
    """
    skill, faults = _parsed(text, file, source)
    return skill, list(faults)


@lru_cache(maxsize=256)
def _parsed(text: str, file: Path, source: Source) -> tuple[Skill | None, tuple[str, ...]]:
    skill, faults = _parse(text, file, source)
    return skill, tuple(faults)


def _parse(text: str, file: Path, source: Source) -> tuple[Skill | None, list[str]]:
    split = split_front_matter(text)
    if split is None:
        return None, [f"{file}: {NO_FRONT_MATTER}"]
    lines, body = split[0], split[1].strip()
    fields = parse_front_matter(lines)
    broken = [f"{file}:{number + 2}: {unread(lines[number])}" for number in unread_lines(lines)]
    if not fields.get("name") and not fields.get("description"):
        missing = f"{no_name(usual_name(file))}; {NO_DESCRIPTION}; without both this is no skill"
        return None, [*broken, f"{file}: {missing}"]
    faults: list[str] = []
    name = _name(fields.get("name"), usual_name(file), faults)
    if name is None:
        return None, [*broken, *(f"{file}: {fault}" for fault in faults)]
    description = _description(fields.get("description"), body, faults)
    if not description:
        return None, [*broken, *(f"{file}: {fault}" for fault in faults)]
    metadata = metadata_of(fields.get("metadata"))
    skill = Skill(
        name=name,
        description=description,
        text=body,
        always=_flag("always", _always(fields, metadata), faults),
        source=source,
        file=file,
        license=_line(fields.get("license")),
        compatibility=_line(fields.get("compatibility"))[:MAX_COMPATIBILITY],
        allowed_tools=allowed_tools(fields.get("allowed-tools")),
        requirements=read_requirements(metadata),
        by_hand=_flag("disable-model-invocation", fields.get("disable-model-invocation"), faults),
    )
    return skill, [*broken, *(f"{file}: {fault}" for fault in faults)]


def usual_name(file: Path) -> str:
    """The folder's name, or a lone file's."""
    return file.parent.name if file.name == SKILL_FILE else file.stem


def _name(given: Any, usual: str, faults: list[str]) -> str | None:
    if isinstance(given, str) and NAME.fullmatch(given) and len(given) <= MAX_NAME:
        if given != usual:
            faults.append(f"{other_name(given, usual)}; the name counts")
        return given
    if isinstance(given, str) and given:
        faults.append(long_name(given) if NAME.fullmatch(given) else wrong_name(given))
    else:
        faults.append(no_name(usual))
    if NAME.fullmatch(usual) and len(usual) <= MAX_NAME:
        faults[-1] += f'; "{usual}" is used'
        return usual
    return None


def _description(given: Any, body: str, faults: list[str]) -> str:
    if isinstance(given, str) and (description := " ".join(given.split())):
        if len(description) > MAX_DESCRIPTION:
            faults.append(f"{long_description(description)}; its beginning is used")
        return description[:MAX_DESCRIPTION]
    faults.append(NO_DESCRIPTION)
    paragraphs = (part for part in re.split(r"\n\s*\n", body) if part.strip() and not part.lstrip().startswith("#"))
    first = " ".join(next(paragraphs, "").split())[:MAX_DESCRIPTION]
    if first:
        faults[-1] += "; its first paragraph is used"
    return first


def _always(fields: dict[str, Any], metadata: dict[str, Any]) -> Any:
    """`always` at the top, or under `metadata`, where the standard puts what it does not know, ours or nanobot's."""
    nested = (metadata_of(metadata.get(name)).get("always") for name in ("moonwake", "nanobot"))
    told = (fields.get("always"), metadata.get("always"), *nested)
    return next((value for value in told if value is not None), None)


def _flag(name: str, value: Any, faults: list[str]) -> bool:
    if value is None or str(value).lower() in ("false", "true"):
        return str(value).lower() == "true"
    faults.append(f"{no_flag(name, value)}; taken as false")
    return False


def allowed_tools(value: Any) -> tuple[str, ...]:
    """`Read Bash(git:*)` by the standard; also with commas, or as a list. A space in brackets parts nothing."""
    text = " ".join(str(each) for each in value) if isinstance(value, list) else value
    return tuple(re.findall(r"(?:[^\s,()]|\([^)]*\))+", text)) if isinstance(text, str) else ()


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
