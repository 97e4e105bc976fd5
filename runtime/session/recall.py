"""Reading back what is out of a model's view: the log has it all.

`recall` takes what a model can know: the handle that a stub or a cut output names, the number of an entry (`#12`), or
words that were said. Pure; it reads the branch that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from governors.messages import Text
from governors.microcompact import handle_of, text_handle

from .entries import Entry, MessageRecord, ResultRecord

_HANDLE = re.compile(r"[0-9a-f]{12}")
_NUMBER = re.compile(r"#?(\d+)")
_MOST_FOUND = 10
_AROUND = 160  # characters on each side of a find


def recall(branch: Sequence[Entry], what: str) -> str | None:
    """The text that `what` names, or the places where its words were said; None when there is nothing."""
    wanted = what.strip()
    if _HANDLE.fullmatch(wanted):
        found = next((text for entry in reversed(branch) if (text := _by_handle(entry, wanted)) is not None), None)
        if found is not None:
            return found
    number = _NUMBER.fullmatch(wanted)
    if number is not None:
        return next((text for entry in branch if entry.id == int(number[1]) and (text := _text(entry))), None)
    finds = [find for entry in reversed(branch) for find in _mentions(entry, wanted)][:_MOST_FOUND]
    return "\n\n".join(finds) if finds else None


def _by_handle(entry: Entry, handle: str) -> str | None:
    record = entry.record
    if not isinstance(record, ResultRecord):
        return None
    if isinstance(record.whole, str) and text_handle(record.whole) == handle:
        return record.whole
    if handle_of(record.content) != handle:
        return None
    return _text(entry) or f"(entry #{entry.id} holds {len(record.content)} pictures and no text)"


def _text(entry: Entry) -> str:
    record = entry.record
    if isinstance(record, ResultRecord) and isinstance(record.whole, str):
        return record.whole
    if not isinstance(record, (MessageRecord, ResultRecord)):
        return ""
    return "\n\n".join(part.text for part in record.content if isinstance(part, Text))


def _mentions(entry: Entry, words: str) -> Iterator[str]:
    """The first place in an entry where `words` stand, with what is around them."""
    text = _text(entry)
    place = text.casefold().find(words.casefold()) if words else -1
    if place < 0:
        return
    record = entry.record
    who = record.role if isinstance(record, MessageRecord) else "result of " + getattr(record, "tool", "a tool")
    start, end = max(0, place - _AROUND), place + len(words) + _AROUND
    shown = ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
    yield f"#{entry.id} ({who}, {entry.at}): {shown}"
