"""Moving the leaf: what is taken back, what runs again, which head is kept, what holds after a head is undone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text
from runtime.errors import SessionError
from runtime.session.entries import (
    Entry,
    HeadRecord,
    LabelRecord,
    LeafRecord,
    NoteRecord,
    Pinned,
    RedactRecord,
    RequestRecord,
    SettingRecord,
)
from runtime.session.moving.finding import entry_of, find, hidden
from runtime.session.moving.rewind import (
    KEPT,
    UNDONE,
    Move,
    before_turn,
    fork_of,
    head_to_undo,
    newest_tip_of,
    retry,
    session_model,
    switch,
    undo,
    undo_head,
)
from runtime.session.moving.turns import is_user, said, turns_of
from runtime.session.placing import place
from runtime.session.view.projection import project
from runtime.session.view.redaction import REDACTED, STALE_SUMMARY
from runtime.session.view.wrapping import SUMMARY

from .logs import Log
from .records import AT, patient, user


def go(log: Log, move: Move) -> None:
    for record in move.records:
        log.add(record)
    assert move.leaf == log.tree.leaf or len(move.records) > 1


def exchange(log: Log, asked: str, answered: str = "ok") -> int:
    """A turn as the agent records one; its opening."""
    opening = log.user(asked)
    log.request()
    log.reply(answered)
    return opening


def head_ids(branch: Sequence[Entry]) -> list[int]:
    return [entry.id for entry in branch if isinstance(entry.record, HeadRecord)]


class TestTurns:
    def test_what_was_set_between_turns_belongs_to_the_first(self) -> None:
        """So that an undo of the second keeps it."""
        log = Log()
        exchange(log, "a")
        log.add(SettingRecord(name="model", value="p/m"))
        second = exchange(log, "b")
        first, last = turns_of(log.branch)
        assert first.entries[-1].record.type == "setting"
        assert (last.opening[0].id, last.before) == (second, first.entries[-1].id)

    def test_input_delivered_together_opens_one_turn_and_steered_input_none(self) -> None:
        """The messages that waited, and the one that they went along with."""
        log = Log()
        together = (user("waited", inbox=1), user("said"))
        for entry in place(log.tree, together, AT):
            log.tree.add(entry)
        log.reply("ok")
        log.user("steered", inbox=9, steered=True)
        log.reply("ok")
        (turn,) = turns_of(log.branch)
        assert said(*turn.opening) == "waited\n\nsaid"
        assert said(*turn.steered) == "steered"

    def test_two_messages_in_a_row_are_two_turns(self) -> None:
        """The first got no answer: nothing of it was recorded but the message."""
        log = Log()
        log.user("a")
        log.user("b")
        assert len(turns_of(log.branch)) == 2


class TestUndo:
    def test_a_turn_goes_with_all_that_came_of_it(self) -> None:
        log = Log()
        exchange(log, "a", "one")
        opening = exchange(log, "b", "two")
        log.user("steered", inbox=9, steered=True)
        log.reply("three")
        moved = undo(log.tree)
        assert moved.turns[0].opening[0].id == opening
        go(log, moved)
        assert log.shown == ["user: a", "reply: one"]

    def test_more_than_there_are(self) -> None:
        """The number that there are is told."""
        log = Log()
        with pytest.raises(SessionError, match="nothing to undo"):
            undo(log.tree)
        exchange(log, "a")
        with pytest.raises(SessionError, match="only 1 turn"):
            undo(log.tree, 2)
        with pytest.raises(SessionError, match="1 turn or more"):
            undo(log.tree, 0)

    def test_the_summary_of_what_is_still_there_is_kept(self) -> None:
        """A head that was made in the undone turn, before it: all that it stands for is on the branch."""
        log = Log()
        exchange(log, "a")
        kept = exchange(log, "b")
        log.user("c")
        log.head(kept, summary="They said a.")
        log.request()
        log.reply("ok")
        go(log, undo(log.tree))
        assert log.shown == [f"user: {SUMMARY} | They said a.", "user: b", "reply: ok"]
        head = log.branch[-1].record
        assert isinstance(head, HeadRecord)
        assert head.cause == KEPT
        assert head_to_undo(log.branch) is None  # the next undo takes a turn back

    def test_a_summary_of_what_is_undone_is_not_kept(self) -> None:
        """Neither one that begins in the undone turn nor one that stands for steps of it."""
        log = Log()
        first = exchange(log, "a")
        opening = log.user("b")
        step = log.calls("x")
        log.result(step)
        kept = log.calls("x")
        log.head(first, resume=kept, summary="They said a, and x was called.")
        log.result(kept)
        log.head(opening, resume=kept, summary="More.")
        log.reply("ok")
        go(log, undo(log.tree))
        assert log.shown == ["user: a", "reply: ok"]

    def test_a_summary_that_begins_the_context_at_the_undone_turn_is_not_kept(self) -> None:
        """Its first message is gone; the next turn sees what there is."""
        log = Log()
        exchange(log, "a")
        opening = exchange(log, "b")
        log.head(opening, summary="They said a.")
        exchange(log, "c")
        go(log, undo(log.tree, 2))
        assert log.shown == ["user: a", "reply: ok"]

    def test_what_the_governors_cut_is_decided_anew(self) -> None:
        """Their heads are not kept, even with a summary that they carried on."""
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.user("c")
        summary = log.head(second, summary="They said a.")
        record = log.tree.get(summary)
        assert record is not None
        assert isinstance(record.record, HeadRecord)
        log.add(HeadRecord(start=second, baseline=record.record.baseline, cause="snip", generation=9, summary="S"))
        log.reply("ok")
        moved = undo(log.tree)
        (_, head) = moved.records
        assert isinstance(head, HeadRecord)
        assert head.summary == "They said a."

    def test_a_stale_summary_is_not_kept(self) -> None:
        """It was made from what was redacted since; nothing new is told of that, by an undone head neither."""
        log = Log()
        secret = exchange(log, "hunter2")
        second = exchange(log, "b")
        log.user("c")
        log.head(second, summary="They told hunter2.")
        log.head(second, summary="They told hunter2, and c.")
        log.add(RedactRecord(target=secret))
        (_, head) = undo(log.tree).records
        assert isinstance(head, HeadRecord)
        assert head.summary == undo_head(log.tree).summary == STALE_SUMMARY

    def test_a_head_that_is_made_again_holds_nothing_redacted_and_all_that_was_learned(self) -> None:
        """No pin, no quote, no call of it; what an overflow taught on a branch that was left is carried on."""
        log = Log()
        pinned = exchange(log, "hunter2")
        log.add(SettingRecord(name="fit:a/b", value={"window": 1}))
        log.leaf(log.user("left"))
        log.add(SettingRecord(name="fit:a/b", value={"window": 2}))
        log.add(SettingRecord(name="thinking", value="high"))
        log.leaf(pinned)
        asked = log.reply("What of hunter2?")
        second = log.user("b")
        calling = log.calls("x")
        pins = (Pinned(entry=pinned, said="user", content=(Text("hunter2"),)),)
        log.head(second, summary="They spoke.", pins=pins, quote="What of hunter2?", quoted=asked)
        log.user("c")
        log.head(second, summary="They spoke on.")
        for target in (pinned, asked, calling):
            log.redact(target)
        (_, kept) = undo(log.tree).records
        for head in (undo_head(log.tree), kept):
            assert isinstance(head, HeadRecord)
            assert (head.pins, head.quote in (None, REDACTED), head.open_calls) == ((), True, ())
            assert head.settings == {"fit:a/b": {"window": 2}}

    def test_a_head_before_the_undone_turn_stands_where_it_is(self) -> None:
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.head(second, summary="They said a.")
        exchange(log, "c")
        moved = undo(log.tree)
        assert [record.type for record in moved.records] == ["leaf"]
        go(log, moved)
        assert log.shown == [f"user: {SUMMARY} | They said a.", "user: b", "reply: ok"]

    def test_a_head_that_was_undone_is_not_kept(self) -> None:
        """It was taken back; an undo of the turn does not bring it in again."""
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.user("c")
        log.head(second, summary="They said a.")
        log.add(undo_head(log.tree))
        log.reply("ok")
        moved = undo(log.tree)
        assert [record.type for record in moved.records] == ["leaf"]


class TestUndoHead:
    def test_the_first_head_gives_everything_back(self) -> None:
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.head(second, summary="They said a.")
        assert head_to_undo(log.branch) == log.tree.leaf
        log.add(undo_head(log.tree))
        assert log.shown == ["user: a", "reply: ok", "user: b", "reply: ok"]
        assert head_to_undo(log.branch) is None

    def test_a_later_one_gives_the_range_before_it_and_all_since(self) -> None:
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.head(second, summary="They said a.")
        third = exchange(log, "c")
        log.head(third, summary="They said a and b.")
        exchange(log, "d")
        head = undo_head(log.tree)
        assert (head.cause, head.start, head.generation) == (UNDONE, second, log.projection.generation + 1)
        log.add(head)
        assert log.shown[:3] == [f"user: {SUMMARY} | They said a.", "user: b", "reply: ok"]
        assert len(log.shown) == 7
        log.add(undo_head(log.tree))
        assert log.shown[0] == "user: a"
        with pytest.raises(SessionError, match="nothing was cut"):
            undo_head(log.tree)

    def test_a_head_with_something_said_after_it_is_not_what_an_undo_means(self) -> None:
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.head(second, summary="They said a.")
        log.user("c")
        assert head_to_undo(log.branch) is None


class TestRetry:
    def test_the_message_stays_and_what_was_steered_in_follows(self) -> None:
        log = Log()
        exchange(log, "a")
        opening = log.user("b")
        log.reply("half", stop="aborted")
        log.user("and c", inbox=9, steered=True)
        log.reply("no")
        moved = retry(log.tree)
        assert moved.leaf == opening
        go(log, moved)
        assert log.shown[-2:] == ["user: b", "user: and c"]
        assert len(turns_of(log.branch)) == 2

    def test_redacted_input_is_not_said_again(self) -> None:
        log = Log()
        log.user("b")
        steered = log.user("hunter2", inbox=9, steered=True)
        log.reply("no")
        log.add(RedactRecord(target=steered))
        assert [record.type for record in retry(log.tree).records] == ["leaf"]

    def test_a_summary_made_for_the_turn_is_kept(self) -> None:
        """The head of a compaction before the turn stands after its message; its summary holds as well now."""
        log = Log()
        exchange(log, "a")
        second = exchange(log, "b")
        log.user("c")
        log.head(second, summary="They said a.")
        log.request()
        log.reply("bad")
        go(log, retry(log.tree))
        assert log.shown == [f"user: {SUMMARY} | They said a.", "user: b", "reply: ok", "user: c"]

    def test_nothing_was_said(self) -> None:
        with pytest.raises(SessionError, match="nothing to try again"):
            retry(Log().tree)


class TestSwitch:
    def test_to_another_branch_and_to_its_newest_tip(self) -> None:
        log = Log()
        exchange(log, "a")
        b = exchange(log, "b")
        tip = log.tree.leaf
        go(log, undo(log.tree))
        exchange(log, "other")
        assert switch(log.tree, b).leaf == tip == newest_tip_of(log.tree, b)
        assert fork_of(log.tree, log.tree.leaf, tip) == log.branch[2].id

    def test_on_the_branch_to_the_end_of_the_turn(self) -> None:
        log = Log()
        a = exchange(log, "a")
        end = log.tree.leaf
        exchange(log, "b")
        assert switch(log.tree, a).leaf == end
        go(log, switch(log.tree, a))
        assert switch(log.tree, a).records == ()

    def test_before_a_turn_of_another_branch(self) -> None:
        """To say its message in other words there."""
        log = Log()
        exchange(log, "a")
        b = exchange(log, "b")
        c = exchange(log, "c")
        go(log, undo(log.tree, 2))
        exchange(log, "other")
        moved = before_turn(log.tree, c)
        assert said(*moved.turns[0].opening) == "c"
        go(log, moved)
        assert log.shown[-2:] == ["user: b", "reply: ok"]
        assert log.tree.holds(log.tree.leaf, b)

    def test_a_number_of_what_is_on_no_branch_means_what_it_is_about(self) -> None:
        log = Log()
        a = exchange(log, "a")
        end = log.tree.leaf
        exchange(log, "b")
        label = log.add(LabelRecord(text="x", target=a))
        note = log.add(NoteRecord(text="n"))
        assert find(log.tree, label).id == a
        assert find(log.tree, note).id == log.tree.leaf
        assert switch(log.tree, label).leaf == end

    def test_the_nearest_ids_are_named(self) -> None:
        log = Log()
        with pytest.raises(SessionError, match="nothing was said"):
            entry_of(log.tree, 3)
        exchange(log, "a")
        with pytest.raises(SessionError, match="no entry 9 in this session; the nearest: 3"):
            entry_of(log.tree, 9)
        assert hidden(log.tree) == frozenset()


def test_the_model_of_a_branch() -> None:
    """The newest setting, or what the newest head says was in force."""
    log = Log()
    exchange(log, "a")
    assert session_model(log.branch) is None
    log.add(SettingRecord(name="model", value="p/one"))
    second = exchange(log, "b")
    log.head(second)
    assert session_model(log.branch) == "p/one"
    log.add(SettingRecord(name="model", value=None))
    assert session_model(log.branch) is None


ACTS = ("say", "say", "step", "head", "head", "undo", "undo", "retry", "switch", "before", "undo head")


@st.composite
def wanderings(draw: st.DrawFn) -> Log:
    """A log of turns, heads, undos, retries and switches, in any order."""
    log = Log()
    log.user("first")
    log.reply("ok")
    for number in range(draw(st.integers(1, 14))):
        act = draw(st.sampled_from(ACTS))
        opened = [turn.opening[0].id for turn in turns_of(log.branch)]
        match act:
            case "step":
                reply = log.calls("x", "y")
                if draw(st.booleans()):
                    log.result(reply)
            case "head" if opened:
                floor = max((e.record.start for e in log.branch if isinstance(e.record, HeadRecord)), default=0)
                starts = [start for start in opened if start >= floor]
                if starts:
                    log.head(draw(st.sampled_from(starts)), summary=draw(st.none() | st.just(f"summary {number}")))
            case "undo" if opened:
                go(log, undo(log.tree, draw(st.integers(1, len(opened)))))
            case "retry" if opened:
                go(log, retry(log.tree))
            case "switch":
                move = switch(
                    log.tree, draw(st.sampled_from([e.id for e in log.tree.entries if e.record.type != "leaf"]))
                )
                go(log, move)
            case "before":
                asked = [entry.id for entry in log.tree.entries if is_user(entry)]
                go(log, before_turn(log.tree, draw(st.sampled_from(asked))))
            case "undo head" if head_ids(log.branch):
                try:
                    log.add(undo_head(log.tree))
                except SessionError:
                    assert log.branch
            case _:
                log.user(f"message {number}")
                log.request()
                log.reply("ok")
    return log


@given(wanderings())
@patient
def test_wherever_one_went_the_branch_projects_and_replays(log: Log) -> None:
    """Heads name what their branch holds; the file read again gives the same tree; roles stay legal."""
    for entry in log.branch:
        if isinstance(entry.record, HeadRecord):
            assert log.tree.holds(log.tree.leaf, entry.record.start)
            assert entry.record.resume is None or log.tree.holds(log.tree.leaf, entry.record.resume)
    again = Log()
    for entry in log.tree.entries:
        again.tree.add(entry)
    assert again.tree.leaf == log.tree.leaf
    assert project(again.branch).messages == log.projection.messages


@given(wanderings(), st.integers(1, 3))
@patient
def test_an_undo_shows_what_was_seen_before_or_a_part_of_it(log: Log, turns: int) -> None:
    """Nothing of an undone turn is seen afterwards, and nothing is deleted."""
    found = turns_of(log.branch)
    if turns > len(found):
        return
    before = log.tree.entries
    gone = {entry.id for turn in found[-turns:] for entry in turn.entries}
    go(log, undo(log.tree, turns))
    assert log.tree.entries[: len(before)] == before
    assert not gone & {message.origin for message in log.projection.messages}
    assert not any(isinstance(entry.record, RequestRecord | LeafRecord) for entry in log.branch if entry.id in gone)
