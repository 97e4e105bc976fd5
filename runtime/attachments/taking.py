"""A file as a part of a message: looked at, made to fit, or refused with the numbers.

Laws: what is taken fits a request of every provider in the catalog by its encoded size; what is refused changes nothing
anywhere; the text of a PDF is read here and never again.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from governors.documents import PDF
from governors.messages import Document, Image, Text, UserPart

from ..errors import MoonwakeError
from .pdf import BrokenPdf, read_pdf
from .pictures import LONGEST_SIDE, MOST_ENCODED, Picture, is_too_large, picture_of, shrunk

#: Bytes of base64 text of one document: with what is said around it, a request stays under 32 MB.
MOST_DOCUMENT = 24_000_000
#: Bytes of a file that is looked at: a larger picture could be made smaller, but not in reasonable memory.
MOST_READ = 64_000_000
#: Characters of a text file that is attached.
MOST_CHARACTERS = 200_000
#: Seconds for all of it.
_PATIENCE = 60.0


class CannotAttach(MoonwakeError):
    """A file cannot be given to a model; the text names it, says why, with the numbers, and what to do."""


async def attach(path: Path) -> UserPart:
    """The file `path` as a part of a message. Raises `CannotAttach`."""
    with anyio.move_on_after(_PATIENCE):
        return await anyio.to_thread.run_sync(partial(take_file, path), abandon_on_cancel=True)
    raise CannotAttach(f"{path} could not be read within {_PATIENCE:.0f} seconds. Attach a smaller file")


def take_file(path: Path) -> UserPart:
    """The same, at once: it reads the file. Raises `CannotAttach`."""
    path = path.expanduser()
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise CannotAttach(f"{path} is not a file that can be attached: it is a folder or a device")
            if facts.st_size > MOST_READ:
                raise CannotAttach(
                    f"{path} has {facts.st_size:,} bytes; the most that can be attached is {MOST_READ:,}"
                )
            data = file.read(MOST_READ)
    except OSError as error:
        raise CannotAttach(f"{path} cannot be attached: {(error.strerror or str(error)).lower()}") from None
    return take(path.name, data)


def take(name: str, data: bytes) -> UserPart:
    """The content of a file called `name` as a part of a message. Raises `CannotAttach`."""
    if not data:
        raise CannotAttach(f"{name} is empty")
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return _document(name, data)
    if (picture := picture_of(data)) is not None:
        return _image(name, data, picture)
    return _text(name, data)


def check_sizes(parts: Iterable[UserPart]) -> tuple[UserPart, ...]:
    """`parts` as they are, when each of them fits a request. Raises `CannotAttach`."""
    content = tuple(parts)
    for part in content:
        if isinstance(part, Image) and len(part.data) > MOST_ENCODED:
            raise _too_large(f"the {part.media_type} picture", len(part.data), MOST_ENCODED)
        if isinstance(part, Document) and len(part.data) > MOST_DOCUMENT:
            raise _too_large(part.name or "the document", len(part.data), MOST_DOCUMENT)
    return content


def _document(name: str, data: bytes) -> Document:
    encoded = 4 * ((len(data) + 2) // 3)
    if encoded > MOST_DOCUMENT:
        raise _too_large(name, encoded, MOST_DOCUMENT, "Split it, or attach only the pages that matter")
    try:
        read = read_pdf(data)
    except BrokenPdf as error:
        raise CannotAttach(f"{name} {error}") from None
    return Document(PDF, base64.b64encode(data).decode(), name, read.pages, read.text)


def _image(name: str, data: bytes, picture: Picture) -> Image:
    if not picture.width or not picture.height:
        raise CannotAttach(f"{name} is damaged: its size in pixels cannot be read. Open it and save it anew")
    if is_too_large(picture, 4 * ((len(data) + 2) // 3)):
        smaller = shrunk(data)
        found = picture_of(smaller) if smaller is not None else None
        if smaller is None or found is None or is_too_large(found, 4 * ((len(smaller) + 2) // 3)):
            size = f"{picture.width:,} x {picture.height:,} pixels, {4 * ((len(data) + 2) // 3):,} bytes in base64"
            raise CannotAttach(
                f"{name} is too large: {size}; at most {LONGEST_SIDE:,} pixels at the longer side and {MOST_ENCODED:,} "
                "bytes can be sent. Make it smaller, or install Pillow, which does it (pip install 'moonwake[images]')"
            )
        data, picture = smaller, found
    encoded = base64.b64encode(data).decode()
    return Image(picture.media_type, encoded, picture.width, picture.height)


def _text(name: str, data: bytes) -> Text:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise CannotAttach(
            f"{name} is no picture (PNG, JPEG, GIF, WebP), no PDF and no text in UTF-8. Convert it to one of these"
        )
    if len(text) > MOST_CHARACTERS:
        raise CannotAttach(
            f"{name} has {len(text):,} characters; the most that can be attached as text is {MOST_CHARACTERS:,}. "
            "Put it in the workspace, where the model can read parts of it"
        )
    return Text(f"[file {name}:]\n{text}")


def _too_large(name: str, size: int, most: int, advice: str = "Give a smaller one") -> CannotAttach:
    return CannotAttach(
        f"{name} is too large: {size:,} bytes in base64, as it is sent; the most that can be sent is {most:,}. {advice}"
    )
