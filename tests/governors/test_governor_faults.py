"""Faults that users of such systems have reported, held against the governor step by step."""

from __future__ import annotations

from itertools import pairwise

import pytest

from governors.budget import Budget
from governors.decisions import Cut, DropImages, Missed, Stub
from governors.economy import Cache, Economy
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, ToolSpec, Usage
from governors.pipeline import govern
from governors.policy import Moment
from governors.snip import OMITTED_STEPS
from governors.tokens import LARGEST_IMAGE, ByteCounter
from governors.wire import WIRES, Abilities
from tests.adversarial import faults_of
from tests.builders import call, image, reply, result, user

COUNTER = ByteCounter()
LARGE = Budget(1_000_010, 10, margin=0)


def room(tokens: int) -> Budget:
    return Budget(tokens + 10, 10, margin=0)


def test_fault_one_stray_result_hides_the_latest_turn() -> None:
    """A stray result near the end takes nothing with it, however the conversation is fed."""
    history = (
        *(user("one"), reply(call(id="a")), result("a"), reply("done")),
        *(user("two"), reply(call(id="b")), result("b"), result("ghost"), reply("done")),
    )
    for size in (1, 2, 4, 9):
        governor = Governor(LARGE, counter=COUNTER)
        for start in range(0, 9, size):
            governed = governor.step(history[start : start + size])
        texts = [message.text for message in governed.messages]
        assert [text for text in texts if text in ("one", "two", "done")] == ["one", "done", "two", "done"]
        assert not any("ghost" in text for text in texts)
        assert sum("result of" in text for text in texts) == 2


def test_fault_trimming_leaves_a_synthetic_result_without_its_call() -> None:
    """A call without a result, then cuts at every budget: what is sent is whole."""
    history = (user("q" * 300), reply(call(id="a")), user("w" * 90), reply(call(id="b"), call(id="c")), result("c"))
    for tokens in range(550, 1_500, 40):
        governed = govern((*history, user("now")), budget=room(tokens), counter=COUNTER)
        assert faults_of(tuple(governed.messages)) == []


def test_fault_one_dangling_call_freezes_every_later_cut() -> None:
    """The call without a result is the first thing that is kept; later cuts go past it."""
    governor = Governor(room(2_000), counter=COUNTER)
    governor.step((user("x" * 300), reply(call(id="a"))))
    cuts = []
    for number in range(20):
        governed = governor.step((user(f"{number} " + "y" * 250), reply("fine")))
        cuts += [decision.start for decision in governed.decisions if isinstance(decision, Cut)]
    assert len(cuts) > 1 and cuts == sorted(set(cuts))


def test_fault_the_21st_image_bricks_the_session() -> None:
    """The oldest go, down to half of the limit, so that the next ten force nothing; the newest is sent."""
    abilities = Abilities(images=True, max_images=20)
    governor = Governor(LARGE, counter=COUNTER, abilities=abilities)
    dropped = []
    for number in range(45):
        governed = governor.step((user(f"{number}", image(100, 100, data=f"{number:08}")), reply("seen")))
        dropped.append(sum(each.count for each in governed.decisions if isinstance(each, DropImages)))
        payload = WIRES["anthropic"].encode(governed.messages, system="", tools=(), abilities=abilities)
        assert f"{number:08}" in str(payload)
        assert not [each for each in WIRES["anthropic"].check(payload, abilities) if each.rule == "A12"]
    assert [number for number, count in enumerate(dropped) if count] == [20, 31, 42]
    assert set(dropped) == {0, 11}


def test_fault_an_image_that_passed_the_tool_is_over_the_providers_limit_in_base64() -> None:
    """What counts is the encoded size: such a picture is named in words, and the session goes on."""
    abilities = Abilities(images=True, max_image_bytes=5_000)
    history = (user("look"), reply(call(id="a")), result("a", image(10, 10, data="A" * 5_400)), user("and?"))
    governed = Governor(LARGE, counter=COUNTER, abilities=abilities).step(history)
    for wire in WIRES.values():
        payload = wire.encode(governed.messages, system="", tools=(), abilities=abilities)
        assert "A" * 100 not in str(payload)
        assert wire.check(payload, abilities) == ()


def test_fault_the_budget_of_the_history_forgets_the_tools() -> None:
    """Window 32k, output 4k, buffer 1k, system 7k, tools 16k: each step is within what is left."""
    tools = [ToolSpec("t", "d" * 16_000, {})]
    governor = Governor(Budget(32_000, 4_000, 1_000), counter=COUNTER, system="s" * 7_000, tools=tools)
    for number in range(40):
        report = governor.step((user(f"{number % 10}" * 950), reply("ok"))).report
        assert report.after <= report.budget == 27_000
    with pytest.raises(ContextOverflow, match="16,0"):
        Governor(Budget(24_000, 4_000, 0), counter=COUNTER, system="s" * 7_000, tools=tools).step((user("x"),))


def test_fault_yes_is_kept_and_the_question_it_answers_is_not() -> None:
    """Through the whole turn that the short answer opened, however often its steps are cut."""
    governor = Governor(room(2_500), counter=COUNTER)
    governor.step((user("x" * 900), reply("y" * 900 + " create it now?"), user("yes")))
    cuts = 0
    for number in range(30):
        new = (reply(call(id=f"id_{number}")), result(f"id_{number}", f"{number} " + "z" * 300, tool="write"))
        governed = governor.step(new)
        cuts += sum(isinstance(decision, Cut) for decision in governed.decisions)
        texts = [message.text for message in governed.messages]
        assert any("create it now?" in text for text in texts)
        assert "yes" in texts
    assert cuts > 2


def test_fault_the_first_user_message_is_protected_instead_of_the_task() -> None:
    """Whatever stands first in the list, the current message is what stays."""
    history = (reply("old " * 100), user("older " * 100), reply("done"), user("the task " * 30))
    governed = Governor(room(500), counter=COUNTER).step(history)
    assert governed.messages == history[3:]


def test_fault_a_measured_size_is_overwritten_by_a_high_estimate() -> None:
    """The provider says 80k, we would say 101k, the limit is 100k: nothing is cut."""
    measured = reply("fine", model="m", usage=Usage(plain=80_000, output=5))
    governor = Governor(room(100_000), counter=COUNTER, model="m")
    governor.step((user("x" * 50_000), reply("ok"), user("y" * 49_000)))
    governed = governor.step((measured, user("z" * 2_000)))
    assert governed.decisions == ()
    assert 82_000 <= governed.report.after < 83_000


def test_fault_a_limit_that_equals_the_window_never_fires() -> None:
    """The budget is below the window, always; what comes over it is cut."""
    for window in (2_000, 64_000, 200_000):
        budget = Budget(window, 500)
        assert budget.tokens < window - 500
        governed = Governor(budget, counter=COUNTER).step((user("x" * window), reply("fine"), user("y" * 300)))
        assert governed.decisions and governed.report.after <= budget.tokens


def test_fault_a_correction_that_can_never_reach_the_truth() -> None:
    """A tokenizer that finds five for one of ours is learned; one absurd figure moves nothing."""
    governor = Governor(room(100_000), counter=COUNTER, model="m")
    prompt = 0
    for number in range(12):
        text = f"{number} ".ljust(2_000, "語")
        prompt += 5 * COUNTER.count(text)
        governor.step((user(text), reply("ok", model="m", usage=Usage(plain=prompt, output=2))))
    assert 4.5 < governor.estimator.bound < 6
    before = governor.estimator.bound
    governor.step((user("x" * 900), reply("ok", model="m", usage=Usage(plain=10**9, output=2))))
    assert governor.estimator.bound <= before * 1.1


def test_fault_base64_counted_as_text_compacts_a_new_chat_and_loses_the_picture() -> None:
    """A picture costs what a picture costs and is never taken from the current turn to make room."""
    picture = user("what is this?", image(2_000, 1_500, data="A" * 3_000_000))
    governor = Governor(Budget(16_000, 1_000), counter=COUNTER, abilities=Abilities(images=True))
    governed = governor.step((picture,))
    assert governed.messages == (picture,) and governed.decisions == ()
    for number in range(6):
        governed = governor.step((reply(call(id=f"{number}")), result(f"{number}", f"{number}" * 3_000)))
        assert picture in governed.messages


def test_fault_an_image_counts_as_nothing() -> None:
    """Without a known size it costs the most that one can."""
    assert Governor(LARGE, counter=COUNTER).step((user(image()),)).report.after >= LARGEST_IMAGE


def test_fault_the_task_falls_out_of_a_long_turn() -> None:
    """One message of the user, then 60 rounds of tools: it is in every request, word for word."""
    task = user("rename the function everywhere, and keep the old name as an alias")
    governor = Governor(room(3_000), counter=COUNTER)
    governed = governor.step((task,))
    for number in range(60):
        governed = governor.step((reply(call(id=f"id_{number}")), result(f"id_{number}", f"{number} " + "z" * 400)))
        assert governed.messages[0] is task
        assert governed.messages[-1].text.startswith(f"{number} ")
    assert [message.text for message in governed.messages].count(OMITTED_STEPS) == 1


def test_fault_trimming_that_stops_at_its_trigger_moves_the_prefix_on_every_call() -> None:
    """Results of one size, one a call, at a full window: the prefix moves rarely, and each move makes room."""
    for cached in (False, True):
        governor = Governor(room(100_000), counter=COUNTER)
        economy, now, moves = Economy(), 0.0, []
        governor.step((user("go"),))
        for number in range(600):
            now += 5
            economy = economy.came(now, rested=False)
            new = (reply(call("exec", id=f"id_{number}")), result(f"id_{number}", f"{number} " * 300, tool="exec"))
            governed = governor.step(new, Moment(economy, now) if cached else None)
            economy = (governed.economy or economy).sent(now, governed.report.after, 1_000)
            if governed.decisions:
                moves.append(number)
        assert 0 < len(moves) < (60 if cached else 24)
        assert min(later - sooner for sooner, later in pairwise(moves)) > 1


def test_fault_the_same_stray_input_is_repaired_differently_by_a_restart() -> None:
    """Late, early and doubled results over many requests: built anew from the log, the request is the same."""
    batches: tuple[tuple[Message, ...], ...] = (
        (user("go"), result("early", "came first")),
        (reply(call(id="early"), call(id="late")),),
        (user("still there?"), result("late", "at last")),
        (result("late", "at last"), reply(call(id="late")), result("late", "another")),
    )
    governor = Governor(LARGE, counter=COUNTER)
    decisions = [decision for batch in batches for decision in governor.step(batch).decisions]
    raw = tuple(message for batch in batches for message in batch)
    again = Governor(LARGE, counter=COUNTER, decisions=decisions).step(raw)
    assert again.messages == governor.step().messages and again.decisions == ()
    shown = [message.text for message in again.messages if not isinstance(message, AssistantMessage)]
    assert shown[1] == "came first" and "unknown" in shown[2]
    assert shown[3:] == ["still there?", "[late result of read_file, call late]\n\nat last", "another"]
    assert {type(decision) for decision in decisions} == {Missed}


def test_fault_an_edit_is_made_on_a_cold_cache_and_again_on_every_call() -> None:
    """Once free, it is made for all that is ripe; a warm cache then waits."""
    governor = Governor(LARGE, counter=COUNTER)
    cold = Moment(Economy(cache=Cache(0.0, 300, 50_000), called_at=0.0), 5_000.0)
    messages: list[Message] = [user("go")]
    for number in range(14):
        messages += (reply(call("exec", id=f"{number}")), result(f"{number}", f"{number} " * 400, tool="exec"))
    assert len([each for each in governor.step(messages, cold).decisions if isinstance(each, Stub)]) == 4
    warm = Moment(Economy(cache=Cache(5_000.0, 300, 50_000), called_at=5_000.0), 5_001.0)
    new = (reply(call("exec", id="x")), result("x", "y " * 400, tool="exec"))
    assert governor.step(new, warm).decisions == ()
