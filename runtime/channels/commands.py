"""The commands of a conversation: their names, and what in an input line is one. Pure.

A line is a command when it begins with a slash and its first word holds no other one: `/help` is, `/etc/hosts` and
`/usr/bin is full` are text for the model, and so is anything that begins with a space.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

#: What each command does; the order is that of `/help`.
COMMANDS = MappingProxyType(
    {
        "/new": "begin a new session with the same agent",
        "/stop": "stop the running turn (as Ctrl-C does)",
        "/undo": "take the last turn back, to say it in other words: /undo, /undo 3",
        "/compact": "sum up what was said, to make room: /compact, /compact FOCUS, /compact undo",
        "/retry": "send the last message once more: /retry, /retry MODEL",
        "/tree": "the turns and branches: /tree, /tree N (go there), /tree N edit, /tree N summary",
        "/fork": "go on in a new session that holds this branch: /fork, /fork N",
        "/show": "an entry, whole: /show, /show N",
        "/pin": "keep a message in the model's view: /pin, /pin N",
        "/unpin": "take a pin off: /unpin, /unpin N",
        "/label": "name a message, to find it by: /label TEXT, /label N TEXT (/label N: no name)",
        "/note": "write something for people, which no model sees: /note TEXT",
        "/omit": "leave an entry out of the model's view: /omit N",
        "/restore": "show the model an entry again, whole: /restore N",
        "/redact": "hide an entry for good, on all branches: /redact N",
        "/model": "show the model, or change it: /model NAME",
        "/attach": "give a picture, a PDF or a text with the next message: /attach FILE",
        "/detach": "take off what is attached",
        "/images": "whether the model is sent pictures: /images, /images off, /images on",
        "/cost": "what the last turn did cost, call by call; session, day, and what the caps leave",
        "/tokens": "what takes up the model's window",
        "/held": "input that a stop held back",
        "/send": "send the held input now",
        "/drop": "drop the held input",
        "/help": "this list",
        "/quit": "leave (as Ctrl-D does)",
    }
)
_OTHER_NAMES = MappingProxyType({"/exit": "/quit", "/q": "/quit", "/?": "/help"})
_WANT_WORDS = frozenset({"/attach", "/model", "/images", "/label", "/note", "/omit", "/restore", "/redact"})
_COMMAND = re.compile(r"(/[a-zA-Z?][\w?-]*)(?:\s+(\S.*?))?\s*")

KEYS = (
    ("!COMMAND", "run a command in the workspace; the model sees it with the next message"),
    ("!!COMMAND", "the same, and the model does not see it"),
    ("Enter", "send; while the agent works, it joins after the step at hand"),
    ("Alt-Enter, Ctrl-J", "a new line in the message"),
    ("Ctrl-C", "stop the turn; clear the line; twice: leave"),
    ("Ctrl-R, Up", "search or recall earlier input"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """`name` with its slash, as in `COMMANDS` where it is known; `argument` without the space around it."""

    name: str
    argument: str = ""

    @property
    def known(self) -> bool:
        return self.name in COMMANDS


def parse_command(text: str) -> Command | None:
    """The command that `text` is, known or not; None for a message to the agent."""
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    name = match.group(1).lower()
    return Command(_OTHER_NAMES.get(name, name), match.group(2) or "")


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A command that the person runs; `private`: no model is told."""

    command: str
    private: bool = False


def parse_shell(text: str) -> ShellLine | None:
    """The command that a line beginning with `!` runs; None for a message to the agent."""
    marks = "!!" if text.startswith("!!") else "!"
    command = text.removeprefix(marks).strip()
    return ShellLine(command, marks == "!!") if text.startswith("!") and command.strip("! ") else None


def unknown_command(name: str) -> str:
    """What to tell a person who typed a command that there is not."""
    near = get_close_matches(name, [*COMMANDS, *_OTHER_NAMES], n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]}?" if near else "/help lists what there is."
    return f"There is no command {name}. {meant} To send this as a message, put a space before it."


def hints(text: str) -> tuple[tuple[str, str], ...]:
    """The commands that a line begun so may become, with what they do; none for what is no command."""
    if not re.fullmatch(r"/\w*", text):
        return ()
    return tuple((name, purpose) for name, purpose in COMMANDS.items() if name.startswith(text.lower()))


def complete(text: str) -> str:
    """`text` completed as far as it is clear what is meant, with a space after a whole command that takes a word."""
    names = [name for name, _ in hints(text)]
    if not names:
        return text
    if len(names) == 1:
        return names[0] + " " if names[0] in _WANT_WORDS else names[0]
    first, last = min(names), max(names)
    shared = next((index for index, char in enumerate(first) if char != last[index : index + 1]), len(first))
    return first[: max(shared, len(text))]
