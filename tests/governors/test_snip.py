"""Where a history is cut: at a user boundary, oldest first, down to a low watermark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import call, patch, reply, result, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import histories

from governors.messages import AssistantMessage, Messages, SystemPatch, UserMessage
from governors.snip import LOW_WATERMARK, OMITTED_STEPS, WHOLE_TURN, Snip, apply_snip, snip, turn_start
from tests.adversarial import faults_of


def texts(messages: Messages) -> list[str]:
    return [message.text for message in messages]


def step(name: str, size: int = 10) -> Messages:
    return (reply(call(id=name)), result(name, name * (size // len(name))))


ASKED = (user("one"), reply("done"), user("two"), reply("create it now?"))
OPEN_TURN = (user("go"), *step("a"), *step("b"), *step("c"))


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ((), 0),
        ((user("one"),), 0),
        ((reply("hello"), result("a")), 0),
        ((user("one"), reply("done"), user("two")), 2),
        ((user("one"), reply("done"), user("two"), user("more")), 2),
        ((user("one"), reply("done"), user("two"), *step("a"), user("steered in"), *step("b")), 2),
        ((user("one"), *step("a"), user("after a stop")), 0),
        ((reply("hello"), user("one")), 1),
        ((user("one"), reply("done"), patch(), user("two")), 3),
    ],
)
def test_the_turn_began_with_the_first_message_after_a_finished_reply(messages: Messages, start: int) -> None:
    """As far as a bare list tells; what was steered in belongs to the turn."""
    assert turn_start(messages) == start


def test_what_fits_is_not_cut() -> None:
    """Up to the last token."""
    assert snip(ASKED, [10] * 4, 40, turn=2) is None
    assert snip((), [], 0, turn=0) is None


def test_whole_turns_go_down_to_the_low_watermark() -> None:
    """Not just enough turns to fit: the next call must not need a cut."""
    long = "a question that is long enough to be understood without what stands before it " * 3
    messages = tuple(message for _ in range(10) for message in (user(long), reply("done")))
    assert snip(messages, [5] * 20, 90, turn=18, measure=lambda _: 0) == Snip(12)
    assert snip(messages, [5] * 20, 90, turn=18, boundaries={4, 18}, measure=lambda _: 0) == Snip(18)


def test_fault_yes_is_kept_and_the_question_it_answers_is_not() -> None:
    """The question stands before the short answer, quoted, in a user's message."""
    messages = (*ASKED, user("yes"))
    cut = snip(messages, [50, 50, 50, 50, 1], 60, turn=4, measure=lambda _: 20)
    assert cut is not None and cut.start == 4
    assert texts(apply_snip(messages, cut)) == [
        "[Earlier messages are left out. The next message replies to this:]\ncreate it now?",
        "yes",
    ]


def test_a_question_is_quoted_only_where_it_helps_and_exists() -> None:
    """Not before a long message, not when a user's message lies between, not when nothing was said."""

    def quote(*messages: UserMessage | AssistantMessage) -> str | None:
        cut = snip(messages, [50] * len(messages), 60, turn=len(messages) - 1, measure=lambda _: 1)
        assert cut is not None
        return cut.quote

    question = reply("create it now?")
    assert quote(user("go"), question, user("yes")) is not None
    assert quote(user("go"), question, user("yes, " * 100)) is None
    assert quote(user("go"), question, user("wait"), user("yes")) is None
    assert quote(user("go"), reply(" "), user("yes")) is None
    assert quote(reply(call(id="a")), user("yes")) is None
    shown = quote(user("go"), reply("x" * 5_000 + "now?"), user("yes"))
    assert shown is not None and shown.endswith("xnow?") and "…x" in shown and len(shown) < 1_400


def test_fault_the_quote_pushes_a_request_over_that_would_have_fitted() -> None:
    """The quote goes before anything else does when there is no room for it."""
    messages = (*ASKED, user("yes"))
    assert snip(messages, [50, 50, 50, 50, 90], 100, turn=4, measure=lambda _: 10) == Snip(4, None, _quoted())
    assert snip(messages, [50, 50, 50, 50, 90], 100, turn=4, measure=lambda _: 11) == Snip(4)


def _quoted() -> str:
    return "[Earlier messages are left out. The next message replies to this:]\ncreate it now?"


def test_fault_the_first_message_is_protected_instead_of_the_task() -> None:
    """What is kept is the current turn's message, whatever stands first in the list."""
    messages = (reply("old"), user("older"), reply("done"), user("task " * 50))
    cut = snip(messages, [100, 100, 100, 10], 50, turn=3)
    assert cut == Snip(3)
    assert apply_snip(messages, cut) == messages[3:]


def test_one_long_turn_loses_its_oldest_steps_and_says_so_once() -> None:
    """The user's message, the marker, the newest steps that come under the watermark."""
    cut = snip(OPEN_TURN, [5, 1, 30, 1, 30, 1, 30], 80, turn=0, measure=lambda _: 1)
    assert cut == Snip(0, 5)
    assert texts(apply_snip(OPEN_TURN, cut)) == ["go", OMITTED_STEPS, "", "cccccccccc"]
    more = (*apply_snip(OPEN_TURN, cut), *step("d"))
    again = snip(more, [5, 1, 1, 30, 1, 50], 80, turn=0, measure=lambda _: 1)
    assert again is not None
    assert texts(apply_snip(more, again)) == ["go", OMITTED_STEPS, "", "dddddddddd"]


def test_user_messages_of_the_turn_stay_before_and_after_the_marker() -> None:
    """Input that was steered in keeps its place, as patches do, unless the caller folds them."""
    messages = (user("go"), patch(), user("more"), *step("a"), user("steered in"), *step("b"), *step("c"))
    cut = snip(messages, [1, 1, 1, 1, 50, 1, 1, 50, 1, 20], 60, turn=0, measure=lambda _: 1)
    assert cut == Snip(0, 8)
    folded = apply_snip(messages, cut, keep_patches=False)
    assert texts(folded) == ["go", "more", OMITTED_STEPS, "steered in", "", "cccccccccc"]
    assert apply_snip(messages, cut) == (messages[0], patch(), *folded[1:])


def test_a_turn_that_leaves_room_to_grow_is_kept_whole() -> None:
    """What came before goes entirely before a step of the turn does; a turn that nearly fills the room loses steps."""
    messages = (user("old " * 80), reply("done"), user("go " * 80), *step("a"), *step("b"))
    for size, resume in ((39, None), (45, 5)):
        cut = snip(messages, [30, 10, 1, 0, size, 0, size], 100, turn=2, measure=lambda _: 1)
        assert cut == Snip(2, resume)


def test_fault_the_newest_step_goes_although_it_fits() -> None:
    """Over the watermark but within the room it stays: without it the model would do it again."""
    sizes = [50, 1, 30, 1, 30, 1, 30]
    assert snip(OPEN_TURN, sizes, 90, turn=0, measure=lambda _: 1) == Snip(0, 5)
    assert snip(OPEN_TURN, sizes, 80, turn=0, measure=lambda _: 1) == Snip(0, 7)
    assert texts(apply_snip(OPEN_TURN, Snip(0, 7))) == ["go", OMITTED_STEPS]


def test_a_single_step_that_is_too_large_goes() -> None:
    """The last resort before giving up."""
    messages = (user("go"), *step("a"))
    assert snip(messages, [5, 1, 500], 80, turn=0, measure=lambda _: 1) == Snip(0, 3)


def test_when_nothing_can_go_nothing_is_cut() -> None:
    """The caller sees that it is over; a summary that leads stays."""
    assert snip((user("go"),), [100], 50, turn=0) is None
    assert snip((user("summary"), user("go")), [10, 100], 50, turn=1, lead=1) is None
    assert snip((user("summary"),), [100], 50, turn=0, lead=1) is None


def test_fault_a_cut_where_none_is_allowed() -> None:
    """When the turn's message is no boundary, steps go from the last boundary on, and users' messages stay."""
    long = user("a message that needs no quote " * 8)
    messages = (user("a"), reply("x"), long, *step("a"), user("c"), *step("b"))
    sizes = [40, 1, 1, 1, 80, 1, 1, 10]
    assert snip(messages, sizes, 60, turn=5, boundaries={2}, measure=lambda _: 1) == Snip(2, 6)
    assert snip(messages, sizes, 60, turn=5, boundaries=(), measure=lambda _: 1) == Snip(0, 6)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Messages, list[int], int, int, int, Callable[[str], int]]:
    """A legal history with sizes, a room, a turn, a lead and a measure."""
    messages = draw(histories(max_size=8))
    sizes = draw(st.lists(st.integers(1, 60), min_size=len(messages), max_size=len(messages)))
    users = [i for i, message in enumerate(messages) if isinstance(message, UserMessage)]
    turn = draw(st.one_of(st.just(turn_start(messages)), st.sampled_from(users or [0])))
    lead = draw(st.integers(0, 1)) if turn and isinstance(messages[0], UserMessage) else 0
    extra = draw(st.integers(0, 12))
    return messages, sizes, draw(st.integers(0, 300)), turn, lead, lambda _: extra


@given(problems(), st.one_of(st.none(), st.sets(st.integers(0, 20))))
def test_a_cut_keeps_what_must_stay_and_stays_legal(
    problem: tuple[Messages, list[int], int, int, int, Callable[[str], int]], boundaries: set[int] | None
) -> None:
    """All user messages since the turn began, the lead, call and result together, one marker; at a boundary."""
    messages, sizes, room, turn, lead, measure = problem
    cut = snip(messages, sizes, room, turn=turn, lead=lead, boundaries=boundaries, measure=measure)
    if cut is None:
        return
    kept = apply_snip(messages, cut, lead=lead)
    assert faults_of(kept) == []
    assert kept[:lead] == messages[:lead]
    said = [message for message in messages[turn:] if isinstance(message, UserMessage)]
    assert [message for message in kept if any(message is each for each in said)] == said
    assert texts(kept).count(OMITTED_STEPS) == (cut.resume is not None)
    assert cut.start == lead or (lead < cut.start <= turn and isinstance(messages[cut.start], UserMessage))
    assert cut.start == lead or boundaries is None or cut.start in boundaries
    assert cut.resume is None or cut.resume == len(messages) or isinstance(messages[cut.resume], AssistantMessage)


@given(problems())
def test_the_next_call_needs_no_cut(
    problem: tuple[Messages, list[int], int, int, int, Callable[[str], int]],
) -> None:
    """After a cut there is a fifth of the room to grow into, unless all that is left is what goes last or never."""
    messages, sizes, room, turn, lead, measure = problem
    cut = snip(messages, sizes, room, turn=turn, lead=lead, measure=measure)
    if cut is None:
        return
    size_of = {id(message): size for message, size in zip(messages, sizes, strict=True)}
    kept = apply_snip(messages, cut, lead=lead)
    left = sum(size_of.get(id(message), measure("")) for message in kept)
    steps = sum(isinstance(message, AssistantMessage) for message in kept[lead:])
    assert left <= room * WHOLE_TURN or steps <= 1
    if left <= room * LOW_WATERMARK:
        grown = (*kept, user("next"))
        sizes_now = [*(size_of.get(id(message), measure("")) for message in kept), int(room * 0.19)]
        assert snip(grown, sizes_now, room, turn=turn_start(grown), lead=lead, measure=measure) is None


@given(problems())
def test_what_can_be_made_to_fit_is(
    problem: tuple[Messages, list[int], int, int, int, Callable[[str], int]],
) -> None:
    """Over the room only when the lead, the turn's user messages, all patches and the marker alone are."""
    messages, sizes, room, turn, lead, measure = problem
    cut = snip(messages, sizes, room, turn=turn, lead=lead, measure=measure)
    size_of = {id(message): size for message, size in zip(messages, sizes, strict=True)}
    kept = messages if cut is None else apply_snip(messages, cut, lead=lead)
    left = sum(size_of.get(id(message), measure("")) for message in kept)
    carried_on = [
        size
        for message, size in zip(messages[lead:turn], sizes[lead:turn], strict=True)
        if type(message) is SystemPatch
    ]
    must = sum(sizes[:lead]) + max(sum(carried_on), measure("") if len(carried_on) > 1 else 0)
    must += sum(
        size
        for message, size in zip(messages[turn:], sizes[turn:], strict=True)
        if isinstance(message, UserMessage | SystemPatch)
    )
    opens_with_user = lead < len(messages) and isinstance(messages[max(turn, lead)], UserMessage)
    if opens_with_user and must + measure("") <= room:
        assert left <= room
