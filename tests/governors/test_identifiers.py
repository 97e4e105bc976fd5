"""Ids: legal for the provider, no two alike, and the same for ever."""

from __future__ import annotations

import re

import pytest
from adversarial import PATTERNS
from builders import call, reply, result, user
from hypothesis import given
from hypothesis import strategies as st

from governors.identifiers import legal_ids
from governors.messages import AssistantMessage, Message, Messages

ids = st.one_of(st.sampled_from(["call_0", "call_0", "abcdefghi", "", " ", "x" * 70, "é"]), st.text(st.characters()))


def conversation(*replies: list[str]) -> Messages:
    """Each list of ids is a reply with its results."""
    messages: list[Message] = [user("go")]
    for number, names in enumerate(replies):
        messages.append(reply(*(call(id=name, n=[number, place]) for place, name in enumerate(names))))
        messages += [result(name) for name in names]
    return tuple(messages)


def call_ids(messages: Messages) -> list[str]:
    return [each.id for message in messages if isinstance(message, AssistantMessage) for each in message.calls]


@given(st.lists(st.lists(ids, max_size=4), max_size=6), st.sampled_from(PATTERNS))
def test_ids_are_legal_unrepeated_and_stable(replies: list[list[str]], pattern: str) -> None:
    """The first use of a legal id keeps it; what a shorter history gave, a longer one gives too."""
    given_ids = [name for names in replies for name in names]
    made = call_ids(legal_ids(conversation(*replies), pattern))
    assert len(set(made)) == len(made) == len(given_ids)
    assert all(re.fullmatch(pattern, each) for each in made)
    first_uses = {name: place for place, name in reversed(list(enumerate(given_ids)))}
    for name, place in first_uses.items():
        if re.fullmatch(pattern, name) and name not in made[:place]:
            assert made[place] == name
    for length in range(len(replies)):
        shorter = call_ids(legal_ids(conversation(*replies[:length]), pattern))
        assert made[: len(shorter)] == shorter


def test_a_renamed_id_gives_way_to_none_that_was_there_before() -> None:
    """A made id that a later reply happens to use is not used twice."""
    made = call_ids(legal_ids(conversation(["call_0"], ["call_0"], ["call_0-2-0"]), PATTERNS[0]))
    assert made == ["call_0", "call_0-2-0", "call_0-2-0-3-0"]


def test_renamed_messages_are_made_once() -> None:
    """The same id gives the same object, another pattern another."""
    messages = conversation(["call:0"])
    first, second = legal_ids(messages, PATTERNS[0]), legal_ids(messages, PATTERNS[0])
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert call_ids(legal_ids(messages, PATTERNS[2])) != call_ids(first)


def test_a_reply_whose_ids_are_legal_stays_the_same_object() -> None:
    """Only what has to change changes, also in a list where something else does."""
    messages = conversation(["call_0"], ["call_0"], ["other"])
    changed = legal_ids(messages, PATTERNS[0])
    assert [a is b for a, b in zip(messages, changed, strict=True)] == [True, True, True, False, False, True, True]


def test_thinking_and_text_stay_beside_a_renamed_call() -> None:
    """Only the id of the call is replaced."""
    messages = (reply("text", call(id="a b")), result("a b"))
    assert legal_ids(messages, PATTERNS[0])[0] == reply("text", call(id="a_b-1-0"))


def test_a_pattern_that_no_id_can_match_is_refused() -> None:
    """An error that names the pattern, not an endless search."""
    with pytest.raises(ValueError, match="toolu"):
        legal_ids(conversation(["a"]), r"toolu:\d{3}")
