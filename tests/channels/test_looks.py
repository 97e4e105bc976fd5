"""The lines that a person reads: wording, status, what is live, and how Markdown is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from runtime.channels.blocks import Block, feed
from runtime.channels.live import activity, settled
from runtime.channels.reducer import ChatState, Line, RunningCall
from runtime.channels.render import Renderer, bare, continuation, gap
from runtime.channels.status import status_line
from runtime.channels.wording import call_title, dollars, result_size, seconds, tokens

BUSY = ChatState("maker/model-with-a-long-name", 200_000, used=2_000, cost=0.0123, phase="run", step=2, since=10.0)


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("read_file", '{"path": "notes.md"}', "read_file notes.md"),
        ("write_file", '{"path": "a", "content": "' + r"line\n" * 40 + '"}', "write_file a content=(40 lines)"),
        ("exec", '{"command": "' + "x" * 90 + '"}', "exec " + "x" * 59 + "…"),
        ("odd", "[1, 2]", "odd arguments=[1, 2]"),
        ("broken", '{"path": ', 'broken {"path":'),
        ("none", "", "none"),
    ],
)
def test_a_call_in_a_few_words(tool: str, arguments: str, title: str) -> None:
    """The main argument stands bare, long ones are folded, broken JSON is shown as it is."""
    assert call_title(tool, arguments) == title


def test_figures() -> None:
    """Sizes, times, tokens and money as people write them."""
    assert [result_size(text) for text in ("(no output)", "a", "a\nb\n")] == ["no output", "1 line", "2 lines"]
    assert [seconds(value) for value in (0.04, 9.94, 12.4, 125)] == ["0.0 s", "9.9 s", "12 s", "2 min 5 s"]
    assert [tokens(count) for count in (950, 1_234, 128_000, 1_000_000)] == ["950", "1.2k", "128k", "1M"]
    assert [dollars(cost) for cost in (0, 0.0042, 1.372)] == ["$0.00", "$0.0042", "$1.37"]


def test_the_status_line_at_ease_and_at_work() -> None:
    """Model, window, cost and what is going on; an unknown cost is left out, a local model is free."""
    line = status_line(BUSY, 120, free=False, now=13.0)
    assert line == "maker/model-with-a-long-name · 2.0k of 200k (1 %) · $0.0123 · step 2, 3 s · Ctrl-C stops"
    idle = replace(BUSY, phase="idle", cost=None)
    assert status_line(idle, 120, free=False, now=0) == "maker/model-with-a-long-name · 2.0k of 200k (1 %)"
    assert status_line(replace(idle, cost=0.0), 120, free=True, now=0).endswith("· free")


@given(st.integers(5, 130))
def test_the_status_line_fits_any_width(width: int) -> None:
    """What matters least goes first, the state last."""
    line = status_line(BUSY, width, free=False, now=13.0)
    assert len(line) <= width
    assert "step 2" in line or width < len("step 2")


def test_what_is_live() -> None:
    """Running calls with their time, or what is being waited for, and queued input."""
    calls = tuple(RunningCall((1, number), f"exec {number}", 10.0) for number in range(8))
    lines = activity(replace(BUSY, calls=calls), [("steered", "and\nthis"), ("queued", "then")], 13.9, 80)
    assert lines[0] == Line("running", "exec 0 · 3 s")
    assert lines[-3:] == (
        Line("running", "and 2 more"),
        Line("queued", "joins after this step: and this"),
        Line("queued", "next: then"),
    )
    resting = activity(replace(BUSY, phase="idle"), [("steered", "left"), ("held", "stopped")], 13.9, 80)
    assert [line.text for line in resting] == ["with your next message: left", "held: stopped"]
    assert activity(BUSY, [], 12.0, 80) == (Line("thinking", "waiting for the model · 2 s"),)
    thinking = replace(BUSY, thought="so\nI should \x1b[31mlook", thinking_since=11.0)
    assert activity(thinking, [], 12.0, 80) == (Line("thinking", "thinking · 1 s · so I should look"),)
    assert activity(replace(BUSY, phase="idle"), [], 12.0, 80) == ()


def test_lines_are_settled_once_there_are_many_but_never_of_a_table() -> None:
    """Few lines are redrawn; a table may change in every row until it ends."""
    assert settled("text", 4, 0, 8) == 0
    assert settled("text", 20, 0, 8) == 17
    assert settled("text", 18, 17, 8) == 17
    assert settled("| a | b |\n|---|---|\n| 1 | 2 |", 20, 0, 8) == 0


@pytest.mark.parametrize("width", [20, 40, 100])
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_no_drawn_line_is_wider_than_the_terminal(width: int, data: st.DataObject) -> None:
    """Long words, wide characters, tables and code are wrapped; nothing but colours is in them."""
    words = st.sampled_from(
        ["word", "x" * 150, "漢字" * 30, "🎉👩‍👩‍👧", "`code`", "**b**", "\n", "- ", "| a | b |\n|---|---|\n"]
    )
    text = " ".join(data.draw(st.lists(words, max_size=12)))
    for line in Renderer().block(Block(text), width):
        assert cell_len(bare(line)) <= width
        assert "\x1b" not in bare(line)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("Vec<T> and <div>", "Vec<T> and <div>"),
        ("[name](https://example.org/x)", "name (https://example.org/x)"),
        ("[ref]: https://example.org/x", "[ref]: https://example.org/x"),
        ("10. ten\n11. eleven", "11. eleven"),
        ("one\ntwo", "one\ntwo"),
        ("```\nopen", "  open"),
        ("a &#27;[31m &#x202e;b", "b"),
    ],
)
def test_markdown_loses_nothing(source: str, words: str) -> None:
    """HTML, targets of links, numbers and line ends are shown; entities smuggle nothing in."""
    drawn = "\n".join(bare(line) for line in Renderer().block(Block(source), 80))
    assert words in drawn
    assert not set(drawn) & {"\x1b", "\u202e"}


def test_a_terminal_without_unicode_or_color() -> None:
    """Marks become ASCII, and colours go while bold may stay."""
    (line,) = Renderer(unicode=False, color=False).draw(Line("success", "read_file · 0.1 s"), 80)
    assert line == "+ read_file - 0.1 s"
    (line,) = Renderer(color=False).draw(Line("error", "no"), 80)
    assert "\x1b[1;31m" not in line


def test_hanging_indent() -> None:
    """Wrapped lines stand under the text, not under the mark."""
    lines = [bare(line) for line in Renderer().draw(Line("user", "one two three four five\nsix"), 14)]
    assert lines == ["› one two", "  three four", "  five", "  six"]


def test_a_growing_block_is_printed_once() -> None:
    """What was printed is not printed again, unless it turned out to look different."""
    assert continuation(["a", "\x1b[1mb\x1b[0m"], ["a", "b", "c"]) == ["c"]
    assert continuation(["**a", "b"], ["a", "b", "c"]) == ["a", "b", "c"]


def test_blank_lines_part_paragraphs_but_not_tool_lines() -> None:
    """Calls stand together; portions of one block too."""
    done = Line("success", "x")
    assert not gap(done, Line("failure", "y"))
    assert gap(done, Block("text"))
    assert gap(Block("text"), Block("text"))
    assert not gap(Block("text"), Block("text", joined=True))
    assert not gap(None, Block("text"))


def test_the_open_block_can_be_drawn_at_any_moment() -> None:
    """Half-written Markdown of every kind draws without an error."""
    text = "# A\n\n| a |\n|---|\n| b |\n\n```py\nx = '''\n```\n\n1. a\n   - b\n\n**bold [l](http://x"
    splitter = feed(ChatState("m", 1).writing, "")[0]
    for char in text:
        splitter, _ = feed(splitter, char)
        Renderer().open_block(splitter.rest, 40)
