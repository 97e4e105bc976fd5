"""Streamed Markdown is split into blocks without losing a character, however it arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.channels.blocks import MOST_LINES, NOTHING_WRITTEN, Block, Splitter, feed, finish

LINES = (
    "", "", "text", "more *text*", "- item", "1. item", "  indented", "    code", "```", "```py", "~~~~", "# heading",
    "| a | b |", "|---|---|", "> quote", "\t", "`````", "```x```",
)  # fmt: skip
documents = st.lists(st.sampled_from(LINES), max_size=25).map("\n".join)


def split(pieces: list[str]) -> list[Block]:
    splitter, found = NOTHING_WRITTEN, list[Block]()
    for piece in pieces:
        splitter, blocks = feed(splitter, piece)
        found.extend(blocks)
    last = finish(splitter)
    return found if last is None else [*found, last]


@given(documents, st.data())
def test_blocks_do_not_depend_on_the_chunks(text: str, data: st.DataObject) -> None:
    """Any cutting gives the same blocks, and together they are the text."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    blocks = split(pieces)
    assert "".join(block.text for block in blocks) == text
    assert blocks == split([text]) == split(list(text))


@given(documents)
def test_what_is_open_is_what_is_not_finished(text: str) -> None:
    """At every moment the finished blocks and the rest are all the text so far."""
    splitter, done = NOTHING_WRITTEN, ""
    for number, char in enumerate(text):
        splitter, blocks = feed(splitter, char)
        done += "".join(block.text for block in blocks)
        assert done + splitter.rest.text == text[: number + 1]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\n\ntwo\n", ["one\n\n", "two\n"]),
        ("```\na\n\nb\n```\nafter", ["```\na\n\nb\n```\n", "after"]),
        ("say:\n```\na\n```\n", ["say:\n", "```\na\n```\n"]),
        ("- a\n\n  still a\n\nnot a", ["- a\n\n  still a\n\n", "not a"]),
        ("# head\ntext", ["# head\n", "text"]),
        ("````\n```\n````\n", ["````\n```\n````\n"]),
        ("```\nnever closed\n\nstill in it", ["```\nnever closed\n\nstill in it"]),
    ],
)
def test_where_blocks_end(text: str, blocks: list[str]) -> None:
    """Blank lines, headings and fences part blocks; lists and fences hold blank lines."""
    assert [block.text for block in split([text])] == blocks


def test_a_paragraph_is_finished_by_its_blank_line() -> None:
    """It does not wait for what comes next."""
    assert feed(Splitter(), "one\n\n")[1] == (Block("one\n\n"),)


def test_a_long_fence_comes_in_portions_that_each_stand_alone() -> None:
    """No portion grows without bound, and each knows the line that opened the fence."""
    code = "".join(f"line {number}\n" for number in range(3 * MOST_LINES))
    blocks = split([f"```py\n{code}```\n"])
    assert len(blocks) == 4
    assert all(block.text.count("\n") <= MOST_LINES for block in blocks)
    assert blocks[1].source.startswith(f"```py\nline {MOST_LINES - 1}\n")
    assert [block.joined for block in blocks] == [False, True, True, True]
