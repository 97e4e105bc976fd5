"""Skills: folders with a SKILL.md in the agentskills.io format, found in several places.

Front matter is the part of YAML that skills use, read leniently: `key: value`, quotes, block text (`|`, `>`), lists
and one level of nested keys. Source of the rules: https://agentskills.io/specification.

Laws: a bad skill is reported and the others stand; of two skills with one name the later root's counts; order
depends on names alone. Parsing is pure; `load_skills` blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .workspace import FileText, Workspace, read_text, shipped_path

SKILL_FILE = "SKILL.md"
MAX_SKILL_CHARACTERS = 64_000
MAX_DESCRIPTION = 1024  # characters, by the standard

Source: TypeAlias = Literal["shipped", "user", "workspace"]

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|$)")


@dataclass(frozen=True, slots=True)
class SkillRoot:
    """A folder whose sub-folders are skills."""

    source: Source
    folder: Path


@dataclass(frozen=True, slots=True)
class Skill:
    """`text` is the Markdown below the front matter. `always`: it stands in the prompt in full."""

    name: str
    description: str
    text: str
    always: bool
    source: Source
    file: Path


@dataclass(frozen=True, slots=True)
class Skills:
    """Skills by name, and a sentence for each fault that was found."""

    all: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()

    def get(self, name: str) -> Skill | None:
        return next((skill for skill in self.all if skill.name == name), None)


def skill_roots(workspace: Workspace, user_folder: Path | None = None) -> tuple[SkillRoot, ...]:
    """Where skills are looked for; later ones override: shipped, the user's, the workspace's."""
    roots = [SkillRoot("shipped", shipped_path("skills"))]
    if user_folder is not None and user_folder != workspace.root:
        roots.append(SkillRoot("user", user_folder / "skills"))
    return (*roots, SkillRoot("workspace", workspace.skills))


def list_skill_files(root: SkillRoot) -> tuple[Path, ...]:
    """The SKILL.md of each sub-folder, whether it exists or not, by folder name; none if there is no such root.

    Raises `OSError` when the folder is there and cannot be listed.
    """
    try:
        folders = sorted(entry for entry in root.folder.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(folder / SKILL_FILE for folder in folders if folder.is_dir())


def load_skills(roots: Iterable[SkillRoot]) -> Skills:
    """Read every skill of `roots`. Never raises for what is wrong in them."""
    read: list[tuple[SkillRoot, Path, FileText]] = []
    problems: list[str] = []
    for root in roots:
        try:
            files = list_skill_files(root)
        except OSError as error:
            problems.append(f"cannot list the skills in {root.folder}: {error.strerror}")
            continue
        read += [(root, file, read_text(file, MAX_SKILL_CHARACTERS, root.folder)) for file in files]
    found = collect_skills(read)
    return Skills(found.all, (*problems, *found.problems))


def collect_skills(read: Sequence[tuple[SkillRoot, Path, FileText]]) -> Skills:
    """The skills among files that were read, in the order of their roots. Pure."""
    by_name: dict[str, Skill] = {}
    problems: list[str] = []
    for root, file, content in read:
        if content.text is None:
            problems += [content.problem] if content.problem else []
            continue
        if content.cut:
            problems.append(f"{file} is longer than {MAX_SKILL_CHARACTERS:,} characters; only its beginning is used")
        skill, faults = parse_skill(content.text, file, root.source)
        problems += faults
        if skill is not None:
            by_name[skill.name] = skill
    return Skills(tuple(by_name[name] for name in sorted(by_name)), tuple(problems))


def parse_skill(text: str, file: Path, source: Source) -> tuple[Skill | None, list[str]]:
    """The skill in `text`, or None, and what is wrong with it. Pure; `file` gives its folder's name."""
    split = split_front_matter(text)
    if split is None:
        return None, [f'{file}: no front matter. It begins with a line "---", name and description, and "---" again']
    fields, body = parse_front_matter(split[0]), split[1]
    name, description = fields.get("name"), fields.get("description")
    folder = file.parent.name
    faults = []
    if not isinstance(name, str) or not name:
        return None, [f'{file}: the front matter has no name. Add "name: {folder}"']
    if not _NAME.fullmatch(name) or len(name) > 64:
        return None, [f'{file}: the name "{name[:80]}" may only have a-z, 0-9 and single hyphens, 64 at most']
    if not isinstance(description, str) or not description.strip():
        return None, [
            f'{file}: the front matter has no description. Add "description: what it does and when to use it"'
        ]
    if name != folder:
        faults.append(f'{file}: the name "{name}" differs from its folder "{folder}"; the name counts')
    description = " ".join(description.split())
    if len(description) > MAX_DESCRIPTION:
        faults.append(f"{file}: the description has {len(description):,} characters; {MAX_DESCRIPTION:,} are used")
        description = description[:MAX_DESCRIPTION]
    always, fault = _always(fields)
    faults += [f"{file}: {fault}"] if fault else []
    return Skill(name, description, body.strip(), always, source, file), faults


def _always(fields: dict[str, Any]) -> tuple[bool, str]:
    """`always` at the top, or under `metadata`, where the standard puts what it does not know."""
    metadata = fields.get("metadata")
    value = fields.get("always", metadata.get("always") if isinstance(metadata, dict) else None)
    if value is None or str(value).lower() == "false":
        return False, ""
    if str(value).lower() == "true":
        return True, ""
    return False, f'always should be true or false, not "{str(value)[:40]}"; taken as false'


def split_front_matter(text: str) -> tuple[list[str], str] | None:
    """The lines between the two `---`, and the rest; None without them."""
    lines = text.lstrip("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return lines[1:number], "\n".join(lines[number + 1 :])
    return None


def parse_front_matter(lines: list[str]) -> dict[str, Any]:
    """Top-level keys with text, a list of text, or a dict of text. What cannot be read is left out."""
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        found = _KEY.fullmatch(lines[at].rstrip())
        at += 1
        if not found:
            continue
        start = at
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
            at += 1
        fields[found[1]] = _value((found[2] or "").strip(), lines[start:at])
    return fields


def _value(first: str, below: list[str]) -> Any:
    below = [line.expandtabs() for line in below]
    if re.fullmatch(r"[|>][+-]?\d?[+-]?(\s+#.*)?", first):
        return _block(below, folded=first[0] == ">")
    below = [line.strip() for line in below if line.strip() and not line.lstrip().startswith("#")]
    if first and first[0] in "[{":
        return _flow(" ".join((first, *below)))
    if first and not first.startswith("#"):
        return _scalar(" ".join((first, *below)))
    if below and below[0].startswith("-"):
        return [_scalar(line.removeprefix("-").strip()) for line in below]
    nested = [_KEY.fullmatch(line) for line in below]
    if below and all(nested):
        return {match[1]: _scalar((match[2] or "").strip()) for match in nested if match}
    return _scalar(" ".join(below))


def _block(lines: list[str], folded: bool) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = "\n".join(line[indent:].rstrip() for line in lines).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text


def _flow(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return text


def _scalar(text: str) -> str:
    if quoted := re.match(r'"((?:[^"\\]|\\.)*)"\s*(#.*)?$', text):
        try:
            return str(json.loads(f'"{quoted[1]}"'))
        except ValueError:
            return quoted[1]
    if quoted := re.match(r"'((?:[^']|'')*)'\s*(#.*)?$", text):
        return quoted[1].replace("''", "'")
    return re.sub(r"\s+#.*$", "", text)
