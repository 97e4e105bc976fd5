"""Files for the next message: /attach FILE, or a line that is nothing but the path of one, as dragging a file gives."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread

from governors.documents import document_title
from governors.messages import Document, Image, Text, UserPart

from ..attachments import attach
from ..providers.base import ChosenModel
from .seat import Act, Seat, tell

#: How a line that is nothing but a path must end to be taken for a file to attach.
_DRAGGED = (".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp")
_NAMED = re.compile(r"\[file (.*):\]")


async def attach_file(seat: Seat, argument: str) -> None:
    if not argument:
        held = ", ".join(map(part_title, seat.attached))
        none = "Nothing is attached. /attach FILE gives a picture, a PDF or a text with the next message."
        tell(seat, f"With the next message: {held}. /detach takes it off." if held else none)
        return
    path = as_path(argument)
    part = await attach(path if path.is_absolute() else Path.cwd() / path)
    seat.attached.append(part)
    unseen = not_seen(part, seat.agent.model)
    tell(seat, f"{part_title(part)} goes with the next message.{f' {unseen}' if unseen else ''}")


async def detach(seat: Seat, argument: str) -> None:
    tell(seat, "Taken off." if seat.attached else "Nothing is attached.")
    seat.attached.clear()


ATTACH_ACTS: Mapping[str, Act] = MappingProxyType({"/attach": attach_file, "/detach": detach})


async def dragged_file(text: str) -> str | None:
    """The file that `text` is the path of and nothing else, as `/attach` takes it; None when it is a message."""
    path = as_path(text)
    if not path.is_absolute() or path.suffix.lower() not in _DRAGGED or "\n" in text:
        return None
    return shlex.quote(str(path)) if await anyio.to_thread.run_sync(_is_file, path) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def as_path(typed: str) -> Path:
    """A path as it was typed, or as a terminal writes a dragged one: quoted, escaped, or as an address."""
    text = typed.strip()
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe in a name
        words = []
    path = Path(words[0] if len(words) == 1 else text)
    try:
        return path.expanduser()
    except RuntimeError:  # of a user that there is not
        return path


def part_title(part: UserPart) -> str:
    """What was attached, in a few words."""
    match part:
        case Document():
            return document_title(part)
        case Image():
            size = f", {part.width:,} x {part.height:,}" if part.width and part.height else ""
            return f"a picture ({part.media_type}{size})"
        case Text():
            named = _NAMED.match(part.text)
            if named is None:
                return f"a text ({len(part.text):,} characters)"
            return f"{named[1]} ({len(part.text) - named.end() - 1:,} characters)"


def not_seen(part: UserPart, model: ChosenModel) -> str:
    """What `model` gets in place of what was attached, in a sentence; empty where it takes such things."""
    match part:
        case Image() if not model.info.abilities.images:
            return f"{model.name} takes no pictures: it reads only that there was one."
        case Document() if not model.info.abilities.documents:
            return f"{model.name} takes no documents: it reads the text of this one."
        case _:
            return ""


def said_lines(content: Sequence[object]) -> str:
    """What a person said as a line each for what was attached, then the words."""
    attached = [f"[{part_title(part)}]" for part in content if isinstance(part, (Image, Document))]
    words = [part.text for part in content if isinstance(part, Text)]
    return "\n\n".join(filter(None, ["\n".join(attached), *words]))
