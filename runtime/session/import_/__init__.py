"""Sessions of other programs as sessions of ours: pi, Claude Code, Codex, nanobot, and chat dialogs.

    imported = await import_session(path, store, agent)   # the session's id, and what became of every line
    print(imported.text())
    for found in find_sources("claude-code", Path.home(), os.environ): ...   # where they lie, newest first

A reader a format makes drafts of entries (`book`, `drafts`, `weaving`); `importing` writes them. What is known of each
format is in its reader's module.
"""

from __future__ import annotations

from .finding import Found, find_sources
from .formats import FORMATS, recognise
from .importing import Earlier, Imported, Read, import_now, import_session, read_file
from .lines import Source, look_at
from .report import Report

__all__ = [
    "FORMATS",
    "Earlier",
    "Found",
    "Imported",
    "Read",
    "Report",
    "Source",
    "find_sources",
    "import_now",
    "import_session",
    "look_at",
    "read_file",
    "recognise",
]
