"""What `read_file` gives of a picture or a PDF: the thing itself, where the model can take it, or lines of its text."""

from __future__ import annotations

import io
from typing import BinaryIO

from governors.documents import document_title
from governors.messages import Document, Image, Text, UserPart

from ..attachments import CannotAttach, take
from ..errors import ToolError
from .base import ToolOutput
from .confine import Place
from .reading import read_window, shown_window

#: As `reading.guess_binary` names them.
ATTACHABLE = frozenset({"a PNG image", "a JPEG image", "a GIF image", "a WebP image", "a PDF document"})
LARGEST = 32_000_000  # bytes


def shown_file(place: Place, kind: str, handle: BinaryIO, size: int, offset: int, limit: int) -> ToolOutput:
    """A picture or a PDF, from a file open at its start; from a line after the first on, lines of a PDF's text.

    Raises `ToolError`.
    """
    if size > LARGEST:
        raise ToolError(f"{place} is {kind} of {size:,} bytes; at most {LARGEST:,} of a picture or a PDF can be read")
    try:
        part = take(place.parts[-1], handle.read(LARGEST))
    except CannotAttach as error:
        raise ToolError(f"{place} seems to be {kind}, {size:,} bytes, but {error}") from None
    if isinstance(part, Document) and offset > 1:
        data = (part.text or "").encode()
        window = read_window(io.BytesIO(data), offset, limit)
        return ToolOutput((Text(shown_window(f"the text of {place}", window, len(data))),))
    return ToolOutput((Text(_title(part)), part))


def _title(part: UserPart) -> str:
    match part:
        case Document():
            lines = (part.text or "").count("\n") + 1 if part.text else 0
            text = f"its text has {lines:,} lines, which offset reads" if lines else "there is no text in it"
            return f"[{document_title(part)}; {text}]"
        case Image():
            size = f", {part.width} x {part.height} pixels" if part.width and part.height else ""
            return f"[{part.media_type}{size}]"
        case Text():
            return "[text]"
