"""Pieces of a conversation: all of it, in order, each small enough."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, UserMessage
from runtime.compaction.chunks import pieces, shortened, transcript


def words(text: str) -> int:
    return len(text)


def test_a_transcript_says_who_said_what() -> None:
    """With calls and results, and without reasoning, which is nobody's words."""
    call = ToolCall("a", "read_file", '{"path":"x"}')
    told = transcript(
        (
            UserMessage((Text("Look."), Image("image/png", "aGk="))),
            AssistantMessage((Thinking("hm"), Text("I will."), call), stop="tool_use"),
            ToolResult("a", "read_file", (Text("gone"),), is_error=True),
        )
    )
    assert told == (
        "[User]\nLook.\n(a picture)",
        '[You]\nI will.\n(calls read_file with {"path":"x"})',
        "[Result of read_file (an error)]\ngone",
    )


texts = st.lists(st.text(st.characters(codec="ascii"), max_size=120), max_size=12)


@given(texts, st.integers(60, 200))
def test_nothing_is_left_out_and_every_piece_fits(said: list[str], most: int) -> None:
    """In order; only a text that is too long alone is shortened, and says so."""
    groups = pieces(said, most, words)
    assert all(sum(map(words, group)) <= most for group in groups)
    told = [text for group in groups for text in group]
    assert len(told) == len(said)
    for before, after in zip(said, told, strict=True):
        assert after == before if len(before) <= most else "left out" in after


@given(texts, st.integers(60, 200))
def test_pieces_are_as_few_as_order_allows(said: list[str], most: int) -> None:
    """Two neighbours never fit into one."""
    groups = pieces(said, most, words)
    for one, other in pairwise(groups):
        assert sum(map(words, one)) + words(other[0]) > most


@given(st.text(max_size=400), st.integers(0, 100))
def test_a_text_is_shortened_in_its_middle(text: str, most: int) -> None:
    """Whatever the room; where there is none, nothing is left."""
    cut = shortened(text, most, words)
    assert words(cut) <= most
    assert cut == text if words(text) <= most else True
    if cut and cut != text:
        assert text.startswith(cut.split("\n[… ")[0]) and text.endswith(cut.split(" …]\n")[-1])
