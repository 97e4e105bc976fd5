"""Words, queries and passages, apart from any database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.session.index.words import fold, parse_query, passage, words

from .records import patient


@patient
@given(st.text(max_size=30))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@patient
@given(st.text(max_size=30))
def test_every_text_is_found_by_itself(text: str) -> None:
    """However it is written, as long as it says something."""
    query = parse_query(text.replace('"', " "))
    assert query.fits(text.replace('"', " ")) == bool(query.terms)


@patient
@given(st.text(max_size=30), st.text(max_size=300))
def test_a_passage_is_one_short_line_of_the_text(typed: str, text: str) -> None:
    shown = passage(text, parse_query(typed))
    assert len(shown) <= 162 and len(shown.splitlines()) <= 1
    assert shown.strip("… ") in " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't panic_now", ["don", "t", "panic", "now"]),
        ("Ｆｕｌｌ ﬁne", ["full", "fine"]),
        ("会议A会", ["会", "议", "a", "会"]),
        ("up🙂down", ["up", "🙂", "down"]),
        ("ΣΊΣΥΦΟΣ İstanbul", ["σισυφοσ", "istanbul"]),
        ("x" * 90, ["x" * 64]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize("before", ["ä " * 3_000, "a " * 3_000, "", "ﬁ ß\u0308 " * 2_000])
def test_a_passage_shows_the_find_in_a_long_text(before: str) -> None:
    """Where folding changes the length, too, and at the seam of two pieces."""
    for filling in range(12):
        text = f"{before}{'o' * filling} the Müller file {'b ' * 500}"
        assert "the Müller file" in passage(text, parse_query("mull"))
