"""Whether a list needs no repair: exactly where `repair` gives back the same object."""

from __future__ import annotations

import pytest
from hypothesis import given

from governors.messages import Message, Messages, Text, Thinking, ToolCall, UserMessage
from governors.repair import repair
from governors.sound import is_sound
from tests.adversarial import PATTERNS, adversarial_histories, patterns
from tests.builders import call, patch, reply, result, user
from tests.strategies import histories

A, B = call(id="a"), call(id="b")


@given(adversarial_histories, patterns)
def test_it_is_exact_for_lists_that_something_went_wrong_with(history: Messages, pattern: str) -> None:
    """Of what comes in, and of what a repair makes of it."""
    repaired = repair(history, id_pattern=pattern)
    assert is_sound(history, pattern) == (repaired is history)
    assert is_sound(repaired, pattern)


@given(histories(), patterns)
def test_it_is_exact_for_legal_lists(history: Messages, pattern: str) -> None:
    """Whose ids may not be what this provider wants."""
    assert is_sound(history, pattern) == (repair(history, id_pattern=pattern) is history)
    assert is_sound(history, PATTERNS[0])


@pytest.mark.parametrize(
    "messages",
    [
        (user("go"), result("a")),
        (reply(A), result("b")),
        (reply(A, B), result("a"), user("wait")),
        (reply(A, B), result("a")),
        (reply(A, B), result("b"), result("a")),
        (reply(A), result("a"), result("a")),
        (reply(A), result("a"), reply(A), result("a")),
        (reply(A, call(id="a", n=2)), result("a"), result("a")),
        (reply(call(id="a b")), result("a b")),
        (UserMessage(()),),
        (UserMessage((Text(" "),)),),
        (reply(""),),
        (reply("said", stop="aborted"),),
        (reply(Thinking("hm"), stop="length"),),
        (reply(call(id="a", complete=False)), result("a")),
        (reply(ToolCall("a", "x", "no json")), result("a")),
        (reply(A), result("a", " ")),
        (patch(" "),),
        (patch("\ud800"),),
    ],
)
def test_what_is_not_sound(messages: tuple[Message, ...]) -> None:
    """One fault each; `repair` sees it, too."""
    assert not is_sound(messages, PATTERNS[0])
    assert repair(messages) is not messages
