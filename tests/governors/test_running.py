"""Repairs that run along: the same as for the whole list, and what was handed out stands."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from governors.decisions import Missed
from governors.messages import AssistantMessage, Message, Messages, Text, Thinking, ToolCall, ToolResult
from governors.repair import late_result, repair, stand_in
from governors.running import RunningRepair
from governors.sound import is_sound
from tests.adversarial import adversarial_histories, patterns
from tests.builders import call, patch, reply, result, user
from tests.strategies import unit_lists

A, B = call(id="a"), call(id="b")


def fed(*batches: Messages, sent: tuple[int, ...] = ()) -> tuple[list[Message], list[Missed]]:
    running = RunningRepair(sent=sent)
    taken = [running.take(batch) for batch in batches]
    messages = [message for each in taken for message in each.messages]
    return messages, [missed for each in taken for missed in each.missed]


def test_a_result_before_its_call_goes_to_the_call_that_is_sent() -> None:
    """Not to one of the same id in a reply that broke off."""
    asked = ToolCall("call_0", "read_file", "{}")
    early = ToolResult("call_0", "read_file", (Text("milk"),))
    history = (early, AssistantMessage((asked,)), AssistantMessage((asked,), "aborted"))
    assert repair(history) == tuple(RunningRepair().take(history).messages) == (AssistantMessage((asked,)), early)


@given(adversarial_histories, patterns)
def test_taken_at_once_it_is_the_repair_of_the_list(history: Messages, pattern: str) -> None:
    """Whatever is wrong with it."""
    assert tuple(RunningRepair(pattern).take(history).messages) == repair(history, id_pattern=pattern)


@given(adversarial_histories, st.lists(st.integers(1, 5), max_size=8), patterns)
def test_whatever_the_steps_are_the_whole_is_sound_and_can_be_made_again(
    history: Messages, sizes: list[int], pattern: str
) -> None:
    """After every step; and from the same messages and what was missed, at once, the same comes out."""
    running, taken, missed = RunningRepair(pattern), list[Message](), list[Missed]()
    start = 0
    for size in [*sizes, len(history)]:
        step = running.take(history[start : start + size])
        start += size
        taken += step.messages
        missed += step.missed
        assert is_sound(taken, pattern)
        again = RunningRepair(pattern, [each.taken for each in missed]).take(history[:start])
        assert again.messages == taken
        assert set(again.missed) <= set(missed)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(unit_lists())
def test_whole_steps_come_back_as_the_same_objects(units: list[Messages]) -> None:
    """However they are cut; what is right is not touched."""
    messages, _ = fed(*(tuple(unit) for unit in units))
    given = [message for unit in units for message in unit]
    assert len(messages) == len(given)
    assert all(mine is theirs for mine, theirs in zip(messages, given, strict=True))


def test_a_call_that_was_sent_without_result_keeps_its_stand_in() -> None:
    """The real result comes later as a message of its own, once."""
    messages, missed = fed((user("go"), reply(A)), (user("well?"), result("a", "real")), (result("a", "real"),))
    assert messages == [user("go"), reply(A), stand_in(A), user("well?"), late_result(result("a", "real"), "a")]
    assert [each.place for each in missed] == [2] and missed[0].taken == 2


def test_results_of_one_step_come_in_parts() -> None:
    """Those that came in time stand in their places, the others are late, in the order in which they came."""
    messages, missed = fed((reply(A, B), result("b")), (result("a"),))
    assert messages == [reply(A, B), stand_in(A), result("b"), late_result(result("a"), "a")]
    assert missed == [Missed(1, 2)]


def test_a_result_that_came_before_its_call_answers_it_in_a_later_request() -> None:
    """Within one turn; a user's message ends the waiting."""
    messages, missed = fed((user("go"), result("a", "early")), (reply(A),), (user("on"),))
    assert messages == [user("go"), reply(A), result("a", "early"), user("on")]
    assert missed == [Missed(2, 3)]
    messages, _ = fed((user("go"), result("a", "early")), (user("on"),), (reply(A),))
    assert messages == [user("go"), user("on"), reply(A), stand_in(A)]


def test_what_comes_later_answers_newer_calls_first() -> None:
    """A call that was sent without result gets only what is left."""
    again = call(id="a", n=2)
    messages, _ = fed((reply(A),), (reply(again), result("a", "new"), result("a", "old")))
    assert [message.text for message in messages[-2:]] == ["new", "[late result of read_file, call a]\n\nold"]
    assert isinstance(messages[3], ToolResult) and messages[3].call_id == "a-2-0"


def test_a_double_of_what_answered_is_none_of_another_call() -> None:
    """Also over many requests."""
    messages, _ = fed(
        (reply(A),), (reply(call(id="a", n=2)), result("a", "x")), (result("a", "x"),), (result("a", "x"),)
    )
    assert [message.text for message in messages if "x" in message.text] == ["x"]


def test_a_step_that_was_taken_at_once_is_remembered_like_any_other() -> None:
    """Doubles of its results, and others for its calls, answer no later call of that id."""
    again = call(id="a", n=2)
    messages, _ = fed((reply(A), result("a", "x")), (user("on"),), (result("a", "x"),), (reply(again),))
    assert "unknown" in messages[-1].text
    messages, _ = fed((reply(A), result("a", "x")), (result("a", "more"),), (reply(again),))
    assert "unknown" in messages[-1].text


def test_replies_that_failed_go_with_results_that_come_later() -> None:
    """As in one list; a real result of a call that was cut off stays."""
    messages, _ = fed((user("go"), reply(A, stop="aborted")), (result("a"),), (user("on"),))
    assert messages == [user("go"), user("on")]
    half = call(id="a", complete=False)
    messages, _ = fed((user("go"), reply("I will", half, stop="length")), (result("a", "real"), stand_in(half)))
    assert messages == [user("go"), reply("I will", stop="length"), late_result(result("a", "real"), "a")]


def test_a_stand_in_that_was_given_is_missed_like_one_of_ours() -> None:
    """The real result still has a place; a second stand-in has none."""
    messages, missed = fed((reply(A), stand_in(A)), (stand_in(A),), (result("a", "real"),))
    assert messages == [reply(A), stand_in(A), late_result(result("a", "real"), "a")]
    assert [each.taken for each in missed] == [2, 3]


def test_empty_steps_and_steps_of_nothing_that_can_be_sent() -> None:
    """Nothing comes of them."""
    assert fed((), (result("ghost"),), (reply(Thinking("hm"), stop="length"),), ()) == ([], [])
    assert fed((patch(" "),))[0] == [patch("(empty message)")]


def test_where_requests_left_is_counted_from_the_first_message() -> None:
    """A count that lies behind, or beyond the messages, changes nothing."""
    assert fed((reply(A), result("a")), sent=(0, 1, 9))[0] == [reply(A), stand_in(A), late_result(result("a"), "a")]
    assert fed((user("go"),), (reply(A), result("a")), sent=(1, 3))[0] == [user("go"), reply(A), result("a")]
