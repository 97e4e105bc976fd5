"""What stays word for word, over random conversations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from runtime.compaction.keeping import Fold, fold_at_rest, fold_before_turn, fold_mid_turn
from tests.adversarial import faults_of

U = UserMessage((Text("ask"),))
A = AssistantMessage((Text("answer"),), stop="stop")


def step(number: int, calls: int) -> list[Message]:
    made = tuple(ToolCall(f"c{number}_{each}", "f", "{}") for each in range(calls))
    results = [ToolResult(call.id, "f", (Text("done"),)) for call in made]
    return [AssistantMessage(made, stop="tool_use"), *results]


@st.composite
def talks(draw: st.DrawFn) -> tuple[tuple[Message, ...], list[int], list[int]]:
    """Turns of some steps; their sizes; where they open."""
    messages: list[Message] = []
    openings: list[int] = []
    for turn in range(draw(st.integers(1, 6))):
        openings.append(len(messages))
        messages.append(U)
        for number in range(draw(st.integers(0, 4))):
            messages += step(10 * turn + number, draw(st.integers(1, 3)))
            if draw(st.integers(0, 4)) == 0:
                messages.append(U)  # steered in
        messages.append(A)
    sizes = draw(st.lists(st.integers(1, 50), min_size=len(messages), max_size=len(messages)))
    return tuple(messages), sizes, openings


limits = st.tuples(st.integers(1, 30), st.integers(1, 600))


def kept(messages: tuple[Message, ...], fold: Fold) -> tuple[Message, ...]:
    gone = set(fold.folded)
    return tuple(message for place, message in enumerate(messages) if place not in gone)


@given(talks(), limits)
def test_before_a_turn_the_newest_stay(
    talk: tuple[tuple[Message, ...], list[int], list[int]], most: tuple[int, int]
) -> None:
    """Within the limits unless only the new turn stays, from an opening on, and as many as fit."""
    messages, sizes, openings = talk
    messages, sizes, turn = (*messages, U), [*sizes, 5], len(messages)
    fold = fold_before_turn(messages, sizes, boundaries=openings, turn=turn, lead=0, most=most[0], tokens=most[1])
    assert fold is not None and fold.resume is None and fold.folded == tuple(range(fold.start))
    assert fold.start in (*openings, turn)
    fits = [
        place
        for place in openings
        if place > 0 and len(messages) - place <= most[0] and sum(sizes[place:turn]) <= most[1]
    ]
    assert fold.start == min([*fits, turn])
    assert faults_of(kept(messages, fold)) == []


@given(talks(), limits, st.booleans())
def test_inside_a_turn_its_own_words_and_newest_steps_stay(
    talk: tuple[tuple[Message, ...], list[int], list[int]], most: tuple[int, int], steps: bool
) -> None:
    """All user messages of the turn, whole steps, nothing of what came before it."""
    messages, sizes, openings = talk
    turn = openings[-1]
    fold = fold_mid_turn(messages, sizes, turn=turn, lead=0, most=most[0], tokens=most[1], steps=steps)
    if fold is None:
        assert turn == 0
        return
    stays = kept(messages, fold)
    assert fold.start == turn and faults_of(stays) == []
    said = [message for message in messages[turn:] if isinstance(message, UserMessage)]
    assert [message for message in stays if isinstance(message, UserMessage)] == said
    replies = [message for message in stays if isinstance(message, AssistantMessage)]
    assert steps or not replies
    if fold.resume is not None and fold.resume < len(messages):
        assert isinstance(messages[fold.resume], AssistantMessage)
        assert len(messages) - fold.resume <= most[0] and sum(sizes[fold.resume :]) <= most[1]


@given(talks(), limits)
def test_at_rest_a_turn_that_is_too_long_loses_its_oldest_steps(
    talk: tuple[tuple[Message, ...], list[int], list[int]], most: tuple[int, int]
) -> None:
    """The newest turn is never folded whole: a context begins at a user's message."""
    messages, sizes, openings = talk
    fold = fold_at_rest(messages, sizes, boundaries=openings, lead=0, most=most[0], tokens=most[1])
    if fold is None:
        return
    stays = kept(messages, fold)
    assert fold.start in openings and fold.folded
    assert isinstance(stays[0], UserMessage) and faults_of(stays) == []


@given(talks(), limits)
def test_what_was_folded_is_not_folded_again(
    talk: tuple[tuple[Message, ...], list[int], list[int]], most: tuple[int, int]
) -> None:
    """A summary alone in front is no reason for another one."""
    messages, sizes, openings = talk
    fold = fold_at_rest(messages, sizes, boundaries=openings, lead=0, most=most[0], tokens=most[1])
    if fold is None or fold.resume is not None:
        return
    rest, left = (U, *messages[fold.start :]), [5, *sizes[fold.start :]]
    again = [place - fold.start + 1 for place in openings if place >= fold.start]
    assert fold_at_rest(rest, left, boundaries=again, lead=1, most=most[0], tokens=most[1]) is None
