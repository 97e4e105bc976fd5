"""Pins: what stays in view when a head cuts it off."""

from __future__ import annotations

import pytest

from governors.messages import Image, Text, Thinking, UserMessage
from governors.repair import repair
from runtime.session.entries import BranchSummaryRecord, HeadRecord, MessageRecord, Pinned
from runtime.session.view.pins import PINNED, fit_pins, pins_message, shortened
from runtime.session.view.ranges import newest_head
from runtime.session.view.wrapping import SUMMARY

from .logs import Log


@pytest.fixture
def log() -> Log:
    """A turn in which everything is pinned."""
    log = Log()
    log.pin(log.user("my name is Ada", context="noon"))
    reply = log.calls("a", text="let me look")
    log.pin(reply)
    log.pin(log.result(reply, text="of a", tool="a"))
    log.pin(log.reply("done", Thinking("hm")))
    return log


def pins_of(log: Log) -> tuple[Pinned, ...]:
    head = newest_head(log.branch)
    assert head is not None and isinstance(head.record, HeadRecord)
    return head.record.pins


def said(log: Log) -> list[tuple[str, str]]:
    return [(pin.said, " ".join(part.text for part in pin.content if isinstance(part, Text))) for pin in pins_of(log)]


def test_pinned_entries_that_go_out_of_view_are_carried(log: Log) -> None:
    """Who said it and what: without context, reasoning and calls."""
    log.head(log.user("next"))
    assert said(log) == [("user", "my name is Ada"), ("assistant", "let me look"), ("a", "of a"), ("assistant", "done")]
    assert log.shown[0].startswith(f"user: {PINNED} | [#1, user] | my name is Ada | [#3, assistant] | let me look")
    assert log.shown[1:] == ["user: next"]
    messages = log.projection.messages
    assert repair(messages) is messages


def test_pins_stand_between_the_summary_and_what_was_kept(log: Log) -> None:
    """Before a turn: baseline, summary, pins, quote, kept messages; each of the head's own."""
    head = log.head(log.user("next"), summary="So far.", quote="Shall I?")
    assert [line.split(" | ")[0] for line in log.shown] == [
        f"user: {SUMMARY}",
        f"user: {PINNED}",
        "user: Shall I?",
        "user: next",
    ]
    assert [message.origin for message in log.projection.messages[:3]] == [head] * 3


def test_in_mid_turn_pins_lead_and_the_summary_comes_last() -> None:
    """Mid-turn: baseline, pins, messages, kept steps, summary."""
    log = Log()
    start = log.user("go")
    log.pin(start)
    log.pin(log.reply("first"))
    step = log.calls("a")
    log.result(step)
    log.head(start, resume=step, summary="Did it.", placement="last")
    assert [line.split(" | ")[0] for line in log.shown] == [
        f"user: {PINNED}",
        "user: go",
        "reply: [a]",
        "result: done",
        f"user: {SUMMARY}",
    ]
    assert said(log) == [("assistant", "first")], "the user's message stays in view by itself"


def test_a_head_that_keeps_no_step_carries_all_that_are_pinned() -> None:
    """`resume` is the head itself."""
    log = Log()
    start = log.user("go")
    log.pin(log.reply("first"))
    log.head(start, resume=0)
    assert said(log) == [("assistant", "first")]


def test_heads_carry_the_pins_of_earlier_heads_on(log: Log) -> None:
    """Those that were unpinned or redacted since are left behind; what the request showed until then stays."""
    log.head(log.user("next"))
    log.pin(1, on=False)
    assert "Ada" in log.shown[0], "a prefix is not moved for it"
    log.redact(3)
    log.pin(log.user("later"))
    log.head(log.user("last"))
    assert said(log) == [("a", "of a"), ("assistant", "done"), ("user", "later")]


def test_an_entry_that_is_pinned_when_it_is_out_of_view_comes_back_with_the_next_head() -> None:
    """It is in the log that was read."""
    log = Log()
    first = log.user("my name is Ada")
    log.reply("hello")
    log.head(log.user("next"))
    log.pin(first)
    assert log.shown == ["user: next"]
    log.head(log.user("last"))
    assert said(log) == [("user", "my name is Ada")]


def test_pins_of_another_branch_are_not_carried() -> None:
    """They are true there; this branch never said it."""
    log = Log()
    first = log.user("go")
    log.pin(log.reply("here"))
    log.leaf(first)
    log.reply("there")
    log.head(log.user("next"))
    assert pins_of(log) == ()


def test_pins_are_carried_as_they_were_shown() -> None:
    """An edit holds; what was left out by a person is not carried; an empty reply has nothing to carry."""
    log = Log()
    edited, omitted = log.user("first words"), log.user("never mind")
    log.edit(edited, "replace", "better words")
    log.edit(omitted)
    empty = log.calls("a")
    told = log.add(BranchSummaryRecord(text="Tried it.", tip=edited))
    for target in (edited, omitted, empty, told):
        log.pin(target)
    log.head(log.user("next"))
    assert said(log) == [("user", "better words"), ("summary of another branch", "Tried it.")]


def test_a_redacted_pin_shows_nothing(log: Log) -> None:
    """Its place says so."""
    log.head(log.user("next"))
    log.redact(1)
    assert "| [#1, user] | [redacted] |" in log.shown[0] and "Ada" not in log.shown[0]


def test_pictures_are_carried() -> None:
    log = Log()
    picture = Image("image/png", "aGk=")
    log.pin(log.add(MessageRecord(role="user", content=(picture,))))
    log.head(log.user("next"))
    message = log.projection.messages[0]
    assert isinstance(message, UserMessage) and picture in message.content


def pin(entry: int, text: str) -> Pinned:
    return Pinned(entry=entry, said="user", content=(Text(text),))


def length(message: UserMessage) -> int:
    return len(message.text)


def test_the_newest_pins_win_the_room() -> None:
    """An older one is shortened to a line that says how to recall it, and goes where not even that fits."""
    pins = [pin(1, "a" * 500), pin(2, "b" * 500), pin(3, "c" * 500)]
    whole = length(pins_message(0, pins, lambda _: False))
    assert fit_pins(pins, whole, length) == tuple(pins)
    fitting = fit_pins(pins, whole - 300, length)
    assert [len(each.content[0].text) for each in fitting] == [104, 500, 500]  # type: ignore[union-attr] # texts
    assert fitting[0].content == (Text("a" * 80 + "… (shortened; recall #1)"),)
    assert length(pins_message(0, fitting, lambda _: False)) <= whole - 300
    assert [each.entry for each in fit_pins(pins, 600, length)] == [3]
    assert fit_pins(pins, 10, length) == () == fit_pins((), 10, length)


def test_shortening_is_done_once() -> None:
    """A short pin is its own line; a picture is worth the hint."""
    once = shortened(pin(1, "a" * 500))
    assert shortened(once) is once
    assert shortened(pin(1, "short")) == pin(1, "short")
    picture = Pinned(entry=7, said="user", content=(Image("image/png", "aGk="),))
    assert shortened(picture).content == (Text("… (shortened; recall #7)"),)
