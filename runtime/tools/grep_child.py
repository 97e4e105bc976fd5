"""The search behind the tool grep, run as a script of its own: `python -I -S grep_child.py REQUEST`.

REQUEST is JSON: `pattern`, `ignore_case`, `glob` (or null), `descriptor` (an open folder), `name` (a file in it, or
null for the whole folder), `prefix` (what the shown paths begin with) and the limits. It prints one JSON array
`[path, line number, text]` a match and at last an object with the counts. It follows no symlinks. Standard library
only: nothing of the package may be imported here.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator
from typing import Any

_MEMORY = 1 << 30  # bytes: a pattern such as ((a{999}){999}){999} must not take the machine
_PROBE = 8_192
_SKIPPED_FOLDERS = frozenset({".git", ".moonwake"})


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    request = json.loads(sys.argv[1])
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        _say({"wrong_pattern": str(error) or type(error).__name__})
        return
    counts = {"files": 0, "large": 0, "binary": 0, "matches": 0}
    for path, folder, name in _files(request):
        data = _read(folder, name, request["largest_file"], counts)
        if data is None:
            continue
        counts["files"] += 1
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            if pattern.search(line):
                counts["matches"] += 1
                _say([path, number, line.rstrip("\r")[: request["longest_line"]]])
                if counts["matches"] >= request["most_matches"]:
                    _say(counts)
                    return
    _say(counts)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()  # what was found is kept if this process is ended


def _files(request: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    descriptor, prefix = request["descriptor"], request["prefix"]
    if request["name"] is not None:
        yield prefix, descriptor, request["name"]
        return
    globs = _globs(request["glob"])
    for folder, folders, names, opened in os.fwalk(".", dir_fd=descriptor):
        folders[:] = sorted(name for name in folders if name.casefold() not in _SKIPPED_FOLDERS)
        relative = folder.removeprefix(".").removeprefix("/")
        for name in sorted(names):
            below = f"{relative}/{name}" if relative else name
            if globs is None or any(fnmatch.fnmatchcase(below, glob) for glob in globs):
                yield (f"{prefix}/{below}" if prefix else below), opened, name


def _globs(glob: str | None) -> list[str] | None:
    """The glob as patterns of fnmatch, whose `*` also crosses folders; `{a,b}` becomes one pattern each."""
    if not glob:
        return None
    start, end = glob.find("{"), glob.find("}")
    if 0 <= start < end:
        options = glob[start + 1 : end].split(",")[:50]
        return [one for option in options for one in _globs(glob[:start] + option + glob[end + 1 :]) or ()]
    glob = glob.removeprefix("./").replace("**/", "*")
    return [glob] if "/" in glob else [glob, f"*/{glob}"]


def _read(folder: int, name: str, largest: int, counts: dict[str, int]) -> bytes | None:
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:  # it went away, or may not be read
        return None
    with os.fdopen(descriptor, "rb") as handle:
        if os.fstat(descriptor).st_size > largest:
            counts["large"] += 1
            return None
        data = handle.read(largest)
    if b"\0" in data[:_PROBE]:
        counts["binary"] += 1
        return None
    return data


if __name__ == "__main__":
    main()
