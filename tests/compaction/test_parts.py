"""The parts of a summary: taken with all of them, refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, StopReason, Text, ToolCall
from runtime.compaction.parts import PARTS, Refused, Summary, ask, parts_of, take


def written(form: str = "## {}\n{}", **said: str) -> str:
    return "\n\n".join(form.format(part.heading, said.get(part.heading.lower(), "none")) for part in PARTS)


def reply(text: str, stop: StopReason = "stop") -> AssistantMessage:
    return AssistantMessage((Text(text),), stop=stop)


@pytest.mark.parametrize("form", ["## {}\n{}", "# {}:\n{}", "**{}**\n{}", "**{}:**\n{}", "{}:\n{}", "### 1. {}\n{}"])
def test_headings_may_be_written_in_many_ways(form: str) -> None:
    """Models write them as they like; what counts is taken in one form."""
    taken = take(reply(written(form, goal="Build a shed.", facts="- 12 planks")), replaced=1000, size=100)
    assert isinstance(taken, Summary)
    assert taken.text.startswith("## Goal\nBuild a shed.\n\n## Instructions\nnone")
    assert "## Facts\n- 12 planks" in taken.text


def test_what_is_asked_names_every_part() -> None:
    """And what the user wants to be kept, and what is told anew."""
    asked = ask("the prices", ["AGENTS.md", "memory"])
    assert all(f"## {part.heading}" in asked for part in PARTS)
    assert "the prices" in asked and "AGENTS.md, memory" in asked


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(""), "wrote nothing"),
        (reply("   \n"), "wrote nothing"),
        (reply(written(), "length"), "output limit"),
        (reply(written(), "refused"), "refused"),
        (reply(written(), "aborted"), "broke off"),
        (AssistantMessage((Text(written()), ToolCall("a", "f", "{}")), stop="tool_use"), "called a tool"),
        (AssistantMessage((Text(written()), ToolCall("a", "f", "{}")), stop="stop"), "called a tool"),
        (reply("I will go on with the task."), '"Goal", "Instructions"'),
        (reply(written().replace("## Facts\nnone", "")), 'it lacks "Facts"'),
        (reply(written().replace("## Facts\nnone", "## Facts\n")), 'it lacks "Facts"'),
    ],
)
def test_what_is_no_summary_is_refused_with_the_reason(answer: AssistantMessage, why: str) -> None:
    """Empty, cut off, broken off, calling tools, or without all its parts."""
    refused = take(answer, replaced=1000, size=10)
    assert isinstance(refused, Refused) and why in refused.why


def test_a_summary_that_is_not_smaller_is_refused() -> None:
    """The fault of the compressed prompt that was larger than the original."""
    refused = take(reply(written()), replaced=100, size=100)
    assert isinstance(refused, Refused) and "100 tokens for the 100" in refused.why


def test_the_last_words_are_word_for_word() -> None:
    """Put in by us when the model did not copy them, and once only."""
    taken = take(reply(written()), replaced=1000, size=10, last_words="Paint it green, please.")
    assert isinstance(taken, Summary) and "Paint it green, please." in taken.text
    said = take(
        reply(written(goal="Paint it green, please.")), replaced=1000, size=10, last_words="Paint it green, please."
    )
    assert isinstance(said, Summary) and said.text.count("Paint it green, please.") == 1


line = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="#"), min_size=1).map(
    lambda text: f"- {text.strip() or 'x'}"
)


@given(st.lists(line, min_size=len(PARTS), max_size=len(PARTS)))
def test_what_was_taken_is_read_again_as_it_is(lines: list[str]) -> None:
    """A summary that is folded once more has the same parts."""
    text = "\n\n".join(f"## {part.heading}\n{said}" for part, said in zip(PARTS, lines, strict=True))
    taken = take(reply(text), replaced=10**9, size=1)
    assert isinstance(taken, Summary)
    assert parts_of(taken.text) == parts_of(text)
