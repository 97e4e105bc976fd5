"""Files and folders as last read, read again only when their stamp says so. Blocks.

What a file once held and no longer gives is not kept here: what was shown stands in the log, and stays for whoever was
shown it (`pressure.keep_shown`). So equal files give an equal prompt, whatever was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    """After `begin()`, a build calls `read`, `list_skills` and `watch`; `watched`, `seen`, `settled` tell what it rests
    on. `now_ns` is the clock that file times are compared with."""

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

    def read(self, path: Path, limit: int, inside: Path | None) -> FileText:
        """The file's text (`inside`: see `read_text`). One that the system refuses is tried again at the next build."""
        kept, seen = self._look(path)
        if kept is None:
            read_at = self._now_ns()
            content = read_text(path, limit, inside)
            kept = _Kept(seen, is_settled(seen, read_at) and not content.refused, content)
        return self._use(path, kept).content

    def list_skills(self, root: SkillRoot) -> tuple[tuple[Path, ...], str | None]:
        """The SKILL.md files below `root`, and the problem if it cannot be listed."""
        kept, seen = self._look(root.folder)
        if kept is None:
            read_at = self._now_ns()
            try:
                files = list_skill_files(root)
            except OSError as error:
                content = FileText(problem=f"cannot list the skills in {root.folder}: {error.strerror}")
                kept = _Kept(seen, False, content)
            else:
                kept = _Kept(seen, is_settled(seen, read_at), FileText(), files)
        self._use(root.folder, kept)
        return kept.files, kept.content.problem

    def watch(self, folder: Path) -> None:
        """The next builds rest on what stands in `folder`, too. Call it before looking into the folder."""
        seen = stamp(str(folder))
        self._used[str(folder)] = _Kept(seen, is_settled(seen, self._now_ns()), FileText())

    def _look(self, path: Path) -> tuple[_Kept | None, Stamp]:
        """What is kept of `path` if it can still be trusted, and its stamp, taken before any reading."""
        seen, kept = stamp(str(path)), self._kept.get(str(path))
        return (kept if kept is not None and kept.settled and kept.seen == seen else None), seen

    def _use(self, path: Path, kept: _Kept) -> _Kept:
        self._kept[str(path)] = self._used[str(path)] = kept
        return kept
