"""Redaction: what is hidden for good, and which summaries were made from it."""

from __future__ import annotations

import pytest

from governors.messages import Text
from runtime.session.entries import BranchSummaryRecord, ExtensionRecord, InboxRecord
from runtime.session.view.projection import project
from runtime.session.view.recall import recall
from runtime.session.view.redaction import REDACTED, STALE_SUMMARY, carried_summary, stale_at, stale_summaries
from runtime.session.view.wrapping import SUMMARY

from .logs import Log


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_redacted_message_shows_a_constant(log: Log) -> None:
    """Nor its context; on every branch."""
    said = log.user("the secret", context="from Ada")
    log.reply("done")
    log.redact(said)
    assert log.shown == [f"user: {REDACTED}", "reply: done"]
    log.leaf(said)
    log.reply("again")
    assert log.shown == [f"user: {REDACTED}", "reply: again"]


def test_a_redacted_result_shows_a_constant_in_its_place(log: Log) -> None:
    """In its slot, or where it came late."""
    log.user("go")
    reply = log.calls("a", "b")
    first = log.result(reply, 0, "secret")
    log.request()
    late = log.result(reply, 1, "secret")
    log.redact(first)
    log.redact(late)
    assert log.shown == [
        "user: go",
        "reply: [a] [b]",
        f"result: {REDACTED}",
        "stand-in: b",
        f"user: [late result of x, call {reply}] | {REDACTED}",
    ]


def test_a_redacted_reply_goes_with_its_results(log: Log) -> None:
    """Also with those that come later."""
    log.user("go")
    reply = log.calls("a", "b")
    log.result(reply, 0)
    log.redact(reply)
    log.result(reply, 1)
    assert log.shown == ["user: go"]
    assert log.projection.open == {}


def test_no_edit_brings_back_what_is_redacted(log: Log) -> None:
    """Neither `restore` nor a stub that was made of it."""
    log.user("go")
    reply = log.calls("a")
    result = log.result(reply, text="the secret")
    log.edit(result, "replace", "[result: the secret]")
    log.redact(result)
    assert log.shown[-1] == f"result: {REDACTED}"
    log.edit(result, "restore")
    assert log.shown[-1] == f"result: {REDACTED}"


def test_what_an_edit_put_in_can_be_redacted(log: Log) -> None:
    """The edit stands; its words are gone."""
    said = log.user("words")
    log.redact(log.edit(said, "replace", "the secret"))
    assert log.shown == [f"user: {REDACTED}"]


def test_summaries_and_what_extensions_said_can_be_redacted(log: Log) -> None:
    """Their wrapping stays."""
    log.redact(log.add(BranchSummaryRecord(text="secret", tip=1)))
    log.redact(log.add(ExtensionRecord(name="x", content=(Text("secret"),))))
    log.redact(log.head(1, summary="secret", quote="secret"))
    assert "secret" not in str(log.projection.messages)
    assert len(log.shown) == 4


def test_a_message_is_redacted_with_the_input_that_it_delivered(log: Log) -> None:
    """It is the same text."""
    item = log.add(InboxRecord(state="queued", content=(Text("the secret"),)))
    said = log.user("the secret", inbox=item)
    log.redact(item)
    assert log.shown == [f"user: {REDACTED}"]
    assert recall(log.tree.entries, f"#{said}") == REDACTED


def test_a_quote_of_a_redacted_reply_says_nothing(log: Log) -> None:
    log.user("go")
    reply = log.reply("The secret. Shall I?")
    log.head(log.user("yes"), quote="The secret. Shall I?", quoted=reply)
    log.redact(reply)
    assert log.shown == [f"user: {REDACTED}", "user: yes"]


def test_recall_tells_nothing_of_a_redacted_entry(log: Log) -> None:
    """By its number, by its handle, or by its words."""
    from governors.messages import ToolResult
    from governors.microcompact import handle_of, stub

    log.user("go")
    reply = log.calls("a")
    result = log.result(reply, text="the secret " * 100)
    handle = handle_of((Text("the secret " * 100),))
    assert handle in stub(ToolResult("", "a", (Text("the secret " * 100),))).text
    entries = log.tree.entries
    assert "secret" in str(recall(entries, handle)) and "secret" in str(recall(entries, f"#{result}"))
    assert recall(entries, handle, {result}) == recall(entries, str(result), {result}) == REDACTED
    assert recall(entries, "the secret", {result}) is None
    log.redact(result)
    assert recall(log.tree.entries, handle) == REDACTED
    again = log.calls("a")
    log.result(again, text="the secret " * 100)
    assert "secret" in str(recall(log.tree.entries, handle)), "another entry says the same and is not redacted"


def test_a_summary_is_stale_when_an_entry_it_was_made_from_is_redacted(log: Log) -> None:
    """Not when the entry was kept, or stands on another branch, or was redacted before."""
    secret = log.user("the secret")
    log.reply("done")
    start = log.user("next")
    head = log.head(start, summary="All of it.")
    kept = log.reply("kept")
    later = log.head(log.user("last"), summary="And more.")
    log.leaf(secret)
    other = log.reply("elsewhere")
    for target, stale in ((secret, {head, later}), (start, {later}), (kept, {later}), (other, set())):
        assert stale_summaries(log.tree.entries, {target}) == stale
    log.leaf(later)
    log.redact(secret)
    log.reply("on")
    log.head(log.user("afresh"), summary="Without it.")
    assert stale_summaries(log.tree.entries) == {head, later}


def test_a_summary_of_input_is_stale_whichever_copy_was_redacted(log: Log) -> None:
    """The input, the message that brought it, or another that did: on any branch."""
    item = log.add(InboxRecord(state="queued", content=(Text("the secret"),)))
    said = log.user("the secret", inbox=item)
    log.reply("done")
    head = log.head(log.user("next"), summary="The secret.")
    assert stale_summaries(log.tree.entries, {item}) == {head}
    assert stale_summaries(log.tree.entries, {said}) == {head}
    redact = log.redact(item)
    assert stale_summaries(log.tree.entries) == {head}
    branch = {entry.id: entry for entry in log.branch}
    assert item not in branch
    assert stale_at(branch, {item: redact}) == {head}
    log.user("the secret", inbox=item)
    later = log.head(log.user("last"), summary="Something else.")
    assert later not in stale_summaries(log.tree.entries), "it was made after that"


def test_a_stale_summary_makes_those_stale_that_were_made_from_it(log: Log) -> None:
    """A branch summary, and a head that stands for it."""
    fork = log.user("go")
    secret = log.user("the secret")
    log.leaf(fork)
    summary = log.add(BranchSummaryRecord(text="Tried it.", tip=secret, fork=fork))
    head = log.head(log.user("next"), summary="Went back.")
    unread = [entry for entry in log.tree.entries if entry.id >= log.tree.entries[-2].id]
    log.redact(secret)
    assert stale_summaries(log.tree.entries) == {summary, head}
    log.redact(log.user("harmless"))
    assert stale_summaries(log.tree.entries) == {summary, head}
    assert stale_summaries(unread, {secret}) == {head}, "what was not read counts as the worse case"
    assert stale_summaries(log.tree.entries[:-4]) == frozenset()


def test_a_later_head_does_not_carry_a_stale_summary_on(log: Log) -> None:
    """It says that there was one; the constant is carried on as it is."""
    secret = log.user("the secret")
    log.head(log.user("next"), summary="All of the secret.")
    log.redact(secret)
    assert "All of the secret." in log.shown[0], "it is flagged to people, and stays as it was sent"
    head = log.head(log.user("last"), carry=True)
    assert log.shown == [f"user: {SUMMARY} | {STALE_SUMMARY}", "user: last"]
    assert head not in stale_summaries(log.tree.entries)
    log.head(log.user("more"), carry=True)
    assert log.shown == [f"user: {SUMMARY} | {STALE_SUMMARY}", "user: more"]


def test_a_head_that_carried_a_stale_summary_all_the_same_is_stale(log: Log) -> None:
    """Other programs write logs too."""
    secret = log.user("the secret")
    log.head(log.user("next"), summary="All of the secret.")
    log.redact(secret)
    later = log.head(log.user("last"), summary="All of the secret.")
    assert later in stale_summaries(log.tree.entries)


def test_without_an_earlier_summary_there_is_none_to_carry(log: Log) -> None:
    log.user("go")
    head = log.tree.get(log.head(log.user("next")))
    assert carried_summary(None, ()) is None and carried_summary(head, ()) is None


def test_redacting_what_is_not_there_changes_nothing(log: Log) -> None:
    log.user("go")
    assert project(log.branch, {99}) == project(log.branch)
