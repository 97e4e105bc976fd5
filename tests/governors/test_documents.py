"""Documents where a model takes none, and what they cost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from governors.documents import (
    TOO_MANY,
    UNNAMED,
    as_text,
    document_name,
    document_stub,
    document_words,
    documents_in,
    without_documents,
)
from governors.estimate_count import message_count
from governors.messages import Document, Text, ToolResult, UserMessage
from governors.microcompact import handle_of, stub
from governors.tokens import PAGE, PAGE_TEXT, ByteCounter, message_tokens, page_tokens
from governors.wire.common import is_clean
from tests.builders import document, image, result, user
from tests.strategies import documents

COUNTER = ByteCounter()


@given(documents, st.text(max_size=20))
def test_the_words_for_a_document_hold_its_text_and_no_base64(part: Document, reason: str) -> None:
    """Or say that there is none; they are one text for ever, and can be sent."""
    words = document_words(part, "too large")
    assert words == document_words(part, "too large") and is_clean(words)
    assert words.startswith("[document ") and words.endswith("]")
    if part.text is not None and part.text.strip():
        assert "so this is its text" in words
    else:
        assert ("was not read" in words) == (part.text is None)
    if len(part.data) > 40:
        assert part.data not in words


@given(st.text(max_size=300))
def test_a_name_is_one_clean_line_that_closes_no_bracket(name: str) -> None:
    shown = document_name(document(name))
    assert shown and len(shown) <= 128 and is_clean(shown)
    assert not set("[]\n\r") & set(shown)
    assert document_name(document("")) == UNNAMED


def test_documents_become_text_one_by_one_and_once() -> None:
    """The same object each time; doing it again changes nothing; pictures and words stay."""
    first, second = document("a.pdf", text="one"), document("b.pdf", text="two")
    message = user("see", first, image(), second)
    once = without_documents(message, 1)
    assert once is without_documents(message, 1)
    assert isinstance(once, UserMessage)
    assert once.content == (Text("see"), document_stub(first), image(), second)
    assert documents_in(once) == 1 and documents_in(without_documents(message, 2)) == 0
    assert TOO_MANY in document_stub(first).text
    all_text = as_text(message)
    assert as_text(all_text) is all_text and all_text is as_text(message)
    assert as_text(user("no documents", image())) == user("no documents", image())
    kept = result("a", first, tool="read_file", is_error=True)
    shown = as_text(kept)
    assert isinstance(shown, ToolResult) and shown.is_error and shown.call_id == "a" and "one" in shown.text


def test_70_a_document_is_never_free_and_never_its_base64() -> None:
    """FAULTS 68 and 70: pages by a formula, text by count, an unknown number of pages by the size of the file."""
    heavy = "A" * 4_000_000
    for part in (document(pages=1), document(pages=None, text=None), document(pages=None, text=None, data=heavy)):
        assert page_tokens(part) >= PAGE
        assert message_tokens(user(part), COUNTER) < len(heavy) // 2
    assert page_tokens(document(pages=10, text="")) == 10 * PAGE
    assert page_tokens(document(pages=10, text=None)) == 10 * (PAGE + PAGE_TEXT)
    assert page_tokens(document(pages=0, text="")) == PAGE
    assert page_tokens(document(data="", text="x" * 100)) == 0
    long = message_tokens(user(document(text="word " * 500)), COUNTER)
    assert long - message_tokens(user(document(text="")), COUNTER) == 2_500


def test_a_model_that_takes_no_documents_is_sent_and_counts_their_text() -> None:
    message = user("read", document(pages=100, text="short"))
    taken = message_count(message, COUNTER, "m")
    words = message_count(message, COUNTER, "m", documents=False)
    assert taken.pictures == 100 * PAGE and words.pictures == 0
    assert words.counted == message_tokens(as_text(message), COUNTER)
    assert message_count(message, COUNTER, "m") == taken  # kept apart


def test_a_result_with_a_document_is_found_by_its_handle() -> None:
    """Its stub names it; two documents have two handles, also without data."""
    one, two = (result("a", "[a.pdf]", document(data=data)) for data in ("JVBERi0=", "JVBERi1="))
    assert "report.pdf" in stub(one).text and handle_of(one.content) in stub(one).text
    assert handle_of(one.content) != handle_of(two.content)
    gone = [result("a", document(data="", text=text)) for text in ("x", "y")]
    assert handle_of(gone[0].content) != handle_of(gone[1].content)
