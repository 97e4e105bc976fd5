"""The keys of the prompt. What Ctrl-C means is decided by a pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .commands import complete

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

AGAIN_WITHIN = 3.0  # seconds between two Ctrl-C that leave

Meaning = Literal["stop", "clear", "warn", "quit"]


def meaning_of_interrupt(*, working: bool, text: str, since_warning: float | None) -> Meaning:
    """What Ctrl-C does: clear what is typed, else stop what runs, else leave, if pressed again within a moment.

    `since_warning` is how many seconds ago it was said that a second Ctrl-C leaves; None if it was not.
    """
    if working:
        return "stop"
    if text:
        return "clear"
    return "quit" if since_warning is not None and since_warning <= AGAIN_WITHIN else "warn"


@dataclass(frozen=True, slots=True)
class Actions:
    """What the keys set off. `submit` gets the whole input; `working` tells whether a turn runs."""

    submit: Callable[[str], None]
    stop: Callable[[], None]
    warn: Callable[[], None]
    quit: Callable[[], None]
    working: Callable[[], bool]
    since_warning: Callable[[], float | None]


def key_bindings(buffer: Buffer, actions: Actions, offered: Callable[[], str]) -> KeyBindings:
    """`offered` is the text that was put into the input line last, for a person to change."""
    from prompt_toolkit.filters import Condition, has_focus
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()
    typing = has_focus(buffer)
    empty = Condition(lambda: not buffer.text)
    untouched = Condition(
        lambda: bool(buffer.text) and buffer.text == offered() and buffer.document.is_cursor_at_the_end
    )

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        text = buffer.text
        if text.strip():
            buffer.append_to_history()
            buffer.reset()
            actions.submit(text)

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer.insert_text("\n")

    @keys.add("/", filter=typing & untouched)
    def _(event: KeyPressEvent) -> None:
        buffer.append_to_history()  # a command comes instead; Up brings the text back
        buffer.reset()
        buffer.insert_text("/")

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        completed = complete(buffer.text)
        if completed != buffer.text and buffer.cursor_position == len(buffer.text):
            buffer.insert_text(completed[len(buffer.text) :])

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        match meaning_of_interrupt(working=actions.working(), text=buffer.text, since_warning=actions.since_warning()):
            case "stop":
                actions.stop()
            case "clear":
                buffer.reset()
            case "warn":
                actions.warn()
            case "quit":
                actions.quit()

    @keys.add("c-d", filter=typing & empty)
    def _(event: KeyPressEvent) -> None:
        actions.quit()

    @keys.add("c-z", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return keys
