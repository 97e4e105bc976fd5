"""The form in which any tool's output reaches the log and the model. Pure.

Laws: the text is valid Unicode without NUL; it is at most the limit long, and says how much was cut; it is never
empty. An output that needs no change is returned as the same object. This happens at birth, before the result is
recorded: the model reads head and tail, and the log keeps the whole, which `recall` gives back by its handle.
"""

from __future__ import annotations

from dataclasses import replace

from governors.messages import Text, UserPart
from governors.microcompact import text_handle
from governors.scrub import scrub as scrub_surrogates

from .base import ToolOutput

#: Characters of one output that are kept, marker included.
OUTPUT_LIMIT = 40_000
#: Characters of one output that the log keeps.
WHOLE_LIMIT = 1_000_000
NO_OUTPUT = "(no output)"
_MARKER_ROOM = 120
#: The least limit: the marker must fit beside something worth reading.
LEAST_LIMIT = 1_000


def finish(output: ToolOutput, limit: int = OUTPUT_LIMIT) -> ToolOutput:
    """`output` scrubbed, cut to `limit` characters over all its texts, and not empty."""
    scrubbed = tuple(_scrubbed(part) if isinstance(part, Text) else part for part in output.content)
    kept: tuple[UserPart, ...] = tuple(part for part in scrubbed if not isinstance(part, Text) or part.text.strip())
    if not kept:
        kept = (Text(NO_OUTPUT),)
    total = sum(len(part.text) for part in kept if isinstance(part, Text))
    whole = output.whole
    if total > limit:
        whole = cut("\n\n".join(part.text for part in kept if isinstance(part, Text)), WHOLE_LIMIT)
        handle = text_handle(whole)
        kept = tuple(
            Text(cut(part.text, limit * len(part.text) // total, handle)) if isinstance(part, Text) else part
            for part in kept
        )
    return output if kept == output.content else replace(output, content=kept, whole=whole)


def scrub(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD and NUL shown as U+2400, which no provider refuses."""
    return scrub_surrogates(text).replace("\0", "␀")


def cut(text: str, limit: int, handle: str | None = None) -> str:
    """`text` in at most `limit` characters: its head and tail, and between them a line saying what is missing, and the
    handle under which `recall` has the whole."""
    if len(text) <= limit:
        return text
    room = max(0, limit - _MARKER_ROOM)
    head = room // 2
    tail = room - head
    readable = f"; recall {handle}" if handle else ""
    marker = f"\n[… {len(text) - room:,} of {len(text):,} characters cut here{readable} …]\n"
    whole = text[:head] + marker + (text[-tail:] if tail else "")
    return whole if len(whole) <= limit else text[:limit]


def _scrubbed(part: Text) -> Text:
    clean = scrub(part.text)
    return part if clean is part.text or clean == part.text else Text(clean)
