"""The tool grep: finds lines in the files of the workspace.

The search runs in a process of its own (`grep_child`). A regular expression can take longer than the universe
lasts, and while Python matches, no other thread of the process runs: only a process can be ended from outside. It
costs 30 ms a call and needs no program that may be missing.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from ..errors import ToolError
from .base import Tool, ToolContext
from .confine import Place, explained, locate, open_folder, open_parent
from .function import tool
from .process import Finished, run_process

MOST_MATCHES = 200
LARGEST_FILE = 5_000_000  # bytes
LONGEST_LINE = 300  # characters
LONGEST_SEARCH = 20.0  # seconds
_CHILD = Path(__file__).with_name("grep_child.py")
_MOST_OUTPUT = 2_000_000  # bytes; the limits above allow less


def make_grep(longest: float = LONGEST_SEARCH) -> Tool:
    """The tool grep, whose searches are ended after `longest` seconds."""

    @tool(read_only=True, bulky=True, timeout=None)
    async def grep(
        pattern: str, context: ToolContext, path: str = ".", glob: str | None = None, ignore_case: bool = False
    ) -> str:
        """Find lines that match a Python regular expression in the files of the workspace, as path:line: text.

        Args:
            pattern: Regular expression, matched line by line.
            path: Folder or file to search, relative to the workspace.
            glob: Only files whose name or path matches, such as *.py or src/**/*.{ts,tsx}.
            ignore_case: Take upper and lower case for the same.
        """
        place = locate(context.workspace, path)
        request = {"pattern": pattern, "glob": glob, "ignore_case": ignore_case, "prefix": "/".join(place.parts)}
        finished = await _search(place, request, longest)
        return _shown(read_found(finished), finished, longest)

    return grep


async def _search(place: Place, request: dict[str, Any], longest: float) -> Finished:
    limits = {"most_matches": MOST_MATCHES, "largest_file": LARGEST_FILE, "longest_line": LONGEST_LINE}
    with ExitStack() as opened:
        descriptor, name = await anyio.to_thread.run_sync(_open, place, opened)
        request = {**request, **limits, "descriptor": descriptor, "name": name}
        try:
            return await run_process(
                [sys.executable, "-I", "-S", str(_CHILD), json.dumps(request)],
                folder="/",
                environment={},
                timeout=longest,
                head=_MOST_OUTPUT,
                tail=0,
                pass_fds=[descriptor],
            )
        except OSError as error:
            raise ToolError(f"the search could not be started: {error}") from None


def _open(place: Place, opened: ExitStack) -> tuple[int, str | None]:
    """A descriptor to search below, and the name of a single file in it."""
    with explained(place):
        try:
            return opened.enter_context(open_folder(place)), None
        except NotADirectoryError:
            descriptor, name = opened.enter_context(open_parent(place))
            os.stat(name, dir_fd=descriptor, follow_symlinks=False)  # a missing file is told, not searched
            return descriptor, name


@dataclass(frozen=True, slots=True)
class Found:
    """Matches as shown; `counts` is None if the search was ended before it was through."""

    lines: tuple[str, ...]
    counts: dict[str, int] | None


def read_found(finished: Finished) -> Found:
    """What the child said; raises `ToolError` if it refused the pattern or died."""
    lines: list[str] = []
    counts: dict[str, int] | None = None
    other = ""
    for raw in finished.head.decode("utf-8", "replace").splitlines():
        try:
            said = json.loads(raw)
        except ValueError:  # a traceback, or a line that was being written when the search was ended
            other = raw
            continue
        if isinstance(said, list):
            path, number, text = said
            lines.append(f"{path}:{number}: {text}")
        elif "wrong_pattern" in said:
            raise ToolError(f"the pattern is not a valid regular expression: {said['wrong_pattern']}")
        else:
            counts = said
    if counts is None and not finished.timed_out:
        raise ToolError(f"the search ended early ({other or f'exit code {finished.code}'})")
    return Found(tuple(lines), counts)


def _shown(found: Found, finished: Finished, longest: float) -> str:
    notes: list[str] = []
    if finished.timed_out:
        notes.append(f"[stopped after {longest:g} s, so there may be more; use a simpler pattern or a smaller path]")
    elif found.counts is not None:
        if found.counts["matches"] >= MOST_MATCHES:
            notes.append(f"[stopped at {MOST_MATCHES} matches; use a narrower pattern, path or glob]")
        elif not found.lines:
            notes.append(f"[no match; files searched: {found.counts['files']:,}]")
        skipped = [f"{found.counts[kind]:,} {kind}" for kind in ("large", "binary") if found.counts[kind]]
        if skipped:
            notes.append(f"[files not searched: {' and '.join(skipped)}; large means over {LARGEST_FILE:,} bytes]")
    return "\n".join([*found.lines, *notes])
