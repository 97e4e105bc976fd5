"""Governing: what comes out is legal and within budget, or an error has the numbers."""

from __future__ import annotations

import pytest
from adversarial import adversarial_histories, faults_of, patterns
from builders import call, image, patch, reply, result, user
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import histories, tool_specs

from governors.budget import Budget
from governors.decisions import Missed
from governors.errors import ContextOverflow
from governors.messages import Messages, ToolSpec, UserMessage
from governors.pipeline import govern
from governors.repair import repair
from governors.snip import OMITTED_STEPS, turn_start
from governors.tokens import (
    LARGEST_IMAGE,
    ByteCounter,
    TiktokenCounter,
    load_vocabulary,
    message_tokens,
    messages_tokens,
    scaled,
    system_tokens,
    tools_tokens,
)
from governors.wire import WIRES, Abilities

COUNTER = ByteCounter()
budgets = st.integers(40, 4_000).map(lambda tokens: Budget(tokens + 10, 10, margin=0))
factors = st.sampled_from([1.0, 1.2, 1.45])


def estimate(messages: Messages, factor: float) -> int:
    return sum(scaled(message_tokens(message, COUNTER), factor) for message in messages)


@given(adversarial_histories, budgets, st.text(max_size=40), tool_specs, factors, patterns)
def test_the_output_is_legal_and_within_budget(
    history: Messages, budget: Budget, system: str, tools: list[ToolSpec], factor: float, pattern: str
) -> None:
    """Any history fits with system prompt and tools and breaks no rule, or `ContextOverflow` has the numbers."""
    abilities = Abilities(id_pattern=pattern)
    history = (*history, user("the current message"))
    fixed = system_tokens(system, COUNTER) + tools_tokens(tools, COUNTER)  # bytes need no factor
    try:
        governed = govern(
            history, budget=budget, counter=COUNTER, abilities=abilities, system=system, tools=tools, factor=factor
        )
    except ContextOverflow as error:
        assert error.system + error.tools == fixed
        assert error.system + error.tools + error.turn > error.budget == budget.tokens
        assert error.window == budget.window
        return
    kept = governed.messages
    assert faults_of(kept, pattern) == []
    rounded = fixed + estimate(kept, 1.0)  # each message rounded up, where the report rounds the sum
    assert rounded - len(kept) - 2 <= governed.report.after <= min(rounded, budget.tokens)
    assert governed.report.budget == budget.tokens
    whole = repair(history, id_pattern=pattern)
    assert fixed + estimate(whole, 1.0) - len(whole) - 2 <= governed.report.before <= fixed + estimate(whole, 1.0)
    changed = [decision for decision in governed.decisions if not isinstance(decision, Missed)]
    assert (governed.report.before > budget.tokens) == bool(changed)
    assert kept[-1].text == "the current message"
    for name, wire in WIRES.items():
        payload = wire.encode(kept, system=system, tools=tools, abilities=abilities)
        assert wire.check(payload, abilities) == (), name


@given(adversarial_histories, budgets, factors)
def test_governing_the_output_changes_nothing(history: Messages, budget: Budget, factor: float) -> None:
    """The same object, and no decision."""
    try:
        once = govern(history, budget=budget, counter=COUNTER, factor=factor)
    except ContextOverflow:
        return
    again = govern(once.messages, budget=budget, counter=COUNTER, factor=factor)
    assert again.messages is once.messages
    assert again.decisions == ()
    assert again.report.before == again.report.after == once.report.after


@given(histories(max_size=8), budgets)
def test_every_user_message_of_the_turn_is_kept(history: Messages, budget: Budget) -> None:
    """However small the room is, as the same objects, in order."""
    try:
        kept = govern(history, budget=budget, counter=COUNTER).messages
    except ContextOverflow:
        return
    said = [message for message in history[turn_start(history) :] if isinstance(message, UserMessage)]
    assert [message for message in kept if any(message is each for each in said)] == said


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(histories(max_size=8), st.integers(100, 3_000))
def test_one_cut_is_enough_for_the_next_call(history: Messages, tokens: int) -> None:
    """After a cut to the watermark the history may grow by less than a fifth of the room without another."""
    room = Budget(tokens + 10, 10, margin=0)
    try:
        once = govern(history, budget=room, counter=COUNTER, factor=1.0)
    except ContextOverflow:
        return
    assume(once.decisions and once.report.after <= 0.8 * tokens)
    filler = int(0.2 * tokens) - messages_tokens((user(""),), COUNTER)
    grown = (*once.messages, user("x" * max(0, filler)))
    assert govern(grown, budget=room, counter=COUNTER, factor=1.0).decisions == ()


def test_nothing_wrong_and_within_budget_is_the_same_object() -> None:
    """A request that needs nothing gets nothing."""
    history = (user("go"), reply(call(id="a")), result("a"))
    governed = govern(history, budget=Budget(4_000, 100), counter=COUNTER)
    assert governed.messages is history
    assert governed.decisions == ()


def test_fault_the_budget_of_the_history_forgets_the_tools() -> None:
    """A window of 32k, output 4k, buffer 1k, system 7k, tools 16k: the history may take what is left, not 20k."""
    tools = [ToolSpec("t", "d" * 16_000, {})]
    history = tuple(message for n in range(20) for message in (user(f"{n % 10}" * 950), reply("ok")))
    budget = Budget(32_000, 4_000, margin=1_000)
    governed = govern(history, budget=budget, counter=COUNTER, system="s" * 7_000, tools=tools, factor=1.0)
    assert governed.report.before > 42_000
    assert governed.report.after <= 27_000
    assert governed.decisions
    with pytest.raises(ContextOverflow, match="16,0"):
        govern(history, budget=Budget(24_000, 4_000, 0), counter=COUNTER, system="s" * 7_000, tools=tools, factor=1.0)


def test_fault_trimming_parts_a_call_from_its_result() -> None:
    """Repair, then a cut: what remains is legal, wherever the room ends."""
    turn = (user("q" * 30), reply(call(id="call_0"), call(id="call_1")), result("call_1"), reply("done"))
    for tokens in range(110, 900, 7):
        kept = govern(turn * 5, budget=Budget(tokens + 10, 10, margin=0), counter=COUNTER, factor=1.0).messages
        assert faults_of(kept) == []


def test_fault_a_dangling_call_freezes_the_cut() -> None:
    """Orphans are closed before the place to cut is chosen, so an old dangling call stands in nobody's way."""
    history = (user("old"), reply(call(id="a")), user("q" * 400), reply("fine " * 50), user("new " * 60))
    governed = govern(history, budget=Budget(510, 10, margin=0), counter=COUNTER, factor=1.0)
    assert governed.messages == history[4:]


def test_fault_one_large_picture_in_a_new_chat_is_trimmed_away() -> None:
    """A picture costs what a picture costs, however long its base64 is, and the current message keeps it."""
    picture = user("what is this?", image(4_000, 3_000, data="A" * 4_000_000))
    governed = govern((picture,), budget=Budget(16_000, 1_000), counter=COUNTER)
    assert governed.messages == (picture,)
    assert governed.report.after < 2 * LARGEST_IMAGE


def test_fault_estimates_below_what_the_server_counts() -> None:
    """The factor scales every part of a request; a larger one cuts more."""
    load_vocabulary()
    history = tuple(message for n in range(40) for message in (user(f"question {n} " * 20), reply("answer " * 20)))
    parts: dict[float, int] = {}
    for factor in (1.0, 1.45):
        governed = govern(
            history, budget=Budget(3_000, 500), counter=TiktokenCounter(), system="s " * 100, factor=factor
        )
        parts[factor] = len(governed.messages)
        assert governed.report.system == scaled(system_tokens("s " * 100, TiktokenCounter()), factor)
    assert parts[1.45] < parts[1.0]


def test_a_long_turn_leaves_one_marker_however_often_it_is_cut() -> None:
    """Governing step after step, as an agent does inside a turn, never repeats the marker or loses the task."""
    messages: Messages = (user("the task"),)
    cuts = 0
    for number in range(60):
        messages += (reply(call(id="call_0", n=number)), result("call_0", f"{number} " + "x" * 60))
        governed = govern(messages, budget=Budget(1_010, 10, margin=0), counter=COUNTER, factor=1.0)
        cuts += len(governed.decisions)
        messages = governed.messages
        shown = [message.text for message in messages]
        assert shown[0] == "the task"
        assert shown.count(OMITTED_STEPS) == (cuts > 0)
        assert shown[-1].startswith(f"{number} ")
    assert 5 < cuts < 20


def test_turn_lead_and_boundaries_are_taken_as_given() -> None:
    """A caller that knows them decides where a context may begin and what stays in front."""
    history = (
        user("summary"),
        *(user("one " * 60), reply("done")),
        *(user("two " * 60), reply("done"), patch()),
        *(user("three " * 60), reply(call(id="a")), result("a")),
    )
    budget = Budget(860, 10, margin=0)
    kept = govern(history, budget=budget, counter=COUNTER, factor=1.0, turn=6, lead=1)
    assert kept.messages == (history[0], *history[5:])  # the patch stands
    elsewhere = govern(history, budget=budget, counter=COUNTER, factor=1.0, turn=6, lead=1, boundaries={3})
    assert elsewhere.decisions[0].start == 3
    assert elsewhere.messages[:2] == (history[0], history[3])


def test_an_empty_list_and_a_system_prompt_that_is_too_long() -> None:
    """Nothing to cut is no excuse: the error names the system prompt's share."""
    assert govern((), budget=Budget(1_000, 10), counter=COUNTER).messages == ()
    with pytest.raises(ContextOverflow) as caught:
        govern((), budget=Budget(1_000, 10), counter=COUNTER, system="s" * 5_000, factor=1.0)
    assert (caught.value.system, caught.value.tools, caught.value.turn) == (5_008, 0, 0)
