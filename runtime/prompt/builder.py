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

from ..sections import Sections, tagged
from ..workspace import Workspace
from .fingerprint import Stamp, stamps
from .gathering import Gathering, Sources, UserFile
from .identity import Profile
from .layers import runtime_section, skill_sections
from .parents import user_home
from .reading import Reader
from .surroundings import Values, hold

_MOST_KEPT = 64  # combinations of channel, tools and profile; more means that somebody varies them without end


@dataclass(frozen=True, slots=True)
class Prompt:
    """The sections in their order, what a person should be told once, and the names of sections that could not be made
    (see `pressure.keep_shown`)."""

    sections: Sections
    warnings: tuple[str, ...] = ()
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Built:
    prompt: Prompt
    watched: tuple[str, ...]
    seen: tuple[Stamp, ...]
    settled: bool
    values: Values

    def holds(self) -> bool:
        return self.settled and stamps(self.watched) == self.seen and hold(self.values)


class PromptBuilder:
    """The prompts of one workspace.

    `user_folder` is the user's own workspace, whose USER.md (as `user_file` says), memory and skills hold across
    projects (left out if it is this one). `home` is the folder above which no AGENTS.md is looked for; the user's, if
    not given. `templates` is a folder with an identity template of one's own. `skill_folders` are more places with
    skills (`skills.folders`). `now_ns` is the clock that file times are
    compared with, in nanoseconds since the epoch.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        user_folder: Path | None = None,
        user_file: UserFile = "nearest",
        home: Path | None = None,
        templates: Path | None = None,
        skill_folders: tuple[str, ...] = (),
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        own = None if user_folder is None or user_folder.resolve() == workspace.root else user_folder
        self._sources = Sources(
            workspace, own, user_file, user_home() if home is None else home.resolve(), templates, skill_folders
        )
        self._reader = Reader(now_ns)
        self._built: dict[tuple[str, frozenset[str], Profile], _Built] = {}
        self._told: set[str] = set()
        self._lock = Lock()

    def build(self, channel: str, tool_names: Iterable[str], profile: Profile = "full") -> Prompt:
        """The prompt for `channel` (`terminal`, `desktop`, `telegram`, `cron`, `library`) with these tools on.

        Raises `WorkspaceError` when the installation lacks its templates, and nothing else.
        """
        tools = frozenset(tool_names)
        key = (channel, tools, profile)
        with self._lock:
            built = self._built.get(key)
            if built is not None and built.holds():
                return built.prompt
            self._reader.begin()
            gathering = Gathering(self._sources, self._reader, tools)
            sections = _sections(gathering, channel, profile)
            failed = frozenset(gathering.failed)
            if len(self._built) >= _MOST_KEPT:
                self._built.clear()
            reader = self._reader
            found = Prompt(sections, (), failed)
            self._built[key] = _Built(found, reader.watched, reader.seen, reader.settled, gathering.values)
            return Prompt(sections, self._new_warnings(gathering.problems) if profile == "full" else (), failed)

    def _new_warnings(self, problems: list[str]) -> tuple[str, ...]:
        fresh = tuple(dict.fromkeys(problem for problem in problems if problem not in self._told))
        self._told = set(problems)
        return fresh


def _sections(gathering: Gathering, channel: str, profile: Profile) -> Sections:
    """All layers, in their order."""
    identity = gathering.identity(channel, profile)
    if profile == "tiny":  # a lone section, so it needs no tag
        return (identity,)
    bootstrap, memory, tools = gathering.bootstrap(), gathering.memory(), gathering.tools
    sections = (identity, *bootstrap, *memory, *skill_sections(gathering.skills(), tools), runtime_section(tools))
    return tuple(tagged(section) for section in sections)
