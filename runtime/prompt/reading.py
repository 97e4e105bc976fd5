"""Files and folders as last read, read again only when their stamp says so. Blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..skills import SkillRoot, list_skill_files
from ..workspace import FileText, read_text
from .fingerprint import Stamp, is_settled, stamp


@dataclass(frozen=True, slots=True)
class _Kept:
    seen: Stamp
    settled: bool
    content: FileText
    files: tuple[Path, ...] = ()


class Reader:
    """After `begin()`, a build calls `read` and `list_skills`; `watched`, `seen`, `settled` tell what it rests on."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._kept: dict[str, _Kept] = {}
        self._used: dict[str, _Kept] = {}

    def begin(self) -> None:
        self._used = {}

    @property
    def watched(self) -> tuple[str, ...]:
        return tuple(self._used)

    @property
    def seen(self) -> tuple[Stamp, ...]:
        return tuple(kept.seen for kept in self._used.values())

    @property
    def settled(self) -> bool:
        return all(kept.settled for kept in self._used.values())

    def read(self, path: Path, limit: int, inside: Path) -> FileText:
        """The file's text. When it can no longer be read, what was last read of it stays, with the problem."""
        kept, seen = self._look(path)
        if kept is None:
            before, read_at = self._kept.get(str(path)), self._now_ns()
            content = read_text(path, limit, inside)
            if content.problem and before is not None and before.content.text is not None:
                last = before.content
                content = replace(last, problem=f"{content.problem}. Its last known text stays in the prompt")
            kept = self._keep(path, _Kept(seen, is_settled(seen, read_at), content))
        self._used[str(path)] = kept
        return kept.content

    def list_skills(self, root: SkillRoot) -> tuple[tuple[Path, ...], str | None]:
        """The SKILL.md files below `root`, and the problem if it cannot be listed."""
        kept, seen = self._look(root.folder)
        if kept is None:
            before, read_at = self._kept.get(str(root.folder)), self._now_ns()
            try:
                content, files = FileText(), list_skill_files(root)
            except OSError as error:
                content = FileText(problem=f"cannot list the skills in {root.folder}: {error.strerror}")
                files = before.files if before else ()
            kept = self._keep(root.folder, _Kept(seen, is_settled(seen, read_at), content, files))
        self._used[str(root.folder)] = kept
        return kept.files, kept.content.problem

    def _look(self, path: Path) -> tuple[_Kept | None, Stamp]:
        """What is kept of `path` if it can still be trusted, and its stamp, taken before any reading."""
        seen, kept = stamp(str(path)), self._kept.get(str(path))
        return (kept if kept is not None and kept.settled and kept.seen == seen else None), seen

    def _keep(self, path: Path, kept: _Kept) -> _Kept:
        self._kept[str(path)] = kept
        return kept
