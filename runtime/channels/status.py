"""The status line under the prompt: model, window, cost, what is going on. Pure."""

from __future__ import annotations

from .reducer import ChatState
from .sanitize import one_line
from .wording import dollars, tokens, whole_seconds


def status_line(state: ChatState, width: int, *, free: bool, now: float) -> str:
    """At most `width` characters; in a narrow terminal the less important parts go first.

    `free`: the model costs nothing. The cost is left out while it is unknown.
    """
    cost = dollars(state.cost) if state.cost else "free" if free and state.cost is not None else ""
    model = one_line(state.model, 60)
    short = model.rsplit("/", 1)[-1]
    window, activity, brief = window_use(state), _activity(state, now), _activity(state, now, brief=True)
    per_cent = window.rsplit("(", 1)[-1].rstrip(")")
    for parts in (
        (model, window, cost, activity),
        (short, window, cost, activity),
        (short, window, cost, brief),
        (short, per_cent, cost, brief),
        (short, per_cent, brief),
        (per_cent, brief),
        (brief,),
    ):
        line = " · ".join(part for part in parts if part)
        if len(line) <= width:
            return line
    return line[:width]


def window_use(state: ChatState) -> str:
    """`1.2k of 200k (1 %)`, or `window 200k` before anything was sent."""
    if not state.window:
        return ""
    if not state.used:
        return f"window {tokens(state.window)}"
    return f"{tokens(state.used)} of {tokens(state.window)} ({_per_cent(state.used, state.window)})"


def _per_cent(used: int, window: int) -> str:
    share = 100 * used / window
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def _activity(state: ChatState, now: float, *, brief: bool = False) -> str:
    if state.phase == "stopping":
        return "stopping"
    if not state.working:
        return ""
    if state.phase == "compact":
        return "making room" if brief else f"making room, {whole_seconds(now - state.since)} · Ctrl-C stops"
    step = f"step {max(1, state.step)}"
    return step if brief else f"{step}, {whole_seconds(now - state.since)} · Ctrl-C stops"
