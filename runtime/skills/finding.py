"""Where skills are, and which of those with one name counts. Blocks, but for `collect_skills`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..workspace import FileText, Workspace, read_text, shipped_path
from .requirements import Around, missing, this_machine
from .skill import SKILL_FILE, Skill, Source, parse_skill

MAX_SKILL_CHARACTERS = 64_000

_DEEPEST = 3  # folders within folders that only group skills
_MOST_GROUPS = 100
_NO_GROUPS = frozenset({"node_modules", "__pycache__"})
_NO_SKILLS = frozenset({"readme.md", "license.md", "changelog.md", "contributing.md", "agents.md", "claude.md"})


@dataclass(frozen=True, slots=True)
class SkillRoot:
    """A folder whose sub-folders are skills, and, if it is `flat`, whose Markdown files are."""

    source: Source
    folder: Path
    flat: bool = False

    @property
    def inside(self) -> Path | None:
        """Where its files must really lie. Those that came with the program may be an installer's links."""
        return None if self.source == "shipped" else self.folder


@dataclass(frozen=True, slots=True)
class Skills:
    """Skills by name: `all` can be used; `unavailable` lack something or wait for a person to name them. A sentence for
    each fault that was found."""

    all: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()
    unavailable: tuple[Skill, ...] = ()

    def get(self, name: str) -> Skill | None:
        """One that can be used, or that a person may ask for."""
        return next((skill for skill in self.every if skill.name == name and not skill.missing), None)

    @property
    def every(self) -> tuple[Skill, ...]:
        return tuple(sorted((*self.all, *self.unavailable), key=lambda skill: skill.name))


def skill_roots(
    workspace: Workspace, user_folder: Path | None = None, folders: Iterable[str] = ()
) -> tuple[SkillRoot, ...]:
    """Where skills are looked for; later ones override: shipped, the `folders` of the settings, the user's, the
    workspace's. In `folders`, which others filled, folders that only group skills are roots of their own, before the
    one that holds them."""
    roots = [SkillRoot("shipped", shipped_path("skills"))]
    for name in folders:
        root = SkillRoot("folder", workspace.root / Path(name).expanduser(), flat=True)
        roots += [*_groups(root), root]
    if user_folder is not None and user_folder != workspace.root:
        roots.append(SkillRoot("user", user_folder / "skills", flat=True))
    return (*roots, SkillRoot("workspace", workspace.skills, flat=True))


def _groups(root: SkillRoot) -> tuple[SkillRoot, ...]:
    found: list[SkillRoot] = []
    level = [root.folder]
    for _ in range(_DEEPEST):
        level = [folder for parent in level for folder in _grouping(parent)]
        found += [SkillRoot(root.source, folder) for folder in level]
        if len(found) > _MOST_GROUPS:
            break
    return tuple(reversed(found[:_MOST_GROUPS]))


def _grouping(parent: Path) -> Iterator[Path]:
    try:
        folders = _folders(parent)
    except OSError:
        return  # whoever lists the root says so
    for folder in folders:
        if folder.name not in _NO_GROUPS and not folder.is_symlink() and not (folder / SKILL_FILE).exists():
            yield folder


def _folders(parent: Path) -> list[Path]:
    return [entry for entry in _entries(parent) if entry.is_dir()]


def _entries(parent: Path) -> list[Path]:
    try:
        return sorted(entry for entry in parent.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_skill_files(root: SkillRoot) -> tuple[Path, ...]:
    """The SKILL.md of each sub-folder, whether it exists or not, by folder name, after the Markdown files of a flat
    root; none if there is no such root.

    Raises `OSError` when the folder is there and cannot be listed.
    """
    entries = _entries(root.folder)
    files = (entry for entry in entries if root.flat and _may_be_skill(entry))
    return (*files, *(entry / SKILL_FILE for entry in entries if entry.is_dir()))


def _may_be_skill(entry: Path) -> bool:
    name = entry.name.lower()
    return name.endswith(".md") and name not in _NO_SKILLS and entry.is_file()


def load_skills(roots: Iterable[SkillRoot], around: Around | None = None) -> Skills:
    """Read every skill of `roots`. Never raises for what is wrong in them. `around` as in `collect_skills`."""
    read: list[tuple[SkillRoot, Path, FileText]] = []
    problems: list[str] = []
    for root in roots:
        try:
            files = list_skill_files(root)
        except OSError as error:
            problems.append(f"cannot list the skills in {root.folder}: {error.strerror}")
            continue
        read += [(root, file, read_text(file, MAX_SKILL_CHARACTERS, root.inside)) for file in files]
    found = collect_skills(read, around)
    return Skills(found.all, (*problems, *found.problems), found.unavailable)


def collect_skills(read: Sequence[tuple[SkillRoot, Path, FileText]], around: Around | None = None) -> Skills:
    """The skills among files that were read, in the order of their roots.

    `around` is what their requirements are held against. Without one it is this machine with no tool on, so that a
    skill that needs a tool is left out: better than promising what cannot be done.
    """
    around = this_machine(frozenset()) if around is None else around
    by_name: dict[str, Skill] = {}
    problems: list[str] = []
    for root, file, content in read:
        if content.text is None:
            problems += [content.problem] if content.problem else []
            continue
        if file.name != SKILL_FILE and not content.text.lstrip("\ufeff").startswith("---"):
            continue  # a Markdown file beside skills that makes no claim to be one
        if content.cut:
            problems.append(f"{file} is longer than {MAX_SKILL_CHARACTERS:,} characters; only its beginning is used")
        skill, faults = parse_skill(content.text, file, root.source)
        problems += faults
        if skill is not None:
            by_name[skill.name] = replace(skill, missing=missing(skill.requirements, around))
    skills = [by_name[name] for name in sorted(by_name)]
    usable = tuple(skill for skill in skills if not skill.missing and not skill.by_hand)
    return Skills(usable, tuple(problems), tuple(skill for skill in skills if skill not in usable))
