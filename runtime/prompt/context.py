"""What the runtime knew when a user's message came: clock, channel, sender.

It stands at the end of that message and nowhere else, so the system prompt does not change with the clock. The
form is constant for ever: old messages are rendered again from their stored context, byte for byte.
"""

from __future__ import annotations

from datetime import datetime

from .fence import fence_line

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # strftime follows the locale


def runtime_context(now: datetime, channel: str, sender: str | None = None) -> str:
    """The tagged block. `now` must know its time zone; raises `ValueError` otherwise."""
    if now.utcoffset() is None:
        raise ValueError("the time of a message needs a time zone, such as datetime.now().astimezone()")
    lines = [
        "<runtime-context>",
        f"time: {now.isoformat(sep=' ', timespec='minutes')}, {_DAYS[now.weekday()]}",
        f"channel: {_value(channel)}",
    ]
    if sender is not None and (name := _value(sender)):
        lines.append(f"sender: {name}")
    return "\n".join((*lines, "</runtime-context>"))


def _value(text: str) -> str:
    # People choose their own names: one must not end the block or begin a line of its own.
    return fence_line(text.replace("<", "").replace(">", ""), 64)
