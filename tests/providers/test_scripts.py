"""Scripts in plain text: what they say, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import StopReason, Usage
from runtime.choice import Surroundings, choose_model
from runtime.config import load_config
from runtime.providers.base import Finished, Problem, ProblemKind, Request, StreamEvent, TextPiece
from runtime.providers.scripted import Call, Reply, Scripted, ScriptError
from runtime.providers.scripts import parse_script

WHOLE = """\
@# A rehearsal.
@reply
@wait 2.5
@thinking The person wants
to know.
@text Let me look.

It takes a moment.
@call read_file {"path": "note.md"}
@call grep #same {
  "pattern": "moon"
}
@raw-call exec {"command": "ls
@usage plain=1200 cache_read=900 output=12
@stop tool_use

@reply

It says:
@@reply is a line of text.

@reply
@error rate_limited status=429 retry-after=3 Too many requests, please wait
@otherwise
That is all I know.
"""


def test_a_script_says_what_it_looks_like() -> None:
    """Every part once."""
    play = parse_script(WHOLE)
    assert play.replies == (
        Reply(
            "Let me look.\n\nIt takes a moment.",
            (
                Call("read_file", {"path": "note.md"}),
                Call("grep", {"pattern": "moon"}, "same"),
                Call("exec", '{"command": "ls'),
            ),
            "The person wants\nto know.",
            "tool_use",
            Usage(plain=1200, cache_read=900, output=12),
            wait=2.5,
        ),
        Reply("It says:\n@reply is a line of text."),
        Reply(error=Problem("rate_limited", "Too many requests, please wait", 429, retry_after=3.0)),
    )
    assert play.otherwise == Reply("That is all I know.")


def test_a_plain_text_is_one_reply() -> None:
    """Headings and rules of Markdown are text."""
    assert parse_script("\ufeff\r\n# Hello\r\n---\r\nthere\r\n").replies == (Reply("# Hello\n---\nthere"),)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "no reply"),
        ("\n\n@# nothing\n", 1, "no reply"),
        ("@reply\nHi\n@tool read_file {}", 3, "there is no @tool"),
        ("@text Hi", 1, "write @reply above it"),
        ("@reply\nHi\n@usage plain=3\nmore", 4, "text cannot follow @usage"),
        ("@reply\n@call f\n@text late", 3, "@text stands too late"),
        ("@reply\nHi\n@text again", 3, "@text stands too late"),
        ('@reply\n@call f {"a": 1,\n"b": }', 3, "no JSON"),
        ("@reply\n@call f [1]", 2, "must be an object"),
        ("@reply\n@call", 2, "name the tool"),
        ("@reply\n@usage tokens=3", 2, "the names are plain"),
        ("@reply\n@usage plain=many", 2, "no NAME=TOKENS"),
        ("@reply\n@stop soon", 2, "no stop reason 'soon'"),
        ("@reply\n@error bad", 2, "no kind of error 'bad'"),
        ("@reply\n@error network status=x", 2, "no number of status"),
        ("@reply\n@wait nan", 2, "no number of seconds"),
        ("@otherwise\nHi\n@reply\nHo", 3, "nothing can follow"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    """And with the name of the script."""
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "moon.script")
    assert str(caught.value).startswith(f"moon.script, line {line}: ")
    assert words in str(caught.value)


@given(st.text("@#abc{} \n\r", max_size=80))
def test_any_text_is_a_script_or_a_clear_error(text: str) -> None:
    """Nothing else is raised."""
    try:
        parse_script(text)
    except ScriptError as error:
        assert "line " in str(error)


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(str.strip)
TEXT = st.lists(WORDS, max_size=3).map(lambda lines: "\n".join(lines).strip("\n"))


@given(
    TEXT, TEXT, st.none() | st.sampled_from(get_args(StopReason)), st.none() | st.sampled_from(get_args(ProblemKind))
)
def test_what_is_written_is_read(thinking: str, text: str, stop: StopReason | None, error: ProblemKind | None) -> None:
    """Any words, at the start of a line or within."""

    def body(words: str) -> str:
        return "\n".join(f"@{line}" if line.startswith("@") else line for line in words.split("\n"))

    script = f"@reply\n@thinking\n{body(thinking)}\n@text\n{body(text)}\n"
    script += f"@stop {stop}\n" if stop else ""
    script += f"@error {error} it was so\n" if error else ""
    problem = Problem(error, "it was so") if error else None
    assert parse_script(script).replies == (Reply(text, (), thinking, stop, error=problem),)


async def play(scripted: Scripted) -> list[StreamEvent]:
    body = {"max_tokens": 10, "model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with scripted.stream(Request.of(scripted.model(), body)) as events:
        return [event async for event in events]


async def test_it_is_played_with_the_sleep_that_was_given() -> None:
    """Without one, nothing waits; when it is over, that is said."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await anyio.lowlevel.checkpoint()

    scripted = Scripted.from_text("@reply\n@wait 30\n@text Hi\n@error overloaded\n@reply\nHo", sleep=sleep)
    assert slept == []
    first = await play(scripted)
    assert slept == [30.0]
    assert first[0] == TextPiece("Hi")
    assert isinstance(first[-1], Finished) and first[-1].problem == Problem(
        "overloaded", "the scripted model failed (overloaded)"
    )
    assert (await play(scripted))[0] == TextPiece("Ho")
    (over,) = await play(scripted)
    assert isinstance(over, Finished) and over.problem is not None
    assert "the script is over: it had 2 replies" in over.problem.text


async def test_a_script_is_chosen_by_its_file(tmp_path: Path) -> None:
    """As a person names it, and as a session that talked to it does; it costs nothing."""
    file = tmp_path / "a rehearsal.txt"
    file.write_text("Hello!\n@otherwise\nBye.", encoding="utf-8")
    around = Surroundings(load_config(tmp_path, {}, {}, user_file=tmp_path / "none.toml"), {}, ())
    chosen = await choose_model(around, f"script:{file}")
    assert chosen.info.price is not None and chosen.info.price.output == 0
    again = await choose_model(around, chosen.name)
    assert again.info == chosen.info
    assert isinstance(chosen.provider, Scripted)
    assert (await play(chosen.provider))[0] == TextPiece("Hello!")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"Hi\n@reply\n\xff\xfe", "line 3: this is not UTF-8"),
        (b"@reply\nHi\n@bye", "line 3: there is no @bye"),
    ],
)
async def test_a_file_that_is_no_script_is_told(tmp_path: Path, content: bytes | None, words: str) -> None:
    """With its path."""
    file = tmp_path / "rehearsal.txt"
    if content is not None:
        file.write_bytes(content)
    around = Surroundings(load_config(tmp_path, {}, {}, user_file=tmp_path / "none.toml"), {}, ())
    with pytest.raises(ScriptError) as caught:
        await choose_model(around, f"script:{file}")
    assert words in str(caught.value) and str(file) in str(caught.value)
