"""The tools read_file, write_file, edit_file and list_dir. All of them stay in the workspace (see `confine`).

Reading runs in a thread that is left behind if the turn is cancelled; writing is short and always finishes, so
that a cancelled call has either replaced the file or not touched it.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from ..errors import ToolError
from ..workspace import STATE_FOLDER
from .base import ToolContext, ToolOutput
from .confine import explained, locate, open_file, open_folder, replace_file
from .editing import Edit, apply_edit
from .function import tool
from .reading import probe, read_window, shown_window
from .seeing import ATTACHABLE, shown_file

LARGEST_EDITED = 10_000_000  # bytes
MOST_LISTED = 500

# Two calls of one reply run at the same time: without this, one of two edits of a file would be lost.
_changing = threading.Lock()


@tool(read_only=True, bulky=True)
def read_file(
    path: str,
    context: ToolContext,
    offset: Annotated[int, Field(ge=1)] = 1,
    limit: Annotated[int, Field(ge=1)] = 2000,
) -> str | ToolOutput:
    """Read a text file of the workspace, or see a picture or a PDF. A note at the end says if there is more, and
    how to go on.

    Args:
        path: File, relative to the workspace.
        offset: First line to read, from 1.
        limit: How many lines to read at most.
    """
    place = locate(context.workspace, path)
    with explained(place), open_file(place) as handle:
        size = os.fstat(handle.fileno()).st_size
        kind = probe(handle)
        if kind is not None and kind in ATTACHABLE:
            return shown_file(place, kind, handle, size, offset, limit)
        if kind is not None:
            raise ToolError(f"{place} is not a text file: it seems to be {kind}, {size:,} bytes")
        window = read_window(handle, offset, limit)
    return shown_window(str(place), window, size)


@tool
async def write_file(path: str, content: str, context: ToolContext) -> str:
    """Write a whole file of the workspace, replacing what was there; missing folders are made.

    Args:
        path: File, relative to the workspace.
        content: All the text of the file.
    """
    return await anyio.to_thread.run_sync(_write, context, path, content)


def _write(context: ToolContext, path: str, content: str) -> str:
    place = locate(context.workspace, path, writing=True)
    data = _encoded(content, "content")
    with _changing:
        replaced = replace_file(place, data)
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{'replaced' if replaced else 'created'} {place}: {len(data):,} bytes, {lines:,} lines"


@tool
async def edit_file(path: str, old_text: str, new_text: str, context: ToolContext, replace_all: bool = False) -> str:
    """Replace text in a file of the workspace. The old text must stand there exactly, and only once.

    Args:
        path: File, relative to the workspace.
        old_text: Text to replace, exactly as in the file, with enough lines around it to be unique.
        new_text: Text to put in its place.
        replace_all: Replace every occurrence instead of exactly one.
    """
    edit = Edit(_encoded(old_text, "old_text"), _encoded(new_text, "new_text"), replace_all)
    return await anyio.to_thread.run_sync(_edit, context, path, edit)


def _edit(context: ToolContext, path: str, edit: Edit) -> str:
    place = locate(context.workspace, path, writing=True)
    with _changing:
        with explained(place), open_file(place) as handle:
            data = handle.read(LARGEST_EDITED + 1)
        if len(data) > LARGEST_EDITED:
            raise ToolError(f"{place} is larger than {LARGEST_EDITED:,} bytes, the most that edit_file takes")
        edited, lines = apply_edit(str(place), data, edit)
        replace_file(place, edited)
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} places, first in line {lines[0]}"
    return f"edited {place} at {where}; it has {len(edited):,} bytes now"


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name} holds a lone surrogate at character {error.start}, which no text file can; nothing was written"
        ) from None


@tool(read_only=True, bulky=True)
def list_dir(context: ToolContext, path: str = ".") -> str:
    """List a folder of the workspace: folders end in /, files have their size in bytes.

    Args:
        path: Folder, relative to the workspace.
    """
    place = locate(context.workspace, path)
    with explained(place), open_folder(place) as folder:
        names = sorted(name for name in os.listdir(folder) if place.parts or name.casefold() != STATE_FOLDER)  # noqa: PTH208 - no descriptors in pathlib
        lines = [_listed(folder, name) for name in names[:MOST_LISTED]]
    if not lines:
        return "[the folder is empty]"
    if len(names) > len(lines):
        lines.append(f"[{len(names) - len(lines):,} more entries are not shown; grep with a glob finds files by name]")
    return "\n".join(lines)


def _listed(folder: int, name: str) -> str:
    shown = name.replace("\n", "\\n").replace("\r", "\\r")
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            return f"{shown} -> {os.readlink(name, dir_fd=folder)}"
    except OSError:  # it went away since the names were read
        return f"{shown}  (gone)"
    if stat.S_ISDIR(info.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(info.st_mode):
        return f"{shown}  {info.st_size:,}"
    return f"{shown}  (special file)"
