"""Facts: what is found, and when it counts as lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.compaction.facts import facts_of, missing

EACH = [
    ("see https://example.org/a?b=1, please", ("https://example.org/a?b=1",)),
    ("mail ann@example.org.", ("ann@example.org",)),
    ('say "good morning" to her', ('"good morning"',)),
    ("call it “the shed”", ("“the shed”",)),
    ("run `make test` now", ("`make test`",)),
    ("it lies in ~/notes/today.md.", ("~/notes/today.md",)),
    ("look at src/app/main.py and README.md", ("src/app/main.py", "README.md")),
    (r"and in C:\Users\ann\x.txt", (r"C:\Users\ann\x.txt",)),
    ("on 2026-11-30 at 14:05", ("2026-11-30", "14:05")),
    ("it costs $1,250.50 or 12%", ("1,250.50", "12%")),
    ("version 3.11.7 has -4 left", ("3.11.7", "-4")),
    ("ticket MW-1234, order_id 7, readFile", ("MW-1234", "order_id", "7", "readFile")),
    ("nothing of the kind, e.g. this", ()),
    ("don't do it, it's hers", ()),
]


@pytest.mark.parametrize(("text", "facts"), EACH)
def test_what_is_a_fact(text: str, facts: tuple[str, ...]) -> None:
    """Each kind is found whole, and nothing is found in plain words."""
    assert set(facts_of(text)) == set(facts)


def test_a_fact_is_told_once_and_in_order() -> None:
    """Also when it is said again."""
    assert facts_of("first 12, then MW-7, then 12 again") == ("12", "MW-7")


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("pay 1,250,000", "paid 1250000 in all"),
        ("pay 1250", "1,250 were paid"),
        ('call it "Garden Plan"', "it is called “garden plan”"),
        ("in src/a.py", "changed (src/a.py)"),
        ("on 2026-11-30.", "until 2026-11-30, noon"),
        ("12% off", "12% less"),
    ],
)
def test_a_fact_that_is_written_in_another_way_is_kept(said: str, summary: str) -> None:
    """Case, quotation marks and marks between thousands do not count."""
    assert missing([said], summary) == ()


@pytest.mark.parametrize(
    ("said", "summary", "lost"),
    [
        ("room 12", "room 312, floor 1.12 and 12.5", ("12",)),
        ("MW-12", "MW-123 was closed", ("MW-12",)),
        ("port 8080 on db_main", "the port of db_main_old", ("8080", "db_main")),
        ('always say "please"', "be polite", ('"please"',)),
    ],
)
def test_a_part_of_something_longer_is_no_fact_kept(said: str, summary: str, lost: tuple[str, ...]) -> None:
    """Another number that holds the digits is another number."""
    assert missing([said], summary) == lost


words = st.lists(st.sampled_from(["the", "12", "MW-7", '"a b"', "src/x.py", "1,000", "https://e.org/x", "naïve"]))


@given(words)
def test_nothing_of_a_text_is_missing_in_itself(said: list[str]) -> None:
    """A summary that holds the words lost nothing."""
    text = " ".join(said)
    assert missing([text], f"It was said: {text}.") == ()


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    """Whatever stands in it, finding ends, and all of it is missing in an empty summary."""
    assert missing([text], "") == tuple(fact for fact in facts_of(text) if fact.strip("\"'`“”«»‘’"))
