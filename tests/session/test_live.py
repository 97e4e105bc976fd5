"""A projection that is kept, against one that is made anew, over random logs (see `random_logs`)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Message, Text
from runtime.session.entries import HeadRecord, RedactRecord
from runtime.session.tree import Tree
from runtime.session.view.live import LiveProjection, LiveStanding
from runtime.session.view.projection import project
from runtime.session.view.standing import standing_of

from .logs import Log
from .random_logs import laws, logs


@laws
@given(logs(), st.data())
def test_what_is_kept_is_what_would_be_made_anew(log: Log, data: st.DataObject) -> None:
    """At any moments of a log, whatever came between: the same messages, the very same objects, in the same order."""
    tree, live = Tree(), LiveProjection()
    settled: list[Message] = []
    for entry in log.tree.entries:
        tree.add(entry)
        if data.draw(st.booleans()):
            kept, anew = live.project(tree.branch(), tree.redacted), project(tree.branch(), tree.redacted)
            assert kept == anew
            assert all(one is other for one, other in zip(kept.messages, anew.messages, strict=True))
            assert list(kept.stand_ins) == list(anew.stand_ins) and list(kept.open) == list(anew.open)
            assert all(one is other for one, other in zip(kept.messages[: live.steady], settled, strict=False))
            assert live.steady <= len(settled)
            if data.draw(st.booleans()):
                settled = list(kept.messages)
                live.settle()


@laws
@given(logs(), st.data())
def test_standing_that_is_kept_is_what_would_be_read_anew(log: Log, data: st.DataObject) -> None:
    """And what was given out before stays as it was."""
    tree, live = Tree(), LiveStanding()
    for entry in log.tree.entries:
        tree.add(entry)
        if data.draw(st.booleans()):
            standing = live.read(tree)
            assert standing == standing_of(tree.entries)
            copy = repr(standing)
            assert live.read(tree) is standing and repr(standing) == copy


@laws
@given(logs())
def test_standing_needs_nothing_older_than_the_newest_head_shows(log: Log) -> None:
    """Heads carry the input that waits and what was spent."""
    heads = [entry.record for entry in log.branch if isinstance(entry.record, HeadRecord)]
    if heads:
        whole, tail = (
            standing_of(entry for entry in log.tree.entries if entry.id >= start) for start in (0, heads[-1].start)
        )
        assert (tail.waiting, tail.spent) == (whole.waiting, whole.spent)


@laws
@given(logs())
def test_redactions_are_known_once_older_entries_were_read(log: Log) -> None:
    """A tree that was read from its tail and completed later."""
    entries = log.tree.entries
    middle = entries[len(entries) // 2].id
    tree, live = Tree([e for e in entries if e.id >= middle], complete=False), LiveStanding()
    live.read(tree)
    tree.complete_with(entries)
    assert live.read(tree) == standing_of(entries)
    assert live.read(tree).redacted == {e.record.target for e in entries if isinstance(e.record, RedactRecord)}


def test_messages_stand_while_a_conversation_goes_on() -> None:
    """What was settled is counted on until something moves it: here a result for a stand-in that nobody has seen."""
    log, live = Log(), LiveProjection()
    log.user("go")
    reply = log.calls("a", "b")
    live.project(log.branch)
    live.settle()
    log.user("next")
    live.project(log.branch)
    assert live.steady == 4
    log.result(reply, 1, "of b")
    assert live.project(log.branch).messages[3].content == (Text("of b"),)  # type: ignore[union-attr] # a result
    assert live.steady == 3


def test_a_big_branch_is_read_once() -> None:
    """Later entries are all that is pending."""
    log, live = Log(), LiveProjection()
    for number in range(50):
        log.user(str(number))
    assert live.pending(log.branch) == 50
    live.project(log.branch)
    log.user("more")
    assert live.pending(log.branch) == 1
    log.edit(1)
    assert live.pending(log.branch) == 52
