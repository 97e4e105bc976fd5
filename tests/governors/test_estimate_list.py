"""An estimate for a whole list: what its replies tell, up to the newest head or edit."""

from __future__ import annotations

from builders import reply, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import histories

from governors.estimate import Estimator
from governors.estimate_count import Count, messages_count
from governors.estimate_list import estimator_of
from governors.messages import AssistantMessage, Messages, Usage
from governors.tokens import MESSAGE_FRAME, ByteCounter

COUNTER = ByteCounter()
MODEL = "claude-a"
FIXED = Count(700, frames=40)


def talk(turns: int, *, model: str = MODEL, before: int = 0) -> Messages:
    """Turns of 1,000 tokens of ours and 300 of the model, each answered with 40; `before` was sent and is cut now."""
    messages: Messages = ()
    real = before + 200
    for _ in range(turns):
        real += 300
        usage = Usage(plain=real, output=40)
        messages += (user("x" * (1_000 - MESSAGE_FRAME - 1)), reply("y" * 40, model=model, usage=usage))
        real += 40
    return messages


def estimate(messages: Messages, *, since: int = 0, model: str = MODEL) -> int:
    estimator = estimator_of(messages, COUNTER, family=1.0, model=model, fixed=FIXED, since=since)
    return estimator.estimate(FIXED + messages_count(messages, COUNTER, model))


def test_the_newest_reply_is_the_anchor() -> None:
    """What it and its prompt cost is known; what is new is counted."""
    messages = talk(3)
    assert estimate(messages) == 200 + 3 * 340
    assert 200 + 3 * 340 + 10 <= estimate((*messages, user("more"))) <= 200 + 3 * 340 + 11
    assert estimate(()) == FIXED.counted


def test_a_reply_of_another_model_is_no_anchor() -> None:
    """Its tokens are not this model's."""
    estimator = estimator_of(talk(8, model="gpt-a"), COUNTER, family=1.0, model=MODEL)
    assert estimator == Estimator(1.0, COUNTER.key)


def test_usage_from_before_a_head_is_stale() -> None:
    """It is no anchor and tells no size, but how the model counts what stands between."""
    messages = talk(8, before=90_000)
    estimator = estimator_of(messages, COUNTER, family=1.0, model=MODEL, fixed=FIXED, since=len(messages))
    assert estimator.anchor is None
    assert estimator.whole == ()
    assert set(estimator.chunks) == {0.3}
    total = FIXED + messages_count(messages, COUNTER, MODEL)
    assert estimate(messages, since=len(messages)) == total.scaled(1.0)


def test_usage_from_after_a_head_is_good() -> None:
    """The first reply after it is the anchor; nothing is learned across the head."""
    kept, later = talk(2, before=90_000), talk(3)
    shift = 2 * 340
    moved = tuple(
        AssistantMessage(each.content, model=MODEL, usage=Usage(plain=each.usage.prompt + shift, output=40))
        if isinstance(each, AssistantMessage) and each.usage
        else each
        for each in later
    )
    assert estimate((*kept, *moved), since=len(kept)) == 200 + 5 * 340
    estimator = estimator_of((*kept, *moved), COUNTER, family=1.0, model=MODEL, fixed=FIXED, since=len(kept))
    assert len(estimator.chunks) == 1 + 2
    assert len(estimator.whole) == 3


def test_long_lists_are_read_from_their_end() -> None:
    """The last replies tell all that is remembered."""
    messages = talk(100)
    assert estimate(messages) == 200 + 100 * 340
    whole = estimator_of(messages, COUNTER, family=1.0, model=MODEL, fixed=FIXED)
    assert (len(whole.whole), len(whole.chunks)) == (16, 16)


@given(history=histories(), since=st.integers(0, 30))
def test_a_list_tells_what_a_running_estimator_saw(history: Messages, since: int) -> None:
    """Any legal history, with a usage that is what we count: the estimate of the list is exact, or a bound."""
    measured: Messages = ()
    running = Estimator(1.0, COUNTER.key)
    for message in history:
        if isinstance(message, AssistantMessage):
            request = messages_count(measured, COUNTER, message.model)
            usage = Usage(plain=max(request.scaled(1.0), 1), output=messages_count([message], COUNTER, "").counted)
            message = AssistantMessage(message.content, message.stop, message.model, message.wire, usage)
            if message.model == MODEL:
                running = running.observe(message, request, COUNTER)
        measured += (message,)
    total = messages_count(measured, COUNTER, MODEL)
    assert estimator_of(measured, COUNTER, family=1.0, model=MODEL).estimate(total) == running.estimate(total)
    stale = estimator_of(measured, COUNTER, family=1.0, model=MODEL, since=since)
    assert stale.anchor in (None, running.anchor)
