"""Nothing that a model, tool or file name says steers the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.channels.sanitize import clean, one_line, ready

PIECES = (
    "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\", "\x1bP1$r\x1b\\", "\x9b2J", "\x9d0;t\x9c", "\x1bc",
    "\x1b", "[", "]", "\r", "\n", "\r\n", "\t", "\x07", "\x1b\\", "\u202e", "\ud800", "31m", "é", "漢",
    "👩‍👩‍👧", "text",
)  # fmt: skip
hostile = st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=40))


@given(hostile)
def test_clean_leaves_nothing_that_acts(text: str) -> None:
    """What is left is printable, newline or tab."""
    cleaned = clean(text)
    assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") for char in cleaned)
    assert not set(cleaned) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")
    cleaned.encode()


@given(hostile)
def test_clean_is_idempotent(text: str) -> None:
    """Cleaning twice is cleaning once."""
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cs", "Cf", "Zl", "Zp"))))
def test_clean_keeps_what_is_harmless(text: str) -> None:
    """Ordinary text of any script comes out as it went in."""
    assert clean(text) == text


@given(st.lists(hostile, max_size=6))
def test_cleaning_a_stream_gives_what_cleaning_the_whole_gives(pieces: list[str]) -> None:
    """However a text is cut into pieces, no sequence escapes and none of the text is lost."""
    out, held = "", ""
    for piece in pieces:
        now, held = ready(held + piece)
        out += clean(now)
    assert out + clean(held) == clean("".join(pieces))


@given(hostile, st.data())
def test_a_sequence_cut_in_two_is_still_one(text: str, data: st.DataObject) -> None:
    """Cutting at any character changes nothing."""
    at = data.draw(st.integers(0, len(text)))
    now, held = ready(text[:at])
    later, rest = ready(held + text[at:])
    assert clean(now) + clean(later) + clean(rest) == clean(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[1;31mred\x1b[0m", "ared"),
        ("\x1b]0;owned\x07file", "file"),
        ("\x1b]52;c;ZXZpbA==\x1b\\clip", "clip"),
        ("10%\r20%\r\ndone", "10%\n20%\ndone"),
        ("rm \u202egnp.exe", "rm gnp.exe"),
        ("half \ud83d", "half \ufffd"),
        ("family 👩‍👩‍👧", "family 👩‍👩‍👧"),
    ],
)
def test_known_tricks(text: str, shown: str) -> None:
    """Colours, titles, clipboards, overwriting and writing direction are taken out."""
    assert clean(text) == shown


def test_an_endless_title_holds_nothing_back() -> None:
    """A sequence that never ends is given up after a bounded number of characters."""
    _, held = ready("\x1b]0;" + "x" * 5_000)
    assert held == ""


def test_one_line_is_bounded() -> None:
    """Line ends become spaces, and the end of a long text an ellipsis."""
    assert one_line("a\nb\tc  d") == "a b c d"
    assert len(one_line("x" * 1_000, 50)) == 50
