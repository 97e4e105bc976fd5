"""What can never go is near the mark, at it, near the budget, or above it: no compaction at every call."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from runtime.events import TurnFinished
from runtime.providers.base import Request
from runtime.providers.scripted import Call, Reply
from runtime.session.entries import CompactionRecord, HeadRecord, RequestRecord
from tests.agent.test_compacting import ON, SUMMARY, answering, look, said
from tests.agents import of, talk

Answer = str | Reply | Call
#: Words that the user says in the turn at hand, so that what must stay takes this share of the budget.
FLOORS = {2_500: 0.75, 2_900: 0.82, 3_100: 0.85, 3_500: 0.92, 3_800: 0.97, 4_300: 1.06}


@pytest.mark.parametrize("words", FLOORS, ids=[f"{share:.0%} of the budget" for share in FLOORS.values()])
async def test_fault_211_compactions_back_to_back_with_a_floor_near_the_mark(tmp_path: Path, words: int) -> None:
    """At most three, then it goes on without or stops with the numbers; the log stays small."""
    numbers = count(1)

    def answer(_: Request) -> Answer:
        return Call("look", {"number": next(numbers)})

    settings = {**ON, "limits.max_steps": 25}
    async with talk(
        tmp_path, otherwise=answering(SUMMARY, answer), settings=settings, window=8_000, tools=[look]
    ) as it:
        (end,) = of(TurnFinished, await it.say("Keep this: " + "word " * words))
        assert len(it.records(CompactionRecord)) <= 3
        assert end.error is not None
        assert "25 steps" in end.error or ("cannot fit" in end.error and "5,800" in end.error)
        assert all(each.forecast <= each.budget for each in it.records(RequestRecord))
        assert it.log.stat().st_size < 400_000


async def test_fault_a_summary_without_room_beside_the_users_message_left_no_request_at_all(tmp_path: Path) -> None:
    """Such a summary is refused with the numbers, and what is too long is cut without one."""
    long = SUMMARY.replace("Something was kept.", "Something was kept. " * 29)
    async with talk(tmp_path, otherwise=answering(long), settings=ON, window=8_000) as it:
        await said(it, 8)
        (end,) = of(TurnFinished, await it.say("Read this: " + "word " * 3_250))
        assert end.error is None
        assert "no room for the summary" in it.records(CompactionRecord)[0].why
        assert {head.cause for head in it.records(HeadRecord)} == {"snip"}
