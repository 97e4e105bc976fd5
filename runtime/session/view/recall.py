"""Reading back what is out of a model's view: the log has it all.

`recall` takes what a model can know: the handle that a stub or a cut output names, the number of an entry (`#12`), or
words that were said. It reads the entries that it is given, and the blobs that hold their long outputs: call it in a
thread where there are some. Nothing of a redacted entry is told: who asks for it
by its number or handle is told that it was redacted, and no words are found in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from governors.documents import document_title
from governors.messages import Document, Text
from governors.microcompact import handle_of, text_handle

from ..entries import Blob, Entry, ExtensionRecord, MessageRecord, Part, ResultRecord
from ..format.blobs import BlobStore
from .redaction import REDACTED, redacted_entries
from .wrapping import SHELL

_HANDLE = re.compile(r"[0-9a-f]{12}")
_NUMBER = re.compile(r"#?(\d+)")
_MOST_FOUND = 10
_AROUND = 160  # characters on each side of a find


def recall(
    entries: Sequence[Entry], what: str, redacted: Collection[int] = (), blobs: BlobStore | None = None
) -> str | None:
    """The text that `what` names, or the places where its words were said; None when there is nothing.

    `redacted` are redacted entries beside those that `entries` say are; `blobs` has what is too long for the log.
    """
    wanted = what.strip()
    hidden = redacted_entries(entries, redacted)
    if _HANDLE.fullmatch(wanted):
        found = (
            (text, entry.id) for entry in reversed(entries) if (text := _by_handle(entry, wanted, blobs)) is not None
        )
        refused = None
        for text, identity in found:
            if identity not in hidden:
                return text
            refused = REDACTED
        if refused is not None:
            return refused
    number = _NUMBER.fullmatch(wanted)
    if number is not None:
        identity = int(number[1])
        text = next((text for entry in entries if entry.id == identity and (text := _text(entry, blobs))), None)
        return REDACTED if text is not None and identity in hidden else text
    told = (entry for entry in reversed(entries) if entry.id not in hidden)
    finds = list(islice((find for entry in told for find in _mentions(entry, wanted, blobs)), _MOST_FOUND))
    return "\n\n".join(finds) if finds else None


def _by_handle(entry: Entry, handle: str, blobs: BlobStore | None) -> str | None:
    record = entry.record
    if not isinstance(record, (ResultRecord, ExtensionRecord)):
        return None
    whole = _whole(record, blobs)
    if whole is not None and text_handle(whole) == handle:
        return whole
    if handle_of(record.content) != handle:
        return None
    return _text(entry, blobs) or f"(entry #{entry.id} holds {len(record.content)} pictures and no text)"


def _whole(record: ResultRecord | ExtensionRecord, blobs: BlobStore | None) -> str | None:
    """The whole of an output that was cut; None where there is no more than the log shows, or its blob is gone."""
    if isinstance(record.whole, Blob):
        return None if blobs is None else blobs.get(record.whole)
    return record.whole


def _text(entry: Entry, blobs: BlobStore | None) -> str:
    record = entry.record
    whole = _whole(record, blobs) if isinstance(record, (ResultRecord, ExtensionRecord)) else None
    if whole is not None:
        return whole
    if not isinstance(record, (MessageRecord, ResultRecord, ExtensionRecord)):
        return ""
    return "\n\n".join(filter(None, map(_words, record.content)))


def _words(part: Part) -> str:
    """The text of a text or a document."""
    match part:
        case Text(text):
            return text
        case Document(text=text) if text:
            return f"[{document_title(part)}:]\n{text}"
        case _:
            return ""


def _mentions(entry: Entry, words: str, blobs: BlobStore | None) -> Iterator[str]:
    """The first place in an entry where `words` stand, with what is around them."""
    text = _text(entry, blobs)
    place = text.casefold().find(words.casefold()) if words else -1
    if place < 0:
        return
    record = entry.record
    if isinstance(record, ExtensionRecord):
        who = "what the user ran" if record.name == SHELL else f"the extension {record.name}"
    else:
        who = record.role if isinstance(record, MessageRecord) else "result of " + getattr(record, "tool", "a tool")
    start, end = max(0, place - _AROUND), place + len(words) + _AROUND
    shown = ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
    yield f"#{entry.id} ({who}, {entry.at}): {shown}"
