"""/cost: what the last turn did cost, call by call."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from governors.messages import Usage
from runtime import Call, Reply, tool
from runtime.channels.commands import Command
from runtime.channels.cost_lines import Bill, cost_lines, last_turn
from runtime.inspecting import Miss, calls_of
from runtime.ledger import Left
from runtime.session.entries import Entry, MessageRecord, OutcomeRecord, Record, RequestRecord
from tests.channels.test_talk import sitting


@tool(read_only=True)
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return f"sun in {city}"


async def test_cost_explains_the_calls_of_the_last_turn(tmp_path: Path) -> None:
    """Not those of turns before; the session and the day are told, too."""
    usage = Usage(plain=40, cache_read=1_000, cache_write_5m=200, output=30, reasoning=12)
    script = (
        Reply("Hello.", usage=usage),
        Reply(calls=[Call("weather", {"city": "Oslo"})], usage=usage),
        Reply("Sun.", usage=usage),
    )
    async with sitting(tmp_path, *script, tools=[weather]) as (talk, audience):
        await talk.run(Command("/cost"))
        assert audience.texts[-1].startswith(
            "plain: No model was asked in the last turn.\nThe session: $0.00 in 0 calls."
        )
        for text in ("hi", "the weather?"):
            await talk.say(text)
            await talk.settle()
        await talk.run(Command("/cost"))
        lines = audience.texts[-1].removeprefix("plain: ").splitlines()
    assert lines[0].startswith("The last turn: 2 calls to scripted/scripted, $0.00")
    assert lines[1].split() == ["call", "read", "written", "plain", "out", "cost", "first", "whole"]
    assert lines[2].split()[1:5] == ["1.0k", "200", "40", "30"]
    assert lines[3].strip() == "12 of what came out was reasoning"
    assert "The session: $0.0049 in 3 calls, 81 % of prompts read from the cache." in lines
    assert lines[-1].startswith("Today, on this machine: $")


def entries(*records: Record) -> list[Entry]:
    return [Entry(n, n - 1 or None, "2026-12-01T00:00:00Z", record) for n, record in enumerate(records, 1)]


def asked(purpose: str = "turn", reserved: float | None = None) -> RequestRecord:
    return RequestRecord(
        purpose=purpose, provider="anthropic", model="claude", wire="anthropic", prefix="", forecast=1, budget=9,
        blocks=1, reserved=reserved,
    )  # fmt: skip


@pytest.fixture
def bill() -> Bill:
    said = MessageRecord(role="user", content=())
    log = entries(
        *(said, asked(), OutcomeRecord(request=2, stop="stop", usage=Usage(plain=9), cost=1.0, seconds=2.0, first=0.5)),
        *(said, asked(), OutcomeRecord(request=5, stop="stop", usage=Usage(plain=90_000), cost=0.25, seconds=3.0)),
        *(asked("branch_summary"), OutcomeRecord(request=7, stop="error", problem={"kind": "overloaded"})),
        asked(reserved=0.75),
    )
    calls = calls_of(log)
    turn, own = last_turn(log, calls)
    assert turn == 4
    miss = Miss(5, "", "anthropic/claude", 2, 9, 9, 2, "edit", "old results", 0.03)
    return Bill(own, {5: miss}, calls, 1.5, (Left("a day", "spend.day", 5.0, 1.5, 0.75),))


def test_misses_failures_and_caps_are_told(bill: Bill) -> None:
    text = cost_lines(bill, 80)
    assert "The last turn: 3 calls to anthropic/claude, $0.25 and what has no outcome yet, 3.0 s." in text
    assert "cache: 7 that could have been read were paid anew for $0.0300: edit (old results)" in text
    assert "branch summary\n     failed: overloaded" in text
    assert "it has no outcome yet; it counts at its worst case, $0.75" in text
    assert "The session: $1.25 and what has no outcome yet in 4 calls, 0 % of prompts read from the cache." in text
    assert "Cap of $5.00 a day: $2.75 left ($1.50 spent, $0.75 reserved)." in text


def test_on_a_narrow_screen_each_call_takes_two_lines(bill: Bill) -> None:
    """Figures are not cut."""
    lines = cost_lines(bill, 46).splitlines()
    assert lines[1:3] == ["#5  $0.25, 3.0 s", "     0 read, 0 written, 90k plain, 0 out"]
    assert all(cell_len(line) <= 46 for line in lines if line.startswith(("#", "     0")))
