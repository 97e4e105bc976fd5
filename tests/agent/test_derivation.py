"""What was sent is what the log says: every request can be made again from the entries before it, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime import Call, Reply, tool
from runtime.session.entries import EditRecord, HeadRecord, MessageRecord, RequestRecord
from tests.agents import talk
from tests.agents_again import again, assert_every_request_is_made_again


@tool(bulky=True, read_only=True)
def listing(number: int) -> str:
    """Give a long listing.

    Args:
        number: Which one.
    """
    return f"listing {number}\n" + "\n".join(f"entry {number}-{line} of a listing" for line in range(40))


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_every_request_is_a_function_of_the_log(tmp_path: Path, wire: str) -> None:
    script: list[Any] = []
    for number in range(8):
        steps = [Reply("", [Call("listing", {"number": 10 * number + step})]) for step in range(3)]
        script += [*steps, f"answer {number}"]
    async with talk(tmp_path, script, tools=[listing], wire=wire, window=9_000) as it:
        for number in range(8):
            await it.say(f"question {number}")
            if number == 3:
                (tmp_path / "AGENTS.md").write_text("Answer in verse.\n")
        assert it.records(HeadRecord) and it.records(EditRecord)
        sent = it.records(RequestRecord)
        assert len(sent) == len(it.model.requests) == 32
        named = [decision for record in sent for decision in record.decisions]
        assert named == [entry.id for entry in it.on_disk() if isinstance(entry.record, EditRecord | HeadRecord)]
        assert_every_request_is_made_again(it)


@pytest.mark.parametrize("act", ["omit", "redact"])
async def test_an_edit_out_of_view_leaves_the_forecast_what_the_log_says_of_it(tmp_path: Path, act: str) -> None:
    """It moves no byte, but whoever reads the log anew knows no anchor from before it."""
    async with talk(tmp_path, otherwise=lambda request: "an answer " * 120, window=6_000) as it:
        while not it.records(HeadRecord):
            await it.say("what is there to say of it? " * 20)
        await it.say("And why?")
        (head,) = it.records(HeadRecord)
        first = next(entry for entry in it.on_disk() if isinstance(entry.record, MessageRecord))
        assert first.id < head.start
        before = [body["messages"] for body in it.bodies][-1]
        await (it.agent.marks.omit(first.id) if act == "omit" else it.agent.marks.redact(first.id))
        await it.say("and now?")
        assert it.records(HeadRecord) == [head], "no other came between"
        assert len(it.bodies[-1]["messages"]) == len(before) + 2
        newest = [entry for entry in it.on_disk() if isinstance(entry.record, RequestRecord)][-1]
        made, sent = again(it, newest.id).record, newest.record
        assert isinstance(sent, RequestRecord)
        assert (made.prefix, made.forecast) == (sent.prefix, sent.forecast)
