"""What is wrong with a skill, line by line, for its author. Blocks.

A fault is what the standard forbids, or what makes the skill fail; advice is what would make it better.
Rules: https://agentskills.io/specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..workspace import read_text
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
from .finding import MAX_SKILL_CHARACTERS, SkillRoot, list_skill_files
from .front_matter import parse_front_matter, split_front_matter, unread_lines
from .requirements import metadata_of
from .skill import NAME, SKILL_FILE, usual_name

LONGEST_TEXT = 500  # lines, as the standard recommends

#: The standard's fields, ours, and those of agents whose skills we read.
_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_OTHERS = frozenset({"always", "disable-model-invocation", "user-invocable", "argument-hint", "model", "homepage",
                     "version", "author", "tags", "context", "agent", "hooks", "when_to_use"})  # fmt: skip
_FLAGS = ("always", "disable-model-invocation")
_LINK = re.compile(r"\]\(\s*<?([^)\s>#]+)")
_PATH = re.compile(r"(?<![\w/.-])((?:scripts|references|assets)/[\w./-]*\w)")


@dataclass(frozen=True, slots=True)
class Fault:
    """`line` counts from 1; 0 is the file as a whole. `advice`: it works all the same."""

    file: Path
    line: int
    text: str
    advice: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        return f"{place}: {'advice: ' if self.advice else ''}{self.text}"


def skills_at(path: Path) -> tuple[Path, ...]:
    """The skills at `path`: a file, the folder of one, or a folder of many. Raises `OSError` if it cannot be listed."""
    if path.is_file():
        return (path,)
    if (path / SKILL_FILE).exists():
        return (path / SKILL_FILE,)
    found = list_skill_files(SkillRoot("folder", path, flat=True))
    return tuple(file for file in found if file.exists() and (file.name == SKILL_FILE or _claims(file)))


def _claims(file: Path) -> bool:
    """Whether a Markdown file beside skills says that it is one."""
    return (read_text(file, 16, file.parent).text or "").startswith("---")


def check_skill(file: Path) -> tuple[Fault, ...]:
    """The faults of one skill, by line."""
    content = read_text(file, MAX_SKILL_CHARACTERS, file.parent)
    if content.text is None:
        return (Fault(file, 0, content.problem or "there is no such file"),)
    if content.cut:
        return (Fault(file, 0, f"longer than {MAX_SKILL_CHARACTERS:,} characters: move parts into references/"),)
    split = split_front_matter(content.text)
    if split is None:
        return (Fault(file, 1, NO_FRONT_MATTER),)
    lines, body = split
    fields = parse_front_matter(lines)
    faults = [
        *(Fault(file, number + 2, unread(lines[number])) for number in unread_lines(lines)),
        *_front(file, lines, fields),
        *_body(file, body, len(lines) + 2),
    ]
    return tuple(sorted(faults, key=lambda fault: (fault.line, fault.text)))


def _front(file: Path, lines: Sequence[str], fields: dict[str, Any]) -> Iterator[Fault]:
    def line_of(key: str) -> int:
        return next((number for number, line in enumerate(lines, start=2) if line.startswith(f"{key}:")), 1)

    yield from (Fault(file, line_of("name"), text) for text in _name(fields.get("name"), usual_name(file)))
    at, description = line_of("description"), fields.get("description")
    if not isinstance(description, str) or not description.strip():
        yield Fault(file, at, NO_DESCRIPTION)
    elif len(description) > MAX_DESCRIPTION:
        yield Fault(file, at, long_description(description))
    elif not re.search(r"\b(use|when|whenever|if)\b", description, re.IGNORECASE):
        yield Fault(file, at, 'the description does not say when: add a sentence that begins "Use when"', advice=True)
    compatibility = fields.get("compatibility")
    if isinstance(compatibility, str) and len(compatibility) > MAX_COMPATIBILITY:
        said = f"compatibility has {len(compatibility):,} characters, {MAX_COMPATIBILITY} at most"
        yield Fault(file, line_of("compatibility"), said)
    if fields.get("metadata") is not None and not metadata_of(fields["metadata"]):
        yield Fault(
            file, line_of("metadata"), "metadata should be keys with texts, each on a line of its own, indented"
        )
    for flag in _FLAGS:
        if flag in fields and str(fields[flag]).lower() not in ("true", "false"):
            yield Fault(file, line_of(flag), no_flag(flag, fields[flag]))
    for key in fields:
        if key not in _FIELDS | _OTHERS:
            said = f'the standard knows no field "{key}"; what is your own belongs below metadata'
            yield Fault(file, line_of(key), said, advice=True)


def _name(name: Any, usual: str) -> Iterator[str]:
    if not isinstance(name, str) or not name:
        yield no_name(usual)
    elif not NAME.fullmatch(name):
        yield wrong_name(name)
    elif len(name) > MAX_NAME:
        yield long_name(name)
    elif name != usual:
        yield other_name(name, usual)


def _body(file: Path, body: str, above: int) -> Iterator[Fault]:
    lines = body.split("\n")
    if not body.strip():
        yield Fault(file, above, "no text below the front matter: write what to do")
    if len(lines) > LONGEST_TEXT:
        said = f"{len(lines)} lines: what is not always needed reads better in references/"
        yield Fault(file, above + LONGEST_TEXT, said, advice=True)
    told: set[str] = set()
    for number, line in enumerate(lines, start=above + 1):
        links = [link for link in _LINK.findall(line) if ":" not in link and not link.startswith("/")]
        for path in (*links, *(_PATH.findall(line) if _has_files(file) else ())):
            if path not in told and not (file.parent / path).exists():
                told.add(path)
                yield Fault(file, number, f"there is no {path} in the skill's folder")


def _has_files(file: Path) -> bool:
    """Whether paths in the text mean this skill's files: then it has at least one of the folders."""
    return any((file.parent / folder).is_dir() for folder in ("scripts", "references", "assets"))
