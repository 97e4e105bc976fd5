"""Which input is a command, and what Ctrl-C means."""

from __future__ import annotations

import pytest

from runtime.channels.commands import COMMANDS, Command, complete, hints, parse_command, unknown_command
from runtime.channels.keys import meaning_of_interrupt


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", Command("/help")),
        ("/HELP ", Command("/help")),
        ("/exit", Command("/quit")),
        ("/model anthropic/claude", Command("/model", "anthropic/claude")),
        ("/frobnicate", Command("/frobnicate")),
        ("/etc/hosts", None),
        ("/usr/bin is full", None),
        (" /help", None),
        ("/help\nme", Command("/help", "me")),
        ("/", None),
        ("// comment", None),
        ("hello /help", None),
    ],
)
def test_what_is_a_command(text: str, command: Command | None) -> None:
    """A slash and one word; paths and what begins with a space are text."""
    assert parse_command(text) == command


def test_an_unknown_command_names_the_nearest() -> None:
    """And says how to send it as text."""
    assert "/help" in unknown_command("/hlep")
    assert "space before it" in unknown_command("/zzzzzz")


def test_hints_and_completion() -> None:
    """A beginning shows what it may become; Tab fills in what is clear."""
    assert len(hints("/")) == len(COMMANDS)
    assert [name for name, _ in hints("/s")] == ["/stop", "/show", "/send"]
    assert hints("/send now") == () == hints("text")
    assert complete("/to") == "/tokens"
    assert complete("/mo") == "/model "
    assert complete("/s") == "/s"
    assert complete("/zz") == "/zz"


@pytest.mark.parametrize(
    ("working", "text", "since", "meaning"),
    [
        (True, "typed", None, "stop"),
        (False, "typed", None, "clear"),
        (False, "", None, "warn"),
        (False, "", 1.0, "quit"),
        (False, "", 60.0, "warn"),
    ],
)
def test_ctrl_c(working: bool, text: str, since: float | None, meaning: str) -> None:
    """Stop what runs, clear what is typed, leave when pressed twice."""
    assert meaning_of_interrupt(working=working, text=text, since_warning=since) == meaning
