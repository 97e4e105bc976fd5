"""Heads: what a context that begins anew shows, each test named after the rule of the design that it holds."""

from __future__ import annotations

import pytest

from governors.messages import SystemPatch, ToolSpec
from governors.snip import OMITTED_STEPS
from runtime.session.entries import LeafRecord, SettingRecord
from runtime.session.view.projection import INTERRUPTED, project
from runtime.session.view.wrapping import SUMMARY

from .logs import Log, call

MARKER = f"user: {OMITTED_STEPS}"


@pytest.fixture
def log() -> Log:
    """Two finished turns, `one` and `two`, and the message that opens a third."""
    log = Log()
    log.system({"who": "base"})
    log.user("one")
    log.result(log.calls("a"))
    log.reply("did one")
    log.user("two")
    log.reply("did two")
    return log


def late(reply: int, text: str = "real") -> str:
    return f"user: [late result of x, call {reply}] | {text}"


def read_from_start(log: Log) -> list[str]:
    """What a reader sees that reads the log from the newest head's `from` on and nothing older."""
    head = next(entry for entry in reversed(log.branch) if entry.id == log.projection.head)
    start = head.record.start  # type: ignore[union-attr]  # it is a head
    projection = project([entry for entry in log.branch if entry.id >= start])
    assert projection == log.projection
    return log.shown


def test_rule_5_the_range_begins_at_the_newest_heads_from(log: Log) -> None:
    """A head before a turn shows the kept messages; what comes later follows them."""
    start = log.user("three")
    head = log.head(start)
    log.reply("did three")
    assert read_from_start(log) == ["user: three", "reply: did three"]
    assert (log.projection.head, log.projection.generation) == (head, 1)


def test_rule_5_kept_messages_keep_their_results(log: Log) -> None:
    """The head may stand far behind its `from`."""
    start = log.user("three")
    reply = log.calls("a")
    log.result(reply)
    log.reply("did three")
    log.user("four")
    log.head(start)
    assert read_from_start(log) == ["user: three", "reply: [a]", "result: done", "reply: did three", "user: four"]


def test_rule_5_a_summary_first_stands_before_the_kept_messages(log: Log) -> None:
    """Before a turn: baseline, summary, kept messages."""
    start = log.user("three")
    log.reply("did three")
    log.head(start, summary="So far: one, two.")
    log.user("four")
    assert read_from_start(log) == [
        f"user: {SUMMARY} | So far: one, two.",
        "user: three",
        "reply: did three",
        "user: four",
    ]


def test_rule_5_a_summary_last_stands_where_the_head_stands(log: Log) -> None:
    """After what was kept, before what came later."""
    start = log.user("three")
    log.reply("did three")
    log.head(start, summary="So far.", placement="last")
    log.user("four")
    assert read_from_start(log) == ["user: three", "reply: did three", f"user: {SUMMARY} | So far.", "user: four"]


def turn_of_three_steps(log: Log) -> tuple[int, list[int]]:
    """A turn with three complete steps and a message that was steered in after the first."""
    start = log.user("three")
    steps = []
    for number, tool in enumerate(["a", "b", "c"]):
        steps.append(log.calls(tool))
        log.result(steps[-1], text=f"of {tool}")
        if number == 0:
            log.user("by the way", steered=True)
    return start, steps


def test_rule_5_mid_turn_the_steps_before_resume_are_out_of_view(log: Log) -> None:
    """The user's messages between them stay, and one constant marker stands where the first step stood."""
    start, steps = turn_of_three_steps(log)
    log.head(start, resume=steps[2])
    log.reply("done")
    assert read_from_start(log) == [
        "user: three",
        MARKER,
        "user: by the way",
        "reply: [c]",
        "result: of c",
        "reply: done",
    ]


def test_rule_5_a_head_that_resumes_at_itself_keeps_no_step(log: Log) -> None:
    """Only what the user said is left of the turn."""
    start, _ = turn_of_three_steps(log)
    log.head(start, resume=0)
    log.calls("d")
    assert read_from_start(log) == ["user: three", MARKER, "user: by the way", "reply: [d]", "stand-in: d"]


def test_rule_5_with_a_summary_no_marker_is_needed(log: Log) -> None:
    """Mid-turn: current user messages, kept complete steps, summary last."""
    start, steps = turn_of_three_steps(log)
    log.head(start, resume=steps[2], summary="Did a and b.", placement="last")
    assert read_from_start(log) == [
        "user: three",
        "user: by the way",
        "reply: [c]",
        "result: of c",
        f"user: {SUMMARY} | Did a and b.",
    ]


def test_rule_5_replies_that_were_never_shown_leave_no_marker(log: Log) -> None:
    """A marker says that steps were left out; an aborted reply is none."""
    start = log.user("three")
    log.reply("half", stop="aborted")
    log.user("again")
    step = log.calls("a")
    log.result(step)
    log.head(start, resume=step)
    assert read_from_start(log) == ["user: three", f"user: {INTERRUPTED} | again", "reply: [a]", "result: done"]


def test_rule_5_the_newest_head_counts(log: Log) -> None:
    """A head inside the range of another takes over range, baseline and generation."""
    first = log.user("three")
    log.reply("did three")
    log.head(first, summary="old")
    second = log.user("four")
    log.reply("did four")
    log.head(second, summary="new")
    assert read_from_start(log) == [f"user: {SUMMARY} | new", "user: four", "reply: did four"]
    assert log.projection.generation == 2


def test_rule_5_heads_in_one_turn_leave_out_more_and_more(log: Log) -> None:
    """The same `from`, a later `resume`: one marker, at the same place."""
    start, steps = turn_of_three_steps(log)
    log.head(start, resume=steps[1])
    before = log.shown
    step = log.calls("d")
    log.result(step, text="of d")
    log.head(start, resume=step)
    assert read_from_start(log) == ["user: three", MARKER, "user: by the way", "reply: [d]", "result: of d"]
    assert before[:3] == log.shown[:3]


def test_rule_5_a_head_on_another_branch_does_not_count(log: Log) -> None:
    """A fork before the head sees everything."""
    start = log.user("three")
    log.head(start)
    log.add(LeafRecord(leaf=start))
    log.reply("did three")
    assert log.shown[0] == "user: one" and log.projection.head is None


def test_rule_5_a_lost_from_is_followed_by_what_came_after_it(log: Log) -> None:
    """When the line of the first message is broken, the rest of the range is still the range."""
    start = log.user("three")
    log.reply("did three")
    log.head(start)
    branch = [entry for entry in log.branch if entry.id != start]
    assert [message.origin for message in project(branch).messages] == [start + 1]


def test_rule_6_at_a_head_all_earlier_system_entries_fold_into_the_baseline(log: Log) -> None:
    """None of them is a message any longer, not even one after `from`; later patches are."""
    start = log.user("three")
    log.system({"who": "newer"}, tools_added=(ToolSpec("b", "", {}), ToolSpec("a", "", {})))
    assert log.projection.baseline.text == "base" and len(log.shown) == 8
    log.head(start)
    log.system({"who": "newest"})
    projection = log.projection
    assert (projection.baseline.text, projection.state.text) == ("newer", "newest")
    assert [tool.name for tool in projection.tools] == ["a", "b"]
    assert read_from_start(log)[0] == "user: three"
    (patch,) = (message for message in projection.messages if isinstance(message, SystemPatch))
    assert "newest" in patch.text


def test_heads_carry_the_settings(log: Log) -> None:
    """Also those that were made before `from`."""
    log.add(SettingRecord(name="model", value="a"))
    start = log.user("three")
    log.add(SettingRecord(name="thinking", value="low"))
    log.head(start)
    read_from_start(log)
    assert log.projection.settings == {"model": "a", "thinking": "low"}


def test_rule_2_a_result_of_a_call_that_a_head_cut_is_shown_at_its_own_place(log: Log) -> None:
    """No request carried a stand-in of it, yet its slot is gone."""
    reply = log.calls("a")
    start = log.user("three")
    log.head(start)
    assert log.projection.open == {(reply, 0): None} and log.projection.stand_ins == ()
    log.result(reply, text="real")
    log.result(reply, text="again")
    assert read_from_start(log) == ["user: three", late(reply)]


def test_rule_2_a_result_of_a_call_in_the_gap_is_shown_at_its_own_place(log: Log) -> None:
    """The gap cuts calls as the range does."""
    start = log.user("three")
    reply = log.calls("a", "b")
    log.result(reply, 0, "of a")
    log.head(start, resume=0)
    log.result(reply, 1, "real")
    assert read_from_start(log) == ["user: three", MARKER, late(reply)]


def test_rule_2_a_call_that_a_head_keeps_still_gets_its_result_in_the_slot(log: Log) -> None:
    """The head lists it as open; it is in view all the same."""
    start = log.user("three")
    reply = log.calls("a")
    log.head(start)
    log.result(reply, text="real")
    assert read_from_start(log) == ["user: three", "reply: [a]", "result: real"]


def test_rule_2_a_second_head_still_knows_the_calls_that_the_first_cut(log: Log) -> None:
    """Open calls are carried from head to head, or a reader of the tail would drop the result."""
    reply = log.calls("a")
    log.head(log.user("three"))
    log.reply("did three")
    log.head(log.user("four"))
    assert log.projection.open == {(reply, 0): None}
    log.result(reply, text="real")
    assert read_from_start(log) == ["user: four", late(reply)]


def test_rule_2_a_late_result_stays_where_it_is_when_a_second_head_keeps_it(log: Log) -> None:
    """What was shown at its own place is not hidden by a head whose range holds it."""
    reply = log.calls("a")
    start = log.user("three")
    log.head(start)
    log.result(reply, text="real")
    log.reply("did three")
    log.head(start, summary="So far.")
    assert read_from_start(log) == [f"user: {SUMMARY} | So far.", "user: three", late(reply), "reply: did three"]


def test_rule_5_from_may_be_a_late_result(log: Log) -> None:
    """It is a message of the user's role like any other."""
    reply = log.calls("a")
    log.user("three")
    log.request()
    start = log.result(reply, text="real")
    log.reply("did three")
    log.head(start)
    assert read_from_start(log) == [late(reply), "reply: did three"]


def test_rule_5_from_may_be_the_result_of_a_call_that_was_cut_off(log: Log) -> None:
    """Its call was never sent, so no stand-in tells of it; the head does."""
    reply = log.reply("long", call("a", complete=False), stop="length")
    start = log.result(reply, text="real")
    log.head(start)
    assert read_from_start(log) == [late(reply)]


def test_rule_4_a_result_of_a_call_that_was_cut_off_goes_when_its_reply_has_gone(log: Log) -> None:
    """Such a call never ran, so no head carries it as open."""
    reply = log.reply("long", call("a", complete=False), stop="length")
    log.head(log.user("three"))
    log.result(reply, text="real")
    assert read_from_start(log) == ["user: three"]


def test_rule_5_a_result_goes_with_its_call(log: Log) -> None:
    """A result that stood in its slot leaves with it, though it was written after `from`."""
    reply = log.calls("a")
    start = log.user("three")
    log.result(reply, text="real")
    assert log.shown[-3:] == ["reply: [a]", "result: real", "user: three"]
    log.head(start)
    assert read_from_start(log) == ["user: three"]


def test_rule_5_late_results_in_the_gap_go_with_the_steps(log: Log) -> None:
    """They are results, and the summary or the marker stands for them."""
    start = log.user("three")
    reply = log.calls("a")
    log.request()
    log.result(reply, text="real")
    step = log.calls("b")
    log.result(step, text="of b")
    log.head(start, resume=step)
    assert read_from_start(log) == ["user: three", MARKER, "reply: [b]", "result: of b"]


def test_rule_8_undoing_a_head_shows_the_previous_range_and_all_since(log: Log) -> None:
    """A result that came while its call was out of view keeps its own place: the slot was lost for ever."""
    first = log.user("three")
    log.head(first)
    reply = log.calls("a")
    second = log.user("four")
    log.head(second)
    log.result(reply, text="real")
    log.head(first)
    assert read_from_start(log) == ["user: three", "reply: [a]", "stand-in: a", "user: four", late(reply)]


def test_a_head_may_begin_inside_the_gap_of_another_if_it_carries_resume(log: Log) -> None:
    """Without `resume` the left-out steps would come back into view; with it they stay out."""
    start, steps = turn_of_three_steps(log)
    inner = next(entry.id for entry in log.branch if entry.id > start and getattr(entry.record, "steered", False))
    log.head(start, resume=steps[2])
    log.head(inner, resume=steps[2])
    assert read_from_start(log) == ["user: by the way", MARKER, "reply: [c]", "result: of c"]
