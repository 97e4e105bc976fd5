"""The form in which any tool's output reaches the log and the model. Pure.

Laws: the text is valid Unicode without NUL; it is at most the limit long, and says how much was cut; it is never
empty. An output that needs no change is returned as the same object. This happens at birth, before the result is
recorded, so the log holds what the model read.
"""

from __future__ import annotations

from dataclasses import replace

from governors.messages import Image, Text

from .base import ToolOutput

#: Characters of one output that are kept, marker included.
OUTPUT_LIMIT = 40_000
NO_OUTPUT = "(no output)"
_MARKER_ROOM = 120
#: The least limit: the marker must fit beside something worth reading.
LEAST_LIMIT = 1_000


def finish(output: ToolOutput, limit: int = OUTPUT_LIMIT) -> ToolOutput:
    """`output` scrubbed, cut to `limit` characters over all its texts, and not empty."""
    scrubbed = tuple(part if isinstance(part, Image) else _scrubbed(part) for part in output.content)
    kept = tuple(part for part in scrubbed if isinstance(part, Image) or part.text.strip())
    if not kept:
        kept = (Text(NO_OUTPUT),)
    total = sum(len(part.text) for part in kept if isinstance(part, Text))
    if total > limit:
        kept = tuple(
            part if isinstance(part, Image) else Text(cut(part.text, limit * len(part.text) // total)) for part in kept
        )
    return output if kept == output.content else replace(output, content=kept)


def scrub(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD and NUL shown as U+2400, which no provider refuses.

    Surrogates that form a pair become the character they stand for.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "␀")


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: its head and tail, and between them a line saying what is missing."""
    if len(text) <= limit:
        return text
    room = max(0, limit - _MARKER_ROOM)
    head = room // 2
    tail = room - head
    marker = f"\n[… {len(text) - room:,} of {len(text):,} characters cut here …]\n"
    whole = text[:head] + marker + (text[-tail:] if tail else "")
    return whole if len(whole) <= limit else text[:limit]


def _scrubbed(part: Text) -> Text:
    clean = scrub(part.text)
    return part if clean is part.text or clean == part.text else Text(clean)
