"""Documents where a model takes none, or not this one: their text stands for them, in constant words.

Laws: the words are a function of the document and the reason alone, so what was sent once never changes; base64 is
never text; nothing of a name can close the brackets that it stands in. Doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .messages import Document, Message, Text, ToolResult, UserMessage, UserPart, remember
from .scrub import scrub

PDF = "application/pdf"

#: What a document without a name is called.
UNNAMED = "document.pdf"

#: Why a document is not sent: constant words, as they become part of a request.
TAKES_NONE = "this model takes no {kind}"
TOO_LARGE = "it is too large for this model"
TOO_MANY = "too many documents"
NO_DATA = "its file is not there"

_LONGEST_NAME = 128


def document_name(document: Document) -> str:
    """The name as it can stand in a request: one line, clean, not too long."""
    name = " ".join(scrub(document.name).replace("[", "(").replace("]", ")").split())
    return name[:_LONGEST_NAME] or UNNAMED


def document_title(document: Document) -> str:
    """A document in a few words: `report.pdf, application/pdf, 12 pages`."""
    pages = "" if document.pages is None else f", {document.pages:,} page{'' if document.pages == 1 else 's'}"
    return f"{document_name(document)}, {scrub(document.media_type)}{pages}"


def document_words(document: Document, reason: str) -> str:
    """What stands for a document that is not sent, because of `reason`."""
    title = document_title(document)
    text = scrub(document.text or "").strip()
    if text:
        return f"[document {title}; {reason}, so this is its text:]\n{text}\n[end of {document_name(document)}]"
    why = "no text could be read from it" if document.text is not None else "its text was not read"
    return f"[document left out: {title}; {reason}, and {why}]"


def takes_none(document: Document) -> str:
    return TAKES_NONE.format(kind=scrub(document.media_type))


def document_stub(document: Document) -> Text:
    """What stands for a document that was left out because a request held too many."""
    return Text(document_words(document, TOO_MANY))


def documents_in(message: Message) -> int:
    if not isinstance(message, UserMessage | ToolResult):
        return 0
    return sum(1 for part in message.content if isinstance(part, Document))


def without_documents(message: Message, count: int) -> Message:
    """`message` with its first `count` documents replaced by their text; made once for each count."""
    if not isinstance(message, UserMessage | ToolResult) or count <= 0:
        return message
    return remember(message, f"without_documents/{count}", lambda: _replaced(message, count, document_stub)) or message


def as_text(message: Message) -> Message:
    """`message` as a model that takes no documents reads it; made once."""
    if not isinstance(message, UserMessage | ToolResult) or not documents_in(message):
        return message

    def words(document: Document) -> Text:
        return Text(document_words(document, takes_none(document)))

    return remember(message, "documents_as_text", lambda: _replaced(message, len(message.content), words)) or message


def _replaced(
    message: UserMessage | ToolResult, count: int, make: Callable[[Document], Text]
) -> UserMessage | ToolResult | None:
    """`message` with its first documents replaced; None when it has none (a memo must not refer to its own message)."""
    parts: list[UserPart] = []
    left = count
    for part in message.content:
        if isinstance(part, Document) and left > 0:
            left -= 1
            parts.append(make(part))
        else:
            parts.append(part)
    return replace(message, content=tuple(parts)) if left < count else None
