"""Text that UTF-8 can hold."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from governors.scrub import may_hide_surrogate, scrub

any_text = st.text(st.characters())  # surrogates included
halves = st.text(st.sampled_from("a\u00e9\ud83d\ude00\udfff\ud800"))


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(text: str) -> list[str]:
    """The characters that are neither halves nor what halves turn into."""
    return [each for each in text if each < "\ud800" or "\udfff" < each < "\ufffd"]


@given(st.one_of(any_text, halves))
def test_what_comes_out_is_utf8_and_what_was_it_comes_back(text: str) -> None:
    """Clean text is returned as the same object; other text loses nothing but its lone halves."""
    scrubbed = scrub(text)
    assert is_utf8(scrubbed)
    assert (scrubbed is text) == is_utf8(text)
    assert scrub(scrubbed) is scrubbed
    assert plain(scrubbed) == plain(text)


def test_fault_a_split_emoji_makes_every_later_request_invalid() -> None:
    """Halves that stand together are joined, a half that stays alone becomes U+FFFD."""
    assert scrub("\ud83d\ude00!") == "😀!"
    assert scrub("cut \ud83d") == "cut \ufffd"
    assert scrub("\ude00\ud83d") == "\ufffd\ufffd"
    assert scrub("") == ""


@given(halves, st.booleans())
def test_json_that_hides_a_surrogate_is_found(text: str, ascii_only: bool) -> None:
    """Never missed; a pair that is whole may be a false alarm."""
    dumped = json.dumps(text, ensure_ascii=ascii_only)
    if ascii_only and not is_utf8(text):
        assert may_hide_surrogate(dumped)
    if "\\u" not in dumped:
        assert not may_hide_surrogate(dumped)
