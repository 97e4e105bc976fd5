"""Dialogs of chat messages: one dialog a line (`messages`), or one message a line.

A line with `messages` is a conversation of its own; messages that stand alone on their lines make one together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .book import Account, Book
from .dialog import take_message
from .lines import Line
from .parts import Object, a_text, moment, objects


def read(lines: Iterable[Line], account: Account) -> Iterator[Book]:
    """The conversations of a file."""
    loose = Book(account)
    for line in lines:
        if line.value is None:
            continue
        if isinstance(line.value.get("messages"), list):
            yield _dialog(line.number, line.value, account)
        else:
            take_message(loose, line.number, line.value, "chat")
    loose.finish()
    yield loose


def _dialog(number: int, value: Object, account: Account) -> Book:
    book = Book(account)
    book.clock(moment(value.get("timestamp") or value.get("created_at") or value.get("created")))
    messages = list(objects(value.get("messages")))
    if len(messages) < len(value["messages"]):
        account.lose(number, "messages that are no objects")
    for message in messages:
        take_message(book, number, message, "chat", a_text(value.get("model")) or None)
    if not book.drafts:
        account.leave(number, "a dialog without messages")
    book.id = str(value.get("id") or "")
    book.title = a_text(value.get("title")) or book.title or a_text(value.get("id"))
    book.finish()
    return book
