"""Pins, redactions and long logs in real conversations: what every request shows, and what its log says about it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from runtime import Call, Reply, tool
from runtime.agent.ease import AT_ONCE, at_ease
from runtime.agent.thrift import thrift_of
from runtime.events import TurnFinished
from runtime.session.entries import HeadRecord, MessageRecord, NoteRecord, OutcomeRecord, PinRecord, RedactRecord
from tests.agents import Talk, assert_prefix_law, of, talk
from tests.agents_again import assert_every_request_is_made_again

WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])


@tool(read_only=True)
def lines(count: int) -> str:
    """Give many lines.

    Args:
        count: How many.
    """
    return "\n".join(f"line {number} of the long output" for number in range(count))


def said(it: Talk, text: str) -> int:
    """The entry of the user's message `text`."""
    return next(
        entry.id
        for entry in it.agent.session.tree.entries
        if isinstance(entry.record, MessageRecord) and text in str(entry.record.content)
    )


@WIRES
async def test_what_is_pinned_stays_in_every_request(tmp_path: Path, wire: str) -> None:
    """Cut after cut, a message and a reply; what was unpinned goes with the next cut."""
    script: list[Any] = ["Hello Ada."]
    for number in range(26):
        script += [Reply("", [Call("lines", {"count": 60})]), f"answer {number}"]
    async with talk(tmp_path, script, tools=[lines], wire=wire, window=6_000) as it:
        await it.say("my name is Ada")
        await it.agent.session.append(PinRecord(target=said(it, "my name is Ada")))
        await it.agent.session.append(PinRecord(target=said(it, "Hello Ada.")))
        for number in range(13):
            await it.say(f"question {number}")
            assert all("my name is Ada" in str(body) and "Hello Ada." in str(body) for body in it.bodies[1:])
        cuts = len(it.records(HeadRecord))
        assert cuts > 1
        await it.agent.session.append(PinRecord(target=said(it, "my name is Ada"), on=False))
        for number in range(13, 26):
            await it.say(f"question {number}")
        assert len(it.records(HeadRecord)) > cuts
        assert "my name is Ada" not in str(it.bodies[-1]) and "Hello Ada." in str(it.bodies[-1])
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)


@WIRES
async def test_pins_give_way_before_a_message_is_refused(tmp_path: Path, wire: str) -> None:
    """They are shortened when what must stay would not fit with them."""
    script: list[Any] = [f"answer {number}" for number in range(12)]
    async with talk(tmp_path, script, wire=wire, window=6_000) as it:
        await it.say("pinned words " * 200)
        await it.agent.session.append(PinRecord(target=said(it, "pinned words")))
        for number in range(6):
            await it.say(f"question {number} " + "and more words " * 250)
        assert any(head.pins for head in it.records(HeadRecord))
        assert "pinned words" in str(it.bodies[-1])
        (finished,) = of(TurnFinished, await it.say("a very long question " + "with many words " * 860))
        assert finished.error is None
        assert "a very long question" in str(it.bodies[-1])
        assert "pins" in {head.cause for head in it.records(HeadRecord)}
        assert 0 < str(it.bodies[-1]).count("pinned words") < 10
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)


@WIRES
async def test_a_redaction_moves_the_prefix_and_says_so(tmp_path: Path, wire: str) -> None:
    """What is hidden is in no later request; the outcome names the cause; requests before it are made again as they
    were."""
    async with talk(tmp_path, ["one", "two", "three", "four"], wire=wire) as it:
        await it.say("the password is swordfish")
        await it.say("go on")
        await it.agent.session.append(RedactRecord(target=said(it, "swordfish")))
        await it.say("and on")
        await it.say("and on")
        assert ["swordfish" in str(body) for body in it.bodies] == [True, True, False, False]
        assert [outcome.cause for outcome in it.records(OutcomeRecord)] == [None, None, "redact", None]
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)
        entries = it.agent.session.tree.entries
        redaction = next(entry.id for entry in entries if isinstance(entry.record, RedactRecord))
        before = [entry for entry in it.agent.session.branch() if entry.id < redaction]
        assert thrift_of(before, it.agent.model).economy.cache is not None
        assert thrift_of(before, it.agent.model, redaction).economy.cache is None


async def test_a_redaction_out_of_view_moves_nothing(tmp_path: Path) -> None:
    """The prefix stands, so there is no cause."""
    script: list[Any] = []
    for number in range(26):
        script += [Reply("", [Call("lines", {"count": 40})]), f"answer {number}"]
    async with talk(tmp_path, script, tools=[lines], window=6_000) as it:
        for number in range(15):
            await it.say(f"question {number}")
        assert "question 0" not in str(it.bodies[-1])
        await it.agent.session.append(RedactRecord(target=said(it, "question 0")))
        causes = len(it.records(OutcomeRecord))
        await it.say("question 15")
        assert "redact" not in {outcome.cause for outcome in it.records(OutcomeRecord)[causes:]}
        assert_prefix_law(it)


async def test_a_long_log_goes_on_where_it_stood(tmp_path: Path) -> None:
    """It is read in a worker thread when it is opened; what is sent is what would have been sent at once."""
    async with talk(tmp_path, ["one"] * 90, window=200_000) as it:
        for number in range(80):
            await it.say(f"question {number}")
        session = it.agent.session.id
        assert len(it.agent.session.branch()) > AT_ONCE
    async with talk(tmp_path, ["two", "three"], session=session, window=200_000) as it:
        await it.say("question 80")
        await it.agent.session.append(RedactRecord(target=said(it, "question 80")))
        await it.say("question 81")
        assert [len(body["messages"]) for body in it.bodies] == [161, 163]
        assert "question 80" not in str(it.bodies[-1])
        assert_every_request_is_made_again(it)


async def test_much_work_goes_to_a_thread_and_little_does_not() -> None:
    """The event loop would feel the one and a thread cost more than the other."""
    here = threading.get_ident()
    assert await at_ease(AT_ONCE, threading.get_ident) == here
    assert await at_ease(AT_ONCE + 1, threading.get_ident) != here


async def test_what_waits_and_what_was_learned_is_known_from_the_log(tmp_path: Path) -> None:
    """Also after entries that tell nothing of it."""
    async with talk(tmp_path, ["one"]) as it:
        await it.say("hello")
        await it.agent.session.append(NoteRecord(text="n"))
        assert it.agent.waiting() == ()
