"""What stands between the printed conversation and the prompt and is still changing. Pure.

The block being written is drawn as Markdown; once it is long, the lines that will not change any more are printed for
good (`settled`), so that only a few lines ever have to be redrawn. Tables are drawn whole, as each row may move all
others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .reducer import ChatState, Line
from .sanitize import one_line
from .wording import whole_seconds

_KEPT = 3  # lines at the end of a growing block that the next words may still change
_MOST_CALLS = 6
_MOST_WAITING = 3
_TABLE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*\|", re.MULTILINE)


def most_live_lines(rows: int) -> int:
    """How many lines the block being written may take of a terminal with `rows` rows."""
    return max(2, min(10, rows // 3))


def settled(source: str, lines: int, already: int, room: int) -> int:
    """How many of the `lines` drawn lines of the open block `source` should be printed for good by now.

    `already` of them are. Never fewer than that; only so many that at most `room` lines stay to be redrawn.
    """
    if _TABLE.search(source):
        return already
    if lines - already <= room:
        return already
    return max(already, lines - _KEPT)


def activity(state: ChatState, waiting: Sequence[tuple[str, str]], now: float, width: int) -> tuple[Line, ...]:
    """The lines under the block being written: running calls, reasoning, input that waits as (state, text)."""
    lines = [Line("running", f"{call.title} · {whole_seconds(now - call.began)}") for call in state.calls[:_MOST_CALLS]]
    if len(state.calls) > _MOST_CALLS:
        lines.append(Line("running", f"and {len(state.calls) - _MOST_CALLS} more"))
    lines.extend(_doing(state, now, width))
    for status, text in waiting[:_MOST_WAITING]:
        when = _when(status, working=state.working, room=state.phase == "compact")
        lines.append(Line("queued", f"{when}: {one_line(text, max(20, width - len(when) - 6))}"))
    if len(waiting) > _MOST_WAITING:
        lines.append(Line("queued", f"and {len(waiting) - _MOST_WAITING} more"))
    return tuple(lines)


def _when(status: str, *, working: bool, room: bool = False) -> str:
    """What will become of input that waits."""
    if status == "held":
        return "held"
    if not working:
        return "with your next message"
    if room and status == "steered":
        return "right after"
    return "joins after this step" if status == "steered" else "next"


def _doing(state: ChatState, now: float, width: int) -> list[Line]:
    if not state.working or state.calls:
        return []
    if state.thinking_since is not None:
        head = f"thinking · {whole_seconds(now - state.thinking_since)}"
        room = width - len(head) - 6
        tail = " ".join(state.thought.split())[-max(0, room) :] if room > 15 else ""
        return [Line("thinking", f"{head} · {one_line(tail, room)}" if tail else head)]
    if state.drafting:
        return [Line("thinking", f"preparing {state.drafting}")]
    if state.phase == "stopping":
        return [Line("thinking", "stopping")]
    if state.phase == "compact":
        return [Line("thinking", f"making room · {whole_seconds(now - state.since)}")]
    if not state.writing.rest.text.strip():
        return [Line("thinking", f"waiting for the model · {whole_seconds(now - state.since)}")]
    return []
