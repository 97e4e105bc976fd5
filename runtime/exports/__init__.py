"""Sessions as documents: Markdown, a page of HTML, a session file that stands alone, an ATIF trajectory; and what a
model saw at any entry.

    reading = read_log(path, blobs)
    Path("talk.html").write_text(to_html(reading.header, reading.entries))

All take the header and all entries of a session, and show nothing that was redacted. Nothing is read or written here,
but blobs by `to_jsonl`.
"""

from __future__ import annotations

from .as_model import Seen, as_model, request_at
from .atif import to_atif
from .html import to_html
from .jsonl import chosen, to_jsonl
from .markdown import to_markdown
from .segments import transcript
from .transcript import Transcript
from .veil import veiled

__all__ = [
    "Seen",
    "Transcript",
    "as_model",
    "chosen",
    "request_at",
    "to_atif",
    "to_html",
    "to_jsonl",
    "to_markdown",
    "transcript",
    "veiled",
]
