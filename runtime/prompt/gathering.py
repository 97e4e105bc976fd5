"""One build: reads what the layers are made of, and notes what is wrong with it. Blocks.

Whatever is wrong with one file costs its own section only. `problems` are for a person; `failed` are the names of
sections that could not be made from what lies there, so that whoever was shown them keeps what they saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from ..sections import (
    AGENTS,
    GLOBAL_MEMORY,
    IDENTITY,
    PROJECT_MEMORY,
    SKILL_PREFIX,
    SKILLS,
    Section,
    Sections,
    parent_agents,
)
from ..skills import MAX_SKILL_CHARACTERS, Skills, collect_skills, skill_roots
from ..workspace import IDENTITY_TEMPLATE, MEMORY_FILE, FileText, Workspace
from .identity import PLAIN_IDENTITY, Profile, TemplateFailed, identity_text, shipped_template, shown_path
from .layers import BOOTSTRAP, FILE_LIMITS, MEMORY_LIMIT, equals_template, file_section, memory_section
from .parents import parent_folders
from .reading import Reader
from .surroundings import Surroundings, Values

UserFile: TypeAlias = Literal["nearest", "workspace", "global"]

USER = "USER.md"
_TEMPLATE_LIMIT = 64_000  # characters


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a prompt comes from. `user_folder` is the user's own workspace (None: none, or this one).

    `user_file` says whose USER.md is shown: `nearest` this workspace's if somebody wrote into it, else the user's own;
    or always the one of this `workspace`, or always the `global` one. `home` bounds the search for parent folders.
    `templates` is a folder with an identity template of one's own. `skill_folders` are more places with skills.
    """

    workspace: Workspace
    user_folder: Path | None = None
    user_file: UserFile = "nearest"
    home: Path | None = None
    templates: Path | None = None
    skill_folders: tuple[str, ...] = ()


@dataclass(slots=True)
class Gathering:
    sources: Sources
    reader: Reader
    tools: frozenset[str]
    problems: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    values: Values = ()  # of the variables that skills depend on

    def identity(self, channel: str, profile: Profile) -> Section:
        where = shown_path(self.sources.workspace.root)
        try:
            return Section(IDENTITY, identity_text(self._template(), channel, profile, where))
        except TemplateFailed as error:
            self.problems.append(f"the template {IDENTITY_TEMPLATE} cannot be rendered ({error})")
            self.failed.add(IDENTITY)
            return Section(IDENTITY, PLAIN_IDENTITY)

    def _template(self) -> str:
        folder = self.sources.templates
        if folder is None:
            return shipped_template(IDENTITY_TEMPLATE)
        content = self.reader.read(folder / IDENTITY_TEMPLATE, _TEMPLATE_LIMIT, folder)
        if content.text is None:
            raise TemplateFailed(content.problem or f"there is none in {folder}")
        return content.text

    def bootstrap(self) -> Sections:
        root, missing, found = self.sources.workspace.root, [], list(self._parents())
        for name in BOOTSTRAP:
            content = self._user_file() if name == USER else self._read(root, name, FILE_LIMITS[name], name)
            if content.text is None and not content.problem and not os.path.lexists(root / name):
                missing.append(name)
            if (section := file_section(name, content, FILE_LIMITS[name], self.tools, name)) is not None:
                found.append(section)
        if missing and self.sources.workspace.config_file.exists():  # elsewhere nobody expects them
            self.problems.append(f"{root} lacks {', '.join(missing)}: `moonwake init {root}` makes what is missing")
        return tuple(found)

    def _parents(self) -> Iterable[Section]:
        """The AGENTS.md of the folders above, the farthest first; untouched templates say nothing new."""
        folders = parent_folders(self.sources.workspace.root, self.sources.home, self.reader.watch)
        for levels, folder in reversed(tuple(enumerate(folders, start=1))):
            name = parent_agents(levels)
            content = self._read(folder, AGENTS, FILE_LIMITS[AGENTS], name)
            if equals_template(content, shipped_template(AGENTS)):
                continue
            if (section := file_section(name, content, FILE_LIMITS[AGENTS], self.tools, None)) is not None:
                yield section

    def _user_file(self) -> FileText:
        """The USER.md that holds here; nothing as long as nobody wrote into it."""
        root, folder = self.sources.workspace.root, self.sources.user_folder
        wanted = self.sources.user_file if folder is not None else "workspace"
        here = FileText() if wanted == "global" else self._read(root, USER, FILE_LIMITS[USER], USER)
        if wanted == "workspace" or _says_something(here) or folder is None:
            return here if _says_something(here) else FileText(problem=here.problem)
        own = self._read(folder, USER, FILE_LIMITS[USER], USER)
        return own if _says_something(own) else FileText(problem=own.problem or here.problem)

    def memory(self) -> Iterable[Section]:
        places: list[tuple[str, Path, str | None]] = [(PROJECT_MEMORY, self.sources.workspace.root, MEMORY_FILE)]
        if self.sources.user_folder is not None:
            places.insert(0, (GLOBAL_MEMORY, self.sources.user_folder, None))
        for name, folder, readable_at in places:
            content = self._read(folder, MEMORY_FILE, MEMORY_LIMIT, name)
            if equals_template(content, shipped_template(MEMORY_FILE)):
                continue
            if (section := memory_section(name, content, self.tools, readable_at)) is not None:
                yield section

    def skills(self) -> Skills:
        read = []
        sources = self.sources
        for root in skill_roots(sources.workspace, sources.user_folder, sources.skill_folders):
            files, problem = self.reader.list_skills(root)
            if problem:
                self.problems.append(problem)
                self.failed |= {SKILLS, SKILL_PREFIX}
            for file in files:
                content = self.reader.read(file, MAX_SKILL_CHARACTERS, root.inside)
                if content.problem:
                    self.failed.add(f"{SKILL_PREFIX}{file.parent.name}")
                read.append((root, file, content))
        surroundings = Surroundings(self.tools, self.reader.watch)
        skills = collect_skills(read, surroundings.around)
        self.values = surroundings.values
        self.problems += skills.problems
        return skills

    def _read(self, folder: Path, name: str, limit: int, section: str) -> FileText:
        content = self.reader.read(folder / name, limit, folder)
        if content.problem:
            self.problems.append(content.problem)
            self.failed.add(section)
        if content.cut:
            self.problems.append(
                f"{folder / name} has {content.size:,} bytes; only its first {limit:,} characters are in the prompt"
            )
        return content


def _says_something(content: FileText) -> bool:
    written = content.text is not None and bool(content.text.strip())
    return written and not equals_template(content, shipped_template(USER))
