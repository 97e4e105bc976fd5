"""What a conversation shows, worked out from its events. Pure: (state, event, time) -> state and what to print.

What is printed stays on the screen for good; what is still changing (the block being written, running calls,
reasoning) is in the state and is drawn by `live.py`. Times are seconds of any steady clock.

Laws: every character of a reply's text is printed once, in order; a call that started is printed once, when it ends
or when the turn ends; nothing printed holds a control sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from governors.messages import StopReason

from ..events import (
    CacheKeptWarm,
    CallReference,
    CompactionFinished,
    CompactionStarted,
    Event,
    HistoryCut,
    HistoryEdited,
    Notice,
    ReplyRecorded,
    RequestSent,
    Retrying,
    StateChanged,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from .blocks import NOTHING_WRITTEN, Block, Splitter, feed, finish
from .receipts import beginning, end
from .sanitize import clean, one_line, ready
from .wording import call_title, dollars, first_line, plural, result_size, retried, seconds, tokens

LineKind = Literal[
    "user",
    "info",
    "success",
    "failure",
    "thought",
    "warning",
    "error",
    "plain",
    "past",
    "tree",
    "running",
    "thinking",
    "queued",
]
_MOST_THOUGHT = 4_000  # characters of reasoning that are kept to show its end


@dataclass(frozen=True, slots=True)
class Line:
    """A short text of ours (or of the user), of one kind."""

    kind: LineKind
    text: str


Shown: TypeAlias = Line | Block


@dataclass(frozen=True, slots=True)
class RunningCall:
    call: CallReference
    title: str
    began: float


@dataclass(frozen=True, slots=True)
class ChatState:
    """`used` and `window` are tokens; `cost` is US dollars, None when some of it is unknown. `since` is when the
    step began. `thought` is the end of the reasoning since `thinking_since`; `drafting` the tool that a call is
    being written for."""

    model: str
    window: int
    used: int = 0
    cost: float | None = 0.0
    phase: str = "idle"
    step: int = 0
    since: float = 0.0
    writing: Splitter = NOTHING_WRITTEN
    held: str = ""  # an unfinished control sequence
    streamed: bool = False  # some of this reply's text came as deltas
    thought: str = ""
    thinking_since: float | None = None
    drafting: str = ""
    calls: tuple[RunningCall, ...] = ()

    @property
    def working(self) -> bool:
        return self.phase not in ("idle", "failed")


Advance: TypeAlias = tuple[ChatState, tuple[Shown, ...]]


def advance(state: ChatState, event: Event, now: float) -> Advance:
    """The state after `event`, and what it prints."""
    match event:
        case TextDelta(text=text):
            return _write(state, text, now)
        case ThinkingDelta(text=text):
            return _think(state, text, now)
        case ToolCallDelta(tool=tool):
            state, shown = _end_thinking(state, now)
            return replace(state, drafting=one_line(tool, 64)), shown
        case ReplyRecorded():
            return _reply(state, event, now)
        case ToolStarted(call=call, tool=tool, arguments=arguments):
            running = RunningCall(call, call_title(tool, arguments), now)
            return replace(state, calls=(*state.calls, running)), ()
        case ToolFinished():
            return _tool_finished(state, event)
        case TurnFinished():
            return _turn_finished(state, event, now)
        case _:
            return _other(state, event, now)


def _other(state: ChatState, event: Event, now: float) -> Advance:
    match event:
        case TurnStarted(model=model):
            return replace(state, model=model, phase="run", step=0, since=now), ()
        case StateChanged(after=after):
            return replace(state, phase=after), ()
        case RequestSent():
            step = replace(
                state,
                model=event.model,
                window=event.window,
                used=event.tokens,
                step=state.step + 1,
                since=now,
                streamed=False,
            )
            return step, ()
        case Retrying(why=why, delay=delay, attempt=attempt):
            return state, (Line("info", retried(why, delay, attempt)),)
        case Notice(level=level, text=text):
            kind: LineKind = "error" if level == "error" else "warning" if level == "warning" else "info"
            return state, (Line(kind, clean(text)),)
        case CacheKeptWarm():
            return _kept_warm(state, event)
        case CompactionStarted(timing=timing, reason=reason, strategy=strategy):
            text = beginning(timing, reason, strategy)
            return replace(state, phase="compact", since=now), (Line("info", text),)
        case CompactionFinished():
            return _room_made(state, event)
        case HistoryCut(before=before, after=after, why=why):
            text = (
                f"The oldest messages went out of the model's view ({tokens(before)} to {tokens(after)} tokens; "
                f"{one_line(why)}). The session file keeps them."
            )
            return state, (Line("info", text),)
        case HistoryEdited(before=before, after=after, why=why):
            text = (
                f"Old results or pictures went out of the model's view ({tokens(before)} to {tokens(after)} tokens; "
                f"{one_line(why)}). It can read them back."
            )
            return state, (Line("info", text),)
        case _:
            return state, ()


def _room_made(state: ChatState, event: CompactionFinished) -> Advance:
    """What came of making room inside a turn."""
    cost = None if state.cost is None or event.cost is None else state.cost + event.cost
    done = event.result == "done"
    line = Line("info" if done else "warning", end(event))
    return replace(state, cost=cost, used=event.after if done else state.used), (line,)


def _kept_warm(state: ChatState, event: CacheKeptWarm) -> Advance:
    cost = None if state.cost is None or event.cost is None else state.cost + event.cost
    price = "" if event.cost is None else f", {dollars(event.cost)}"
    sent = f"{plural(event.requests, 'request')}, {tokens(event.tokens)} read{price}"
    text = f"The cache was kept warm meanwhile ({sent})."
    failed = f" Then it failed: {one_line(event.error)}" if event.error else ""
    return replace(state, cost=cost), (Line("info", text + failed),)


def _write(state: ChatState, text: str, now: float) -> Advance:
    state, shown = _end_thinking(state, now)
    text, held = ready(state.held + text)
    writing, blocks = feed(state.writing, clean(text))
    return replace(state, writing=writing, held=held, streamed=True), (*shown, *_visible(blocks))


def _think(state: ChatState, text: str, now: float) -> Advance:
    since = state.thinking_since if state.thinking_since is not None else now
    thought = (state.thought + text)[-_MOST_THOUGHT:]
    return replace(state, thought=thought, thinking_since=since), ()


def _end_thinking(state: ChatState, now: float) -> Advance:
    if state.thinking_since is None:
        return state, ()
    line = Line("thought", f"thought for {seconds(now - state.thinking_since)}")
    return replace(state, thought="", thinking_since=None), (line,)


def _end_writing(state: ChatState) -> Advance:
    """Print the block that is open, as nothing more will come for it."""
    writing, blocks = feed(state.writing, clean(state.held))
    last = finish(writing)
    rest = blocks if last is None else (*blocks, last)
    return replace(state, writing=NOTHING_WRITTEN, held="", drafting=""), _visible(rest)


def _visible(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block.text.strip() or block.fence)


def _reply(state: ChatState, event: ReplyRecorded, now: float) -> Advance:
    state, shown = _end_thinking(state, now)
    if not state.streamed and event.text:
        state, written = _write(state, event.text, now)
        shown = (*shown, *written)
    state, rest = _end_writing(state)
    cost = state.cost
    if event.usage is not None:  # a reply that was stopped has none, and what it cost is never told
        cost = None if cost is None or event.cost is None else cost + event.cost
    used = event.usage.total if event.usage is not None and event.usage.prompt else state.used
    return replace(state, cost=cost, used=used, streamed=False), (*shown, *rest)


def _tool_finished(state: ChatState, event: ToolFinished) -> Advance:
    running = next((each for each in state.calls if each.call == event.call), None)
    title = running.title if running is not None else one_line(event.tool, 64)
    what = first_line(event.text) if event.is_error else result_size(event.text)
    line = Line("failure" if event.is_error else "success", f"{title} · {seconds(event.seconds)} · {what}")
    return replace(state, calls=tuple(each for each in state.calls if each is not running)), (line,)


def _turn_finished(state: ChatState, event: TurnFinished, now: float) -> Advance:
    state, thought = _end_thinking(state, now)
    state, rest = _end_writing(state)
    left = tuple(Line("failure", f"{call.title} · ended without a result") for call in state.calls)
    state = replace(state, calls=(), phase="idle", step=0)
    return state, (*thought, *rest, *left, *ending(event.stop, event.error, event.steps))


def ending(stop: StopReason, error: str | None, steps: int) -> tuple[Line, ...]:
    """How a turn ended, where it did not simply end."""
    if stop == "aborted":
        kept = f" What was finished ({plural(steps, 'step')}) is kept." if steps else ""
        return (Line("info", f"Stopped.{kept}"),)
    lines: list[Line] = []
    if stop == "length":
        lines.append(Line("warning", 'The answer was cut at the model\'s output limit. Say "go on" for the rest.'))
    if error is not None:
        lines.append(Line("error", clean(error)))
    elif stop == "refused":
        lines.append(Line("error", "The provider refused to answer this. Put it in other words, or use another model."))
    elif stop == "deferred":
        lines.append(Line("warning", "The provider put the answer off. Ask again later."))
    elif stop == "error":
        lines.append(Line("error", "The turn ended without an answer. Try again."))
    return tuple(lines)
