"""What a conversation shows, from the events of whole turns."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Usage
from runtime.channels.blocks import Block
from runtime.channels.reducer import ChatState, Line, Shown, advance
from runtime.events import (
    Event,
    HistoryCut,
    HistoryEdited,
    Notice,
    ReplyRecorded,
    RequestSent,
    Retrying,
    StateChanged,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)

START = ChatState("maker/model", 1_000)


def request(tokens: int = 100) -> RequestSent:
    return RequestSent(entry=1, model="maker/model", tokens=tokens, budget=900, window=1_000)


def recorded(text: str, usage: Usage | None = None, cost: float | None = None) -> ReplyRecorded:
    return ReplyRecorded(entry=2, text=text, stop="stop", usage=usage, cost=cost, seconds=1.0)


def finished(stop: str = "stop", error: str | None = None, steps: int = 1) -> TurnFinished:
    return TurnFinished(text="", stop=stop, steps=steps, usage=Usage(), cost=None, seconds=1.0, error=error)  # type: ignore[arg-type]  # a StopReason by its text


def play(events: Iterable[Event], state: ChatState = START) -> tuple[ChatState, list[Shown]]:
    shown: list[Shown] = []
    for second, event in enumerate(events):
        state, printed = advance(state, event, float(second))
        shown.extend(printed)
    return state, shown


def test_an_answer_with_tools() -> None:
    """Text, calls folded to a line each, and the answer, in the order they came."""
    events = [
        TurnStarted(entry=1, model="maker/model"),
        request(),
        ThinkingDelta(text="hm"),
        ThinkingDelta(text="mm"),
        TextDelta(text="I look.\n\nAnd "),
        TextDelta(text="see."),
        ToolCallDelta(index=0, tool="read_file", arguments="{"),
        recorded("I look.\n\nAnd see.", Usage(plain=100, output=20), 0.25),
        ToolStarted(call=(2, 0), tool="read_file", arguments='{"path": "notes.md"}'),
        ToolStarted(call=(2, 1), tool="grep", arguments='{"pattern": "x", "path": "src"}'),
        ToolFinished(call=(2, 1), tool="grep", entry=3, is_error=True, text="no folder\nsrc", seconds=0.04),
        ToolFinished(call=(2, 0), tool="read_file", entry=4, is_error=False, text="a\nb\n", seconds=12.4),
        request(150),
        TextDelta(text="Two lines."),
        recorded("Two lines.", Usage(plain=150, output=10), 0.5),
        StateChanged(before="run", after="idle", why=""),
        finished(),
    ]
    state, shown = play(events)
    assert shown == [
        Line("thought", "thought for 2.0 s"),
        Block("I look.\n\n"),
        Block("And see."),
        Line("failure", "grep src pattern=x · 0.0 s · no folder"),
        Line("success", "read_file notes.md · 12 s · 2 lines"),
        Block("Two lines."),
    ]
    assert (state.used, state.cost, state.working, state.calls) == (160, 0.75, False, ())


@given(st.text(max_size=80), st.integers(1, 9))
def test_every_character_of_a_reply_is_printed_once(text: str, size: int) -> None:
    """However a reply streams in, what is printed is its text (here without what `clean` takes out)."""
    text = "".join(char for char in text if char.isprintable() or char == "\n")
    events = [request(), *(TextDelta(text=text[at : at + size]) for at in range(0, len(text), size)), recorded(text)]
    _, shown = play(events)
    printed = "".join(each.text for each in shown if isinstance(each, Block))
    assert printed.strip() == text.strip()


def test_a_reply_that_did_not_stream_is_shown_from_its_record() -> None:
    """Whoever joins late sees the text all the same, and once."""
    _, shown = play([request(), recorded("all at once"), finished()])
    assert shown == [Block("all at once")]


def test_control_sequences_never_reach_the_screen() -> None:
    """In text (also when cut in two), tool names, arguments, results and notices."""
    evil = "\x1b]0;x\x07\x1b[2J"
    _, shown = play(
        [
            request(),
            TextDelta(text="a\x1b"),
            TextDelta(text="[31mb"),
            recorded("ab"),
            ToolStarted(call=(2, 0), tool=f"t{evil}", arguments=json.dumps({"path": f"x{evil}"})),
            ToolFinished(call=(2, 0), tool="t", entry=3, is_error=True, text=f"bad{evil}", seconds=0),
            Notice(level="info", text=f"note{evil}"),
            Retrying(why=f"busy{evil}", delay=2.0, attempt=2),
            finished(error=f"broken{evil}"),
        ]
    )
    assert all("\x1b" not in each.text and "\x07" not in each.text for each in shown)
    assert shown[0] == Block("ab")
    assert Line("failure", "t x · 0.0 s · bad") in shown


@pytest.mark.parametrize(
    ("event", "kind", "words"),
    [
        (finished("length"), "warning", "output limit"),
        (finished("error", "the key was refused"), "error", "the key was refused"),
        (finished("refused"), "error", "refused"),
        (finished("deferred"), "warning", "Ask again"),
        (finished("aborted", steps=2), "info", "2 steps"),
        (finished("tool_use", "ended after 50 steps"), "error", "50 steps"),
        (Retrying(why="the server is busy.", delay=3.0, attempt=2), "info", "Attempt 2 in 3.0 s"),
        (Notice(level="warning", text="careful"), "warning", "careful"),
        (HistoryEdited(entries=(7, 8), before=12_000, after=8_000, why="it pays"), "info", "8.0k tokens; it pays"),
        (HistoryCut(entry=9, before=12_000, after=8_000, why="over budget"), "info", "12k to 8.0k tokens"),
    ],
)
def test_what_a_person_should_know_is_one_line(event: Event, kind: str, words: str) -> None:
    """Each has a kind that decides its colour, and says what happened."""
    _, (line,) = advance(START, event, 0.0)
    assert isinstance(line, Line)
    assert line.kind == kind
    assert words in line.text


def test_a_stopped_turn_leaves_nothing_running() -> None:
    """Open text and calls are printed as far as they came."""
    state, shown = play(
        [
            request(),
            TextDelta(text="half a sen"),
            ToolStarted(call=(2, 0), tool="exec", arguments='{"command": "sleep 9"}'),
            finished("aborted"),
        ]
    )
    assert shown == [
        Block("half a sen"),
        Line("failure", "exec sleep 9 · ended without a result"),
        Line("info", "Stopped. What was finished (1 step) is kept."),
    ]
    assert not state.working
    assert not state.calls


def test_a_cost_that_is_unknown_stays_unknown() -> None:
    """A reply without a price spoils the sum; a stopped reply without usage does not."""
    usage = Usage(plain=1, output=1)
    assert play([recorded("a", usage, 0.5), recorded("b", None, None)])[0].cost == 0.5
    assert play([recorded("a", usage, None), recorded("b", usage, 0.5)])[0].cost is None
