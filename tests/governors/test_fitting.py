"""How a request is brought under its budget: arithmetic alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from governors.fitting import Marks, Plan, least_size, plan_fit
from governors.messages import Message, Messages, ToolResult
from governors.microcompact import stub
from governors.snip import OMITTED_STEPS, Snip, apply_snip, turn_start
from tests.adversarial import faults_of
from tests.builders import call, reply, result, user
from tests.strategies import histories


def size(message: Message) -> int:
    return 10 + len(message.text)


def plan(messages: Messages, room: int, *, turn: int = 0, growth: int = 0, lead: int = 0) -> Plan | None:
    return plan_fit(messages, size, stub, Marks.of(room, growth), turn=turn, lead=lead, made=user)


def total(messages: Messages) -> int:
    return sum(size(message) for message in messages)


def applied(messages: Messages, made: Plan, lead: int = 0) -> Messages:
    stubs = {id(messages[index]) for index in made.stubs}
    kept = messages if made.cut is None else apply_snip(messages, made.cut, lead=lead)
    return tuple(stub(each) if isinstance(each, ToolResult) and id(each) in stubs else each for each in kept)


@given(histories(max_size=8), st.integers(0, 400), st.integers(0, 200))
def test_a_plan_fits_and_is_legal_and_without_one_nothing_would_do(history: Messages, room: int, growth: int) -> None:
    """The size that it names is the size that it leaves."""
    turn = turn_start(history)
    found = plan(history, room, turn=turn, growth=growth)
    if found is None:
        assert least_size(history, size, stub, turn=turn) > room
        return
    kept = applied(history, found)
    assert total(kept) == found.size <= room
    assert faults_of(kept) == []


def test_marks_leave_room_to_grow() -> None:
    """Half and four fifths of the room, unless calls grow by more than that leaves."""
    assert Marks.of(1_000, 10) == Marks(1_000, 500, 800)
    assert Marks.of(1_000, 400) == Marks(1_000, 200, 600)
    assert Marks.of(1_000, 2_000).low < 0


def test_what_fits_needs_no_plan_and_a_turn_that_leaves_no_room_to_grow_loses_steps() -> None:
    """Growth decides how much of a turn stays."""
    turn = (user("go"), *(each for n in "ab" for each in (reply(call(id=n)), result(n, n * 200))))
    assert plan(turn, 500) == Plan(None, (), total(turn))
    old = (user("old" * 100), reply("done"))
    found = plan((*old, *turn), 750, turn=2)
    assert found is not None and found.cut is not None and found.cut.start == 2 and found.cut.resume is None
    found = plan((*old, *turn), 750, turn=2, growth=220)
    assert found is not None and found.cut is not None and found.cut.start == 2 and found.cut.resume == 5


def test_results_shrink_from_the_largest_on_until_it_fits() -> None:
    """No more of them than needed; those that a line would make larger never do."""
    calls = [call(id=name) for name in "abc"]
    step = (user("go"), reply(*calls), result("a", "a" * 600), result("b", "b" * 900), result("c", "tiny"))
    over = total(step)
    assert plan(step, over - 100) == Plan(None, (3,), over - size(step[3]) + size(stub(step[3])))
    found = plan(step, over - 1_000)
    assert found is not None and found.stubs == (2, 3)
    assert least_size(step, size, stub, turn=0) == size(step[0]) + size(user(OMITTED_STEPS))


def test_the_newest_step_goes_when_its_lines_are_too_long_as_well() -> None:
    """After everything else; then nothing can be done."""
    step = (user("go"), reply(call(id="a")), result("a", "a" * 600))
    assert plan(step, 200) is not None
    found = plan(step, 100)
    assert found == Plan(Snip(0, 3), (), 12 + size(user(OMITTED_STEPS)))
    assert plan(step, 60) is None


def test_an_older_turn_goes_and_the_only_step_shrinks() -> None:
    """Both in one plan."""
    messages = (user("old" * 100), reply("x"), user("go"), reply(call(id="a")), result("a", "a" * 600))
    found = plan(messages, 200, turn=2)
    assert found is not None and found.cut == Snip(2, None, found.cut.quote if found.cut else None)
    assert found.stubs == (4,)


def test_the_lead_stays() -> None:
    """Whatever goes."""
    messages = (user("summary"), user("old" * 100), reply("x"), user("go " * 80))
    found = plan(messages, 320, turn=3, lead=1)
    assert found is not None and applied(messages, found, lead=1) == (messages[0], messages[3])
    assert least_size(messages, size, stub, turn=3, lead=1) == total((messages[0], messages[3]))
