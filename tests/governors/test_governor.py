"""The governor: what it decides and when, what it hands out, what it keeps."""

from __future__ import annotations

import pytest

from governors.budget import Budget
from governors.decisions import Cut, DropImages, Missed, Stub
from governors.economy import Cache, Economy
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import Message, Messages, Text, ToolSpec, Usage, UserMessage
from governors.microcompact import handle_of, stub
from governors.pipeline import govern
from governors.policy import Moment, Policy
from governors.snip import OMITTED_STEPS
from governors.tokens import ByteCounter
from governors.wire import Abilities
from tests.builders import call, image, reply, result, user

COUNTER = ByteCounter()
LARGE = Budget(1_000_010, 10, margin=0)


def room(tokens: int) -> Budget:
    return Budget(tokens + 10, 10, margin=0)


def steps(count: int, size: int = 1_000, first: int = 0, tool: str = "exec") -> Messages:
    """Steps of one call each, whose results are of `size` characters and differ."""
    return tuple(
        message
        for number in range(first, first + count)
        for message in (
            reply(call(tool, id=f"id_{number}", n=number)),
            result(f"id_{number}", f"{number} ".ljust(size, "x"), tool=tool),
        )
    )


class Counting(ByteCounter):
    """Remembers what it counted."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def count(self, text: str) -> int:
        self.seen.append(text)
        return super().count(text)


def cold(economy: Economy | None = None) -> Moment:
    """A cache that expired long ago."""
    return Moment(economy or Economy(cache=Cache(0.0, 300, 10_000), called_at=0.0), 10_000.0)


def test_a_growing_conversation_is_handed_out_without_a_copy() -> None:
    """Each view is the messages so far, as the same objects, and stays as it was."""
    governor = Governor(LARGE, counter=COUNTER)
    messages = (user("go"), *steps(3), reply("done"), user("more"))
    views = [governor.step((message,)).messages for message in messages[:1]]
    views += [governor.step(messages[start : start + 2]).messages for start in range(1, 7, 2)]
    views += [governor.step((message,)).messages for message in messages[7:]]
    assert [len(view) for view in views] == [1, 3, 5, 7, 8, 9]
    assert all(view == messages[: len(view)] for view in views)
    assert all(mine is given for mine, given in zip(views[-1], messages, strict=True))


def test_a_step_without_messages_is_the_same_request() -> None:
    """Also the first, which is empty."""
    governor = Governor(LARGE, counter=COUNTER)
    assert governor.step().messages == ()
    governor.step((user("go"),))
    assert governor.step().messages == (user("go"),)


def test_old_results_become_lines_when_the_cache_is_cold() -> None:
    """All that are older than the newest ten, at once, for nothing; and not again."""
    governor = Governor(LARGE, counter=COUNTER)
    messages = (user("go"), *steps(13))
    governed = governor.step(messages, cold())
    assert [type(decision) for decision in governed.decisions] == [Stub] * 3
    assert governed.messages[2] == stub(messages[2])  # type: ignore[arg-type] # a result
    assert governed.messages[8:] == messages[8:]
    assert governed.report.after < governed.report.before - 2_000
    (action,) = governed.report.actions
    assert (action.governor, action.why, action.tokens) == (
        "microcompact",
        "the cache was cold",
        governed.report.before - governed.report.after,
    )
    assert action.money is not None and action.money > 0
    assert governor.step((), cold()).decisions == ()


def test_old_results_stay_while_the_cache_is_warm_and_nothing_is_to_be_gained() -> None:
    """What waiting has cost is handed back with the economy."""
    economy = Economy(cache=Cache(9_999.0, 300, 20_000), called_at=9_999.0)
    governed = Governor(LARGE, counter=COUNTER).step((user("go"), *steps(12)), Moment(economy, 10_000.0))
    assert governed.decisions == ()
    assert governed.economy is not None and governed.economy.missed > 0


def test_reasoning_that_is_bound_to_its_prefix_makes_an_edit_wait_for_the_end_of_the_turn() -> None:
    """While the model is at work nothing moves unless it must; a model that drops such blocks is no reason to wait."""
    messages = (user("go"), *steps(13))
    for drop, stubs in ((False, 0), (True, 3)):
        governor = Governor(LARGE, counter=COUNTER, abilities=Abilities(binds_prefix=True, drop_block=drop))
        assert len(governor.step(messages, cold()).decisions) == stubs
    governor = Governor(LARGE, counter=COUNTER, abilities=Abilities(binds_prefix=True))
    governor.step(messages, cold())
    assert len(governor.step((reply("done"), user("more")), cold()).decisions) == 3
    forced = Governor(room(12_000), counter=COUNTER, abilities=Abilities(binds_prefix=True))
    assert [each.why for each in forced.step(messages, cold()).decisions if isinstance(each, Stub)] == ["must"] * 3


@pytest.mark.parametrize(
    ("policy", "tools", "tool", "stubs"),
    [
        (Policy(), (), "exec", 2),
        (Policy(), (), "write_file", 0),
        (Policy(), (ToolSpec("write_file", "", {}, bulky=True),), "write_file", 2),
        (Policy(), (ToolSpec("exec", "", {}),), "exec", 0),
        (Policy(bulky=frozenset({"mine"})), (ToolSpec("mine", "", {}),), "mine", 2),
        (Policy(keep_results=4), (), "exec", 8),
        (Policy(keep_results=0), (), "exec", 12),
        (Policy(microcompact=False), (), "exec", 0),
    ],
)
def test_which_results_may_become_a_line(policy: Policy, tools: tuple[ToolSpec, ...], tool: str, stubs: int) -> None:
    """Those of bulky tools, as the tools say themselves, the policy says, or the usual list."""
    governor = Governor(LARGE, policy, COUNTER, tools=tools)
    assert len(governor.step((user("go"), *steps(12, tool=tool)), cold()).decisions) == stubs


def test_over_budget_old_results_go_before_anything_is_cut() -> None:
    """Without a cache, too; the request is then under the low watermark, or cut down to it."""
    messages = (user("go"), *steps(30, size=2_000))
    governed = Governor(room(60_000), counter=COUNTER).step(messages)
    assert {type(decision) for decision in governed.decisions} == {Stub}
    assert len(governed.messages) == len(messages)
    governed = Governor(room(40_000), counter=COUNTER).step((user("old"), *steps(5, first=90), reply("x"), *messages))
    assert [type(each) for each in governed.decisions[-1:]] == [Cut]
    assert [action.governor for action in governed.report.actions] == ["microcompact", "snip"]
    assert governed.report.after <= 0.8 * 40_000


def test_a_turn_that_alone_is_too_large_shrinks_its_results_largest_first() -> None:
    """The newest step stays, with a line for its largest result."""
    turn = (
        user("go"),
        reply(call("exec", id="a"), call("exec", id="b")),
        result("a", "small", tool="exec"),
        result("b", "x" * 5_000, tool="exec"),
    )
    governed = Governor(room(1_000), counter=COUNTER).step(turn)
    assert governed.decisions == (Stub(3, handle_of((Text("x" * 5_000),))),)
    assert governed.messages == (*turn[:3], stub(turn[3]))
    assert [action.governor for action in governed.report.actions] == ["shrink"]


def test_what_cannot_fit_raises_and_what_was_decided_is_told_with_the_next_request() -> None:
    """Messages are kept; decisions made on the way to an overflow are not lost."""
    governor = Governor(room(3_000), counter=COUNTER, abilities=Abilities(images=True, max_images=2))
    pictures = user(image(10, 10), image(10, 10), image(10, 10))
    with pytest.raises(ContextOverflow) as caught:
        governor.step((pictures, reply(call(id="a")), user("x" * 4_000)))
    assert caught.value.turn > 4_000
    raw: tuple[Message, ...] = (pictures, reply(call(id="a")), user("x" * 4_000), reply("no"), user("short"))
    governed = governor.step(raw[3:])
    kinds = [type(decision) for decision in governed.decisions]
    assert kinds == [Missed, DropImages, Cut]
    again = Governor(
        room(3_000),
        counter=COUNTER,
        abilities=Abilities(images=True, max_images=2),
        decisions=governed.decisions,
    ).step(raw)
    assert again.messages == governed.messages and again.decisions == ()


def test_an_overflow_names_what_must_stay() -> None:
    """System prompt, tools, the user's messages of the turn and the marker; steps that may go do not count."""
    messages = (user("old"), reply("fine"), user("x" * 900), *steps(4))
    with pytest.raises(ContextOverflow) as caught:
        Governor(room(800), counter=COUNTER, system="s" * 50).step(messages)
    error = caught.value
    assert error.system == 58 and error.tools == 0
    assert 900 < error.turn < 900 + 100 + len(OMITTED_STEPS)


def test_no_text_is_counted_twice() -> None:
    """Not by a step, an edit, a cut, a rebuilt governor or `govern`; what a cut puts in is counted once, too."""
    counter = Counting()
    governor = Governor(room(30_000), counter=counter, system="the system prompt")
    raw: list[Message] = []
    decisions: list[object] = []
    for number in range(80):
        new = (
            *steps(1, size=1_500, first=number),
            *((reply(f"done {number}?"), user(f"yes {number}")) * (number % 9 == 8)),
        )
        new = new if number else (user("begin"), *new)
        raw += new
        decisions += governor.step(new).decisions
    assert {type(decision) for decision in decisions} == {Stub, Cut}
    texts = [text for text in counter.seen if len(text) > 10]
    named = [text for text in texts if not text.startswith("the system")]
    assert len(named) == len(set(named))
    before = len(counter.seen)
    governor.step()
    govern(tuple(raw), budget=LARGE, counter=counter, system="")
    assert len(counter.seen) == before


def test_usage_of_the_replies_anchors_the_estimate() -> None:
    """What a provider counted is not replaced by our estimate; another model's usage tells nothing."""
    reply_with_usage = reply("fine", model="m", usage=Usage(plain=5_000, output=10))
    governor = Governor(LARGE, counter=COUNTER, model="m")
    governor.step((user("x" * 9_000), reply_with_usage))
    assert 5_000 < governor.step((user("y"),)).report.after < 5_100
    other = Governor(LARGE, counter=COUNTER, model="other")
    assert other.step((user("x" * 9_000), reply_with_usage)).report.after > 9_000


def test_what_is_known_of_a_model_is_not_learned_again_from_the_first_messages() -> None:
    """A governor built anew takes over the estimator, anchor included."""
    messages = (user("x" * 9_000), reply("fine", model="m", usage=Usage(plain=5_000, output=10)), user("y"))
    first = Governor(LARGE, counter=COUNTER, model="m")
    governed = first.step(messages)
    second = Governor(LARGE, counter=COUNTER, model="m", estimator=first.estimator)
    assert second.step(messages).report == governed.report
    assert second.estimator is first.estimator
    cut = Governor(LARGE, counter=COUNTER, model="m", decisions=(Cut(2),))
    assert cut.step(messages).messages == messages[2:]
    assert cut.estimator.anchor is None


def test_decisions_that_fit_nothing_are_passed_over_and_those_ahead_wait() -> None:
    """A stub for other content is none; a place that is not there yet is edited when it is."""
    messages = (user("go"), *steps(1))
    governor = Governor(LARGE, counter=COUNTER, decisions=(Stub(2, "another"), Stub(0, "x"), Missed(1)))
    assert governor.step(messages).messages == messages
    handle = handle_of(messages[2].content)  # type: ignore[union-attr,arg-type] # a result
    later = Governor(LARGE, counter=COUNTER, decisions=(Stub(2, handle),))
    assert later.step(messages[:1]).messages == messages[:1]
    assert later.step(messages[1:]).messages == (*messages[:2], stub(messages[2]))  # type: ignore[arg-type] # a result


def test_the_whole_result_is_stubbed_also_when_its_picture_went_before() -> None:
    """So the handle finds what was kept, and a picture that was dropped from it too."""
    long = result("a", "x" * 900, image(10, 10), tool="exec")
    opening = (user("go"), reply(call("exec", id="a")), long)
    governor = Governor(LARGE, Policy(keep_results=1), COUNTER, Abilities(images=True, max_images=1))
    governed = governor.step((*opening, user(image(9, 9))))
    assert governed.decisions == (DropImages(2, 1),)
    governed = governor.step(steps(1), cold())
    assert governed.decisions == (Stub(2, handle_of(long.content), "cold"),)
    assert handle_of(long.content) in governed.messages[2].text
    rebuilt = Governor(
        LARGE,
        Policy(keep_results=1),
        COUNTER,
        Abilities(images=True, max_images=1),
        decisions=(DropImages(2, 1), *governed.decisions),
    )
    assert rebuilt.step((*opening, user(image(9, 9)), *steps(1))).messages == governed.messages


def test_lead_turn_and_boundaries_are_places() -> None:
    """The summary in front stays through every cut; a context begins only where the caller says it may."""
    long = "long enough not to need a quote " * 10
    history = (user("summary"), user(long), reply("a" * 300), user(long), reply("b" * 300), user(long))
    governor = Governor(room(1_400), counter=COUNTER, lead=1)
    governed = governor.step(history, turn=5, boundaries={1, 5})
    assert governed.decisions == (Cut(5),)
    assert governed.messages == (history[0], history[5])
    more = (reply("c" * 900), user(long))
    governed = governor.step(more, turn=7, boundaries={1, 5, 7})
    assert governed.decisions == (Cut(7),)
    assert governed.messages == (history[0], more[1])


def test_a_list_of_system_parts_is_one_prompt() -> None:
    """A blank line parts them."""
    one = Governor(LARGE, counter=COUNTER, system=["a", "b"]).step()
    assert one.report.system == Governor(LARGE, counter=COUNTER, system="a\n\nb").step().report.system == 12


def test_repairs_are_told() -> None:
    """What was left out and what was put in."""
    governed = Governor(LARGE, counter=COUNTER).step((user("go"), reply(call(id="a")), result("ghost"), user("on")))
    assert [action.governor for action in governed.report.actions] == ["drop_orphans", "backfill"]
    late = Governor(LARGE, counter=COUNTER)
    late.step((user("go"), reply(call(id="a"))))
    assert late.step((result("a"),)).report.actions == ()


def test_a_message_of_the_user_alone_is_made_legal() -> None:
    """The short way is as careful as the long one."""
    assert Governor(LARGE, counter=COUNTER).step((UserMessage(()),)).messages == (user("(empty message)"),)
