"""Importing the sessions of other programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from ..channels.sanitize import clean
from ..config import load_config
from ..errors import MoonwakeError
from ..session.import_ import FORMATS, find_sources, import_session
from .base import Shelf, put, say
from .printing import table


async def import_files(
    on: Shelf, files: Sequence[Path], source: str | None, *, everything: bool, listed: bool, again: bool
) -> int:
    """Import sessions of other programs, or list where they lie; exit code 1 when a file could not be imported."""
    paths = list(files)
    if not paths:
        paths = await anyio.to_thread.run_sync(partial(_found, source, everything=everything, listed=listed))
        if listed:
            return 0
    agent = on.agent or load_config(on.workspace.root).agent
    failed = 0
    for path in paths:
        try:
            done = await import_session(path, on.store, agent, format=source, again=again, blobs=on.blobs)
        except MoonwakeError as error:
            if len(paths) == 1:
                raise
            failed += 1
            say(f"{path}: {error}")
            continue
        put(clean(done.text()).split("\n"))
    return int(bool(failed))


def _found(source: str | None, *, everything: bool, listed: bool) -> list[Path]:
    """Where another program keeps its sessions."""
    places = [each for each in FORMATS if each != "chat"]
    if source is None and not listed:
        raise MoonwakeError(f"name files to import, or a program with --from: {', '.join(places)}")
    found = [each for name in ([source] if source else places) for each in find_sources(name, Path.home(), os.environ)]
    if listed:
        rows = [(each.format, each.changed[:10], f"{each.size:,}", f"{each.path}  {each.title}") for each in found]
        put(table(rows, 10_000, right=frozenset({2})))
    if not found:
        say(f"no sessions of {source or 'any known program'} were found under {Path.home()}")
    if not listed and found and not everything:
        raise MoonwakeError(
            f"{len(found)} sessions of {source} were found: --list shows them, --all imports all of them; "
            "or name the files"
        )
    return [each.path for each in found]
