"""Builds the system prompt of a workspace, and knows without opening a file when there is nothing to build.

Laws: equal files, channel, tools and profile give equal bytes; no clock and no id of a user or session enters;
nothing that is wrong with a file stops the rest; each warning is given once, and again only after its cause was
gone. `build` blocks (call it in a thread) and may be called from several threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ..sections import GLOBAL_MEMORY, IDENTITY, PROJECT_MEMORY, Section, Sections, tagged
from ..skills import MAX_SKILL_CHARACTERS, Skills, collect_skills, skill_roots
from ..workspace import MEMORY_FILE, FileText, Workspace
from .fingerprint import Stamp, stamps
from .identity import Profile, identity_text, shipped_template, shown_path
from .layers import (
    BOOTSTRAP,
    FILE_LIMITS,
    MEMORY_LIMIT,
    equals_template,
    file_section,
    memory_section,
    runtime_section,
    skill_sections,
)
from .reading import Reader

_MOST_KEPT = 64  # combinations of channel, tools and profile; more means that somebody varies them without end


@dataclass(frozen=True, slots=True)
class Prompt:
    """The sections in their order, and what a person should be told once."""

    sections: Sections
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Built:
    sections: Sections
    watched: tuple[str, ...]
    seen: tuple[Stamp, ...]
    settled: bool


class PromptBuilder:
    """The prompts of one workspace.

    `user_folder` is the user's own workspace, whose USER.md, memory and skills hold across projects (left out if it
    is this one). `now_ns` is the clock that file times are compared with, in nanoseconds since the epoch.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        user_folder: Path | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._workspace = workspace
        self._user_folder = None if user_folder is None or user_folder.resolve() == workspace.root else user_folder
        self._reader = Reader(now_ns)
        self._built: dict[tuple[str, frozenset[str], Profile], _Built] = {}
        self._told: set[str] = set()
        self._lock = Lock()

    def build(self, channel: str, tool_names: Iterable[str], profile: Profile = "full") -> Prompt:
        """The prompt for `channel` (`terminal`, `library`, `telegram`, `cron`) with these tools on.

        Raises `WorkspaceError` when the installation lacks its templates, and nothing else.
        """
        tools = frozenset(tool_names)
        key = (channel, tools, profile)
        with self._lock:
            built = self._built.get(key)
            if built is not None and built.settled and stamps(built.watched) == built.seen:
                return Prompt(built.sections)
            self._reader.begin()
            sections, problems = self._assemble(channel, tools, profile)
            if len(self._built) >= _MOST_KEPT:
                self._built.clear()
            reader = self._reader
            self._built[key] = _Built(sections, reader.watched, reader.seen, reader.settled)
            return Prompt(sections, self._new_warnings(problems) if profile == "full" else ())

    def _new_warnings(self, problems: list[str]) -> tuple[str, ...]:
        fresh = tuple(dict.fromkeys(problem for problem in problems if problem not in self._told))
        self._told = set(problems)
        return fresh

    def _assemble(self, channel: str, tools: frozenset[str], profile: Profile) -> tuple[Sections, list[str]]:
        identity = Section(IDENTITY, identity_text(channel, profile, shown_path(self._workspace.root)))
        if profile == "tiny":  # a lone section, so it needs no tag
            return (identity,), []
        problems: list[str] = []
        skills = self._skills(problems)
        sections = (
            identity,
            *self._bootstrap(tools, problems),
            *self._memory(tools, problems),
            *skill_sections(skills, tools),
            runtime_section(tools),
        )
        return tuple(tagged(section) for section in sections), problems

    def _read(self, folder: Path, name: str, limit: int, problems: list[str]) -> FileText:
        content = self._reader.read(folder / name, limit, folder)
        if content.problem:
            problems.append(content.problem)
        if content.cut:
            problems.append(
                f"{folder / name} has {content.size:,} bytes; only its first {limit:,} characters are in the prompt"
            )
        return content

    def _bootstrap(self, tools: frozenset[str], problems: list[str]) -> Iterable[Section]:
        root, missing = self._workspace.root, []
        for name in BOOTSTRAP:
            content = self._read(root, name, FILE_LIMITS[name], problems)
            if content.text is None and not content.problem:
                missing.append(name)
            if name == "USER.md":
                content = self._user_file(content, problems)
            if (section := file_section(name, content, FILE_LIMITS[name], tools)) is not None:
                yield section
        if missing and self._workspace.config_file.exists():  # elsewhere nobody expects them
            problems.append(f"{root} lacks {', '.join(missing)}: `moonwake init {root}` makes what is missing")

    def _user_file(self, content: FileText, problems: list[str]) -> FileText:
        """This workspace's USER.md if somebody wrote into it, else the user's own, else nothing."""
        template = shipped_template("USER.md")
        if content.text is not None and content.text.strip() and not equals_template(content, template):
            return content
        if self._user_folder is None:
            return FileText()
        own = self._read(self._user_folder, "USER.md", FILE_LIMITS["USER.md"], problems)
        return FileText() if equals_template(own, template) else own

    def _memory(self, tools: frozenset[str], problems: list[str]) -> Iterable[Section]:
        places: list[tuple[str, Path, str | None]] = [(PROJECT_MEMORY, self._workspace.root, MEMORY_FILE)]
        if self._user_folder is not None:
            places.insert(0, (GLOBAL_MEMORY, self._user_folder, None))
        for name, folder, readable_at in places:
            content = self._read(folder, MEMORY_FILE, MEMORY_LIMIT, problems)
            if equals_template(content, shipped_template(MEMORY_FILE)):
                continue
            if (section := memory_section(name, content, tools, readable_at)) is not None:
                yield section

    def _skills(self, problems: list[str]) -> Skills:
        read = []
        for root in skill_roots(self._workspace, self._user_folder):
            files, problem = self._reader.list_skills(root)
            problems += [problem] if problem else []
            read += [(root, file, self._reader.read(file, MAX_SKILL_CHARACTERS, root.folder)) for file in files]
        skills = collect_skills(read)
        problems += skills.problems
        return skills
