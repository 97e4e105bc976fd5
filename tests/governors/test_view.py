"""A view: the beginning of a list that grows, and nothing but that."""

from __future__ import annotations

import pytest

from governors.messages import Message
from governors.view import View
from tests.builders import reply, user

ONE, TWO, THREE = user("one"), reply("two"), user("three")


def test_a_view_stays_as_it_was_while_its_list_grows() -> None:
    """Length, iteration, membership, indices from both ends, slices."""
    messages: list[Message] = [ONE, TWO]
    view = View(messages)
    messages.append(THREE)
    assert len(view) == 2 and list(view) == [ONE, TWO] and list(reversed(view)) == [TWO, ONE]
    assert THREE not in view and view.index(TWO) == 1
    assert view[0] is ONE and view[-1] is TWO and view[-2] is ONE
    assert view[:9] == view[-9:] == (ONE, TWO) and view[::-1] == (TWO, ONE)
    for index in (2, -3):
        with pytest.raises(IndexError, match="of 2"):
            view[index]
    assert View(messages, 1) == (ONE,)


def test_a_view_equals_any_sequence_of_the_same_messages() -> None:
    """Lists, tuples and other views; nothing else."""
    view = View([ONE, TWO])
    assert view == [ONE, TWO] == view and view == (user("one"), TWO) and view == View([ONE, TWO, THREE], 2)
    assert view != [ONE] and view != (TWO, ONE) and view != 2
    assert repr(view) == f"View({[ONE, TWO]!r})"
    with pytest.raises(TypeError):
        hash(view)
