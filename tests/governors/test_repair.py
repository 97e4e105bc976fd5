"""The repairs: whatever a history went through, a legal one comes out, and nothing moves without a reason."""

from __future__ import annotations

import json

import pytest
from adversarial import adversarial_histories, faults_of, messages, patterns
from builders import call, image, patch, reply, result, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import histories, unit_lists

from governors.messages import (
    AssistantMessage,
    Message,
    Messages,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from governors.repair import (
    backfill,
    collapse_calls,
    drop_orphans,
    drop_unfinished,
    late_result,
    normalise,
    order_results,
    repair,
    stand_in,
)

REPAIRS = [collapse_calls, drop_orphans, drop_unfinished, order_results, backfill, normalise, repair]


def call_ids(messages: Messages) -> list[str]:
    return [each.id for message in messages if isinstance(message, AssistantMessage) for each in message.calls]


@given(adversarial_histories, patterns)
def test_what_comes_out_is_legal(history: Messages, pattern: str) -> None:
    """Calls answered in order, ids legal and unrepeated, nothing empty, nothing that UTF-8 or JSON cannot hold."""
    assert faults_of(repair(history, id_pattern=pattern), pattern) == []


@given(histories())
def test_a_legal_history_comes_back_as_the_same_object(history: Messages) -> None:
    """No false alarm, from `repair` or from any single repair."""
    assert faults_of(history) == []
    assert all(each(history) is history for each in REPAIRS)


@given(adversarial_histories, patterns)
def test_repairing_twice_changes_nothing(history: Messages, pattern: str) -> None:
    """The output is a fixed point, as the same object."""
    once = repair(history, id_pattern=pattern)
    assert repair(once, id_pattern=pattern) is once


@given(adversarial_histories)
@pytest.mark.parametrize("one", REPAIRS)
def test_each_repair_is_idempotent(one: object, history: Messages) -> None:
    """Each by itself returns its own output as the same object."""
    assert callable(one)
    once = one(history)
    assert one(once) is once


@given(adversarial_histories, patterns)
def test_repaired_messages_are_made_once(history: Messages, pattern: str) -> None:
    """A second repair of the same messages gives the same objects, so that what is known of them is kept."""
    first, second = repair(history, id_pattern=pattern), repair(history, id_pattern=pattern)
    assert len(first) == len(second)
    assert all(a is b for a, b in zip(first, second, strict=True))


@given(adversarial_histories, st.lists(messages, max_size=4).map(tuple), patterns)
def test_ids_never_change_when_the_history_grows(history: Messages, more: Messages, pattern: str) -> None:
    """The id of a call follows from what precedes it alone."""
    before = call_ids(repair(history, id_pattern=pattern))
    assert call_ids(repair(history + more, id_pattern=pattern))[: len(before)] == before


@given(unit_lists(), unit_lists())
def test_complete_steps_never_change_when_the_history_grows(one: list[list[Message]], two: list[list[Message]]) -> None:
    """With ids that restart, what was repaired once extends itself."""
    short = tuple(message for unit in one for message in unit)
    long = short + tuple(message for unit in two for message in unit)
    before = repair(short)
    assert repair(long)[: len(before)] == before


@given(adversarial_histories)
def test_the_input_is_left_as_it_was(history: Messages) -> None:
    """Pure: nothing of the history that went in is changed."""
    copy = tuple(history)
    shown = repr(history)
    repair(history)
    assert history == copy
    assert repr(history) == shown


def test_a_call_without_result_is_answered_without_saying_that_it_failed() -> None:
    """The stand-in is an error result that calls the outcome unknown, and a function of the call alone."""
    made = stand_in(call("exec", "a"))
    assert made == stand_in(call("exec", "a"))
    assert made.stand_in and made.is_error and made.call_id == "a" and made.tool == "exec"
    assert "unknown" in made.text and "fail" not in made.text


def test_a_late_result_names_its_tool_and_call() -> None:
    """As a user message: `[late result of TOOL, call ENTRY]`, then what the tool gave."""
    late = late_result(result("a", "done", tool="exec"), "12")
    assert late.text == "[late result of exec, call 12]\n\ndone"
    assert late_result(ToolResult("a", "", ()), "12").text == "[late result of a tool, call 12]"


# Faults that users of such systems have reported, each with the smallest history that shows it.


def test_fault_a_result_that_nobody_asked_for() -> None:
    """The stray result goes, everything else stays in order."""
    history = (reply(call(id="a")), result("a"), result("ghost"), reply("done"))
    assert repair(history) == (history[0], history[1], history[3])


def test_fault_one_stray_result_hides_the_latest_turn() -> None:
    """A stray result near the end takes nothing with it."""
    history = (
        *(user("one"), reply(call(id="a")), result("a"), reply("done")),
        *(user("two"), reply(call(id="b")), result("b"), result("ghost"), reply("done")),
    )
    assert repair(history) == history[:7] + history[8:]


def test_fault_doubled_results_and_results_without_an_id() -> None:
    """The first result wins; one without an id goes and its call gets a stand-in."""
    doubled = (reply(call(id="a")), result("a", "first"), result("a", "second"))
    assert repair(doubled) == doubled[:2]
    nameless = (reply(call(id="a")), result("", "lost"))
    assert repair(nameless) == (nameless[0], stand_in(call(id="a")))


def test_fault_the_same_call_twice_in_one_reply() -> None:
    """Identical calls are one call with one result; different ones with one id take their results by order."""
    a, b, c = (call(id=name, path=name) for name in "abc")
    history = (reply(a, b, c, c), result("a"), result("b"), result("c"), result("c"))
    assert repair(history) == (reply(a, b, c), *history[1:4])
    other = call(id="c", path="other")
    one, two = repair((reply(c, c, other), result("c", "one"), result("c", "two")))[1:]
    assert (one.text, two.text) == ("one", "two") and isinstance(two, ToolResult) and two.call_id == "c-1-1"


def test_fault_the_very_same_call_object_twice() -> None:
    """Collapsing goes by equality and counts an object that stands twice twice."""
    a = call(id="a")
    assert repair((reply(a, a), result("a"))) == (reply(a), result("a"))


def test_fault_ids_that_mistral_refuses() -> None:
    """Exactly nine letters or digits, and the pair keeps together."""
    history = (reply(call(id="chatcmpl-tool-1")), result("chatcmpl-tool-1"))
    first, second = repair(history, id_pattern=r"[A-Za-z0-9]{9}")
    assert isinstance(first, AssistantMessage) and isinstance(second, ToolResult)
    assert len(first.calls[0].id) == 9 and second.call_id == first.calls[0].id


def test_fault_ids_that_grow_too_long_with_a_counter() -> None:
    """Also the suffix of a renamed id stays within the limit."""
    long = "p" * 64
    history = (reply(call(id=long)), result(long)) * 12
    assert faults_of(repair(history)) == []


def test_fault_a_relay_restarts_ids_in_every_response() -> None:
    """Only the later pair is renamed, by its place."""
    turn = (user("go"), reply(call(id="call_0")), result("call_0"), reply("done"))
    repaired = repair(turn + turn)
    assert repaired[:4] == turn
    assert call_ids(repaired) == ["call_0", "call_0-3-0"]
    assert isinstance(repaired[6], ToolResult) and repaired[6].call_id == "call_0-3-0"


def test_fault_one_result_hundreds_of_times() -> None:
    """A reused id with a heap of doubles leaves one result a call."""
    history = (user("go"), reply(call(id="dup")), *[result("dup", "same")] * 587)
    assert repair(history) == history[:3]


def test_fault_snapshots_taken_for_deltas() -> None:
    """Calls that were concatenated from snapshots of a stream collapse."""
    one, two, three = (call(id=f"t{n}", n=n) for n in (1, 2, 3))
    assert repair((reply(one, one, two, one, two, three),))[0] == reply(one, two, three)


def test_fault_killed_while_a_tool_ran() -> None:
    """A dangling call is closed, and closing it again changes nothing."""
    repaired = repair((user("go"), reply(call(id="a"))))
    assert repaired[2] == stand_in(call(id="a"))
    assert repair(repaired) is repaired


@pytest.mark.parametrize("stop", ["error", "aborted", "refused", "deferred"])
def test_fault_the_repair_answers_a_call_that_is_not_sent(stop: str) -> None:
    """A reply that did not finish goes with its half-streamed call and that call's results, real or not."""
    half = call(id="a", complete=False)
    history = (user("go"), reply("I will", half, stop=stop), stand_in(half), result("a"), user("again"))  # type: ignore[arg-type] # a parameter
    assert repair(history) == (history[0], history[4])


def test_fault_doubles_of_an_unfinished_replys_result_answer_another_call() -> None:
    """A double of a result that goes with its reply does not answer an older or a later call of that id."""
    a = call(id="a", path="other")
    aborted = reply(call(id="a"), stop="aborted")
    before = (user("go"), reply(a), user("again"), aborted, result("a", "x"), result("a", "x"))
    assert repair(before) == (user("go"), reply(a), stand_in(a), user("again"))
    after = (user("go"), aborted, result("a", "x"), result("a", "x"), reply(a))
    assert repair(after) == (user("go"), reply(a), stand_in(a))


def test_fault_a_half_formed_call_with_its_stand_in() -> None:
    """A call whose arguments were cut off goes with its stand-in; the text of its reply stays."""
    half = ToolCall("a", "exec", '{"command": "rm', complete=False)
    history = (user("go"), reply("I will", half, stop="length"), stand_in(half))
    assert repair(history) == (user("go"), reply("I will", stop="length"))


def test_fault_a_real_result_of_a_call_that_was_cut_off_is_lost() -> None:
    """Something produced it, so it is shown as a late result, after the results of the step."""
    half = ToolCall("a", "exec", '{"command": "rm', complete=False)
    whole = call(id="b")
    history = (user("go"), reply(half, whole, stop="length"), result("a", "real"), result("b"))
    assert repair(history) == (
        user("go"),
        reply(whole, stop="length"),
        result("b"),
        late_result(result("a", "real"), "a"),
    )


def test_fault_a_reply_of_reasoning_alone_that_was_cut_off() -> None:
    """Cut by length before it said anything, it is left out."""
    assert repair((user("go"), reply(Thinking("hm", "s"), stop="length"))) == (user("go"),)
    assert repair((user("go"), reply(Thinking("hm", "s"), call(complete=False), stop="length"))) == (user("go"),)


@pytest.mark.parametrize("between", [user("queued"), reply("thinking aloud"), patch()])
def test_fault_something_lands_between_call_and_result(between: Message) -> None:
    """What came between goes after the results."""
    history = (user("go"), reply(call(id="a")), between, result("a"))
    assert repair(history) == (history[0], history[1], history[3], between)


def test_fault_results_after_the_next_call() -> None:
    """`A[a] A[b] T:a T:b`: each result goes straight after its own reply, also when the ids are the same."""
    a, b = reply(call(id="a")), reply(call(id="b"))
    assert repair((user("go"), a, b, result("a"), result("b"))) == (user("go"), a, result("a"), b, result("b"))
    one, two = reply(call(id="c", n=1)), reply(call(id="c", n=2))
    repaired = repair((user("go"), one, two, result("c", "one"), result("c", "two")))
    assert [message.text for message in repaired[2::2]] == ["one", "two"]


def test_fault_an_interrupted_run_loses_the_order_of_its_results() -> None:
    """Two calls of one id whose results came after a user's message are answered in call order."""
    history = (reply(call(id="c", n=1), call(id="c", n=2)), user("wait"), result("c", "one"), result("c", "two"))
    assert [message.text for message in repair(history)[1:3]] == ["one", "two"]


def test_fault_every_call_ends_with_one_result_whatever_the_exit() -> None:
    """A trailing group with two calls and one result is completed, in call order."""
    a, b = call(id="a"), call(id="b")
    assert repair((user("go"), reply(a, b), result("b"))) == (user("go"), reply(a, b), stand_in(a), result("b"))


def test_fault_a_message_with_empty_text_takes_its_results_along() -> None:
    """Empty messages get a placeholder and stay where they are; results are never dropped with them."""
    history = (user("go"), reply("", call(id="a")), user(""), result("a"))
    assert repair(history) == (user("go"), reply(call(id="a")), result("a"), user("(empty message)"))


def test_fault_the_reply_is_deleted_and_its_results_are_not() -> None:
    """A result whose call is gone goes."""
    assert repair((user("go"), result("a"), user("on"))) == (user("go"), user("on"))


def test_fault_a_list_that_begins_with_results() -> None:
    """Orphans at the front go, and an empty list is legal."""
    assert repair((result("a"), result("b"), user("go"))) == (user("go"),)
    assert repair(()) == ()


def test_fault_reasoning_is_parted_from_its_call() -> None:
    """Thinking stays byte for byte in the reply that it was produced for, in its order."""
    signed = reply(Thinking("", "sig"), Thinking("x", "y", redacted=True), call(id="a"), Thinking("after", "z"))
    assert repair((user("go"), signed, result("a"))) == (user("go"), signed, result("a"))


def test_fault_signed_reasoning_is_changed_and_still_signed() -> None:
    """When thinking or its signature had to be scrubbed, the signature no longer holds and goes."""
    repaired = repair((user("go"), reply(Thinking("half \ud800", "sig"), Thinking("whole", "s\ud800"), "text")))
    assert repaired[1] == reply(Thinking("half \ufffd"), Thinking("whole"), "text")


def test_fault_a_call_without_a_name() -> None:
    """It gets a constant name and keeps its result, which tells the model what was wrong."""
    history = (user("go"), reply(call(" ", "a")), result("a", "no tool of that name"))
    assert repair(history) == (user("go"), reply(call("unnamed", "a")), history[2])


def test_fault_a_proxy_mangles_ids_with_white_space() -> None:
    """An id with blanks around it is the same id."""
    assert repair((reply(call(id=" a ")), result("a", "x"))) == (reply(call(id="a")), result("a", "x"))


def test_fault_parts_that_a_repair_does_not_know_are_lost() -> None:
    """Images, patches, origins, usage and thinking come through as they are."""
    history = (
        UserMessage((Text("look"), image()), origin=7),
        patch(),
        reply(Thinking("t", "s"), "text", call(id="a"), model="m", wire="w", origin=8),
        ToolResult("a", "read_file", (image(10, 10),), origin=9),
    )
    assert repair(history) is history


def test_backfill_alone_leaves_results_where_they_stand() -> None:
    """A result that stands elsewhere still answers its call: no stand-in is added for it."""
    history = (reply(call(id="a"), call(id="b")), user("wait"), result("a"))
    assert backfill(history) == (history[0], stand_in(call(id="b")), *history[1:])


def test_normalise_alone_keeps_orphans_and_their_object() -> None:
    """It judges content and ids, not pairing, and returns the same object when there is nothing to change."""
    history = (user("go"), result("ghost"), reply(call(id="a")), result("a"))
    assert normalise(history) is history


def test_arguments_stay_as_written_when_they_are_an_object() -> None:
    """Spacing and key order are the model's own."""
    written = '{ "b" : 1,\n "a":2 }'
    history = (reply(ToolCall("a", "exec", written)), result("a"))
    assert repair(history) is history
    assert json.loads(written) == {"b": 1, "a": 2}
