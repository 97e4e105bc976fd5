"""What stands in a PDF: its pages and its text, read once, for models that take no documents.

Synchronous, and slow for long documents (some 10 to 50 ms a page): call it in a thread.
"""

from __future__ import annotations

import io
import logging
import time
from dataclasses import dataclass

from governors.scrub import scrub

#: Characters of text that are kept of a document: some 50,000 tokens.
MOST_TEXT = 200_000
#: Seconds for reading text; what was read by then is kept. It is looked at between pages.
MOST_SECONDS = 20.0


class BrokenPdf(ValueError):
    """The text says what is wrong with it, to follow the name of the file."""


@dataclass(frozen=True, slots=True)
class Read:
    """`text` is empty when there is none to be read, as in a scan."""

    pages: int
    text: str


def read_pdf(data: bytes) -> Read:
    """Pages and text of a PDF. Raises `BrokenPdf`."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    _be_quiet()
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted:
            raise BrokenPdf(
                "is encrypted, and no provider takes that. Save it without a password (qpdf --decrypt IN OUT) and "
                "attach it again"
            )
        pages = len(reader.pages)
    except BrokenPdf:
        raise
    except (PyPdfError, *_FOREIGN) as error:
        raise BrokenPdf(
            f"cannot be read as a PDF ({_words(error)}). Open it and save it anew, or attach another"
        ) from None
    if pages < 1:
        raise BrokenPdf("is a PDF without a page")
    return Read(pages, _text_of(reader.pages, pages))


def _text_of(pages: object, count: int) -> str:
    from pypdf.errors import PyPdfError

    ends, size = time.monotonic() + MOST_SECONDS, 0
    texts: list[str] = []
    for number in range(count):
        if size > MOST_TEXT or time.monotonic() > ends:
            texts.append(f"[the text of pages {number + 1} to {count} is left out]")
            break
        try:
            text = scrub(pages[number].extract_text()).replace("\0", "").strip()  # type: ignore[index] # a sequence of pages, which has no public type
        except (PyPdfError, *_FOREIGN):
            text = f"[page {number + 1} cannot be read]"
        if len(text) > MOST_TEXT - size:
            text = text[: max(0, MOST_TEXT - size)] + f"\n[the rest of page {number + 1} is left out]"
        size += len(text)
        texts += [text] if text else []
    return "\n\n".join(texts)


#: What a reader of files that others made may raise beside its own errors, when they are made badly.
_FOREIGN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__


def _be_quiet() -> None:
    """Its warnings about files go to nobody: whoever gave the file is told by our error."""
    logger = logging.getLogger("pypdf")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
