"""What was redacted stands in no export."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from runtime.exports import as_model, to_atif, to_html, to_jsonl, to_markdown, transcript, veiled
from runtime.exports.veil import REDACTED, STALE
from runtime.providers.scripted import Scripted
from runtime.session.entries import (
    Entry,
    ExtensionRecord,
    InboxRecord,
    MessageRecord,
    NoteRecord,
    RedactRecord,
    ResultRecord,
)
from runtime.session.format.reading import read_session
from runtime.shelf.printing import transcript_lines
from tests.session.logs import Log

from .growing_logs import HEADER, Growing, growing_logs, word

MODEL = Scripted().model()


def outputs(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
    """Every format, and what a model would see at every entry."""
    yield "markdown", to_markdown(HEADER, entries)
    yield "html", to_html(HEADER, entries)
    yield "jsonl", to_jsonl(HEADER, entries).decode()
    yield "atif", json.dumps(to_atif(HEADER, entries))
    yield "terminal", "\n".join(transcript_lines(transcript(HEADER, entries), 80))
    for entry in entries:
        seen = as_model(entries, entry.id, MODEL)
        yield f"as model at {entry.id}", repr((seen.system, seen.messages, seen.body, seen.data))


@settings(deadline=None, max_examples=150)
@given(growing_logs())
def test_what_was_redacted_stands_nowhere(growing: Growing) -> None:
    """Not in the entry, and in nothing that was made from it."""
    for name, text in outputs(growing.entries):
        found = [entry for entry in growing.redacted if word(entry) in text]
        assert not found, name


@settings(deadline=None, max_examples=60)
@given(growing_logs())
def test_a_veiled_log_is_the_same_tree(growing: Growing) -> None:
    """Ids, parents, times and types stay; without redactions the very entries do."""
    shown = veiled(growing.entries)
    places = [(entry.id, entry.parent, entry.at, entry.record.type) for entry in growing.entries]
    assert [(entry.id, entry.parent, entry.at, entry.record.type) for entry in shown] == places
    if not growing.redacted:
        assert all(one is other for one, other in zip(shown, growing.entries, strict=True))
    assert veiled(shown) == shown
    again = read_session(to_jsonl(HEADER, growing.entries))
    assert [entry.id for entry in again.entries] == [entry.id for entry in growing.entries]
    assert not again.broken


def log_with_a_summary() -> Log:
    log = Log()
    secret = log.user("the code is 4711")
    log.reply("noted")
    start = log.user("go on")
    log.head(start, summary="a code was told: 4711")
    log.reply("yes")
    log.add(RedactRecord(target=secret))
    return log


def test_a_summary_that_may_hold_it_says_that_it_is_stale() -> None:
    """In words for people, wherever a summary is shown."""
    entries = log_with_a_summary().tree.entries
    for text in (to_markdown(HEADER, entries), to_html(HEADER, entries), to_jsonl(HEADER, entries).decode()):
        assert "4711" not in text
        assert "this summary is stale" in text
    assert STALE in str(to_atif(HEADER, entries))


@pytest.mark.parametrize("write", [to_markdown, to_html])
def test_a_redacted_reply_shows_nothing_of_its_calls(write: object) -> None:
    """Neither tool nor arguments; its results stay results."""
    log = Log()
    log.user("hi")
    reply = log.calls("secret_tool", text="my old words")
    log.result(reply, text="what came back", tool="look")
    log.add(RedactRecord(target=reply))
    text = write(HEADER, log.tree.entries)  # type: ignore[operator] # one of the two functions
    assert "secret_tool" not in text and "my old" not in text
    assert REDACTED.strip("[]") in text and "what came back" in text


STEPS = "inbox user reply calls result deliver reply label0 label1 label2 edit0 edit1 note extension user user reply"


def everything() -> Growing:
    """A session in which everything that can copy an entry does: labels, edits, a head with its pins, quote and input,
    a head that carries its summary on, and the summary of a branch."""
    growing = Growing()
    for step in STEPS.split():
        growing.apply(step.rstrip("012"), int(step[-1]) if step[-1].isdigit() else 1)
    for step, choice in (
        ("head", 2),
        ("carry", 0),
        ("user", 0),
        ("leaf", 1),
        ("summary", 50),
        ("user", 0),
        ("head", 1),
    ):
        growing.apply(step, choice)
    return growing


@pytest.mark.parametrize("target", range(everything().log.tree.next_id))
def test_every_copy_is_hidden(target: int) -> None:
    """Of each entry that can be redacted, in a session that copies it in every way."""
    growing = everything()
    record = getattr(growing.log.tree.get(target), "record", None)
    if not isinstance(record, (MessageRecord, ResultRecord, InboxRecord, NoteRecord, ExtensionRecord)):
        return
    assert any(word(target) in text for _, text in outputs(growing.entries)) or getattr(record, "inbox", None)
    growing.redact(target)
    for name, text in outputs(growing.entries):
        assert not [entry for entry in growing.redacted if word(entry) in text], name
