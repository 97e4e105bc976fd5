"""nanobot's session files: a line of metadata, then chat messages, one a line.

What is known of them comes from the program's own source (`nanobot/session/manager.py`). The first `last_consolidated`
messages were taken into its memory and are no longer sent; the summary of them, where the metadata has it
(`_last_summary`), stands for them. The file tells no time of that, so the head stands at its end: it is what holds now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .book import Account, Book
from .dialog import take_message
from .drafts import Draft
from .lines import Line
from .parts import Object, a_text, an_object, count, moment


def read(lines: Iterable[Line], account: Account) -> Iterator[Book]:
    """The conversation of a file."""
    book = Book(account)
    told: list[tuple[int, Object]] = []
    messages: list[Draft | None] = []  # by their place, as the metadata counts them
    for line in lines:
        if line.value is None:
            continue
        if line.value.get("_type") == "metadata":
            told.append((line.number, line.value))
            _begin(book, line.number, line.value)
            continue
        before = len(book.drafts)
        take_message(book, line.number, line.value, "nanobot")
        messages.append(book.drafts[-1] if len(book.drafts) > before else None)
    if told:
        _consolidated(book, *told[-1], messages)
    book.finish()
    yield book


def _begin(book: Book, line: int, value: Object) -> None:
    book.clock(moment(value.get("created_at")))
    key, metadata = a_text(value.get("key")), an_object(value.get("metadata"))
    book.id = key
    book.note(f"Imported from nanobot, where it was the session {key or '(without a key)'}.", line, dict(value))
    if title := a_text(metadata.get("title")).strip():
        book.name(title, line)


def _consolidated(book: Book, line: int, value: Object, messages: list[Draft | None]) -> None:
    """The head for what nanobot had put away."""
    away = count(value.get("last_consolidated"))
    metadata = an_object(value.get("metadata"))
    summary = metadata.get("_last_summary")
    text = a_text(an_object(summary).get("text")) or a_text(summary)
    if book.leaf is None or (not away and not text):
        return
    book.clock(moment(an_object(summary).get("last_active")) or moment(value.get("updated_at")))
    kept = next((draft for draft in messages[away:] if draft is not None), None)
    draft = book.head(text, line, book.spot, kept, cause="nanobot: consolidation")
    book.leaf = draft
