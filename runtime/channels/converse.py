"""Runs a conversation on a screen: events go into the reducer, what it prints goes above the prompt.

Nothing is decided here that could be decided by a pure function: see `reducer`, `live`, `status`, `keys`, `commands`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..agent.agent import Agent
from ..events import Event
from ..session.view.spending import spent
from ..workspace import default_workspace, find_workspace
from .base import Host
from .blocks import Block
from .commands import hints, parse_command, parse_shell
from .keys import Actions
from .live import activity, most_live_lines, settled
from .opening import opening_lines, way_back
from .pending import Pending
from .recap import used_tokens
from .reducer import ChatState, Line, Shown, advance
from .render import Renderer, continuation, gap
from .resume import is_new
from .sanitize import clean
from .screen import Devices, Screen, Views, input_history
from .status import status_line
from .talk import Talk

_SHORTEST_PAUSE = 0.05  # seconds between two drawings of the block being written
_HUNG_UP = 129  # the exit code of a terminal that went away: 128 and the number of the signal that says so to most
_TICK = 0.5  # seconds between two drawings of running times


class Stage:
    """What is on the screen: the audience of a talk."""

    def __init__(self, runtime: Host, agent: Agent, renderer: Renderer) -> None:
        self.runtime = runtime
        self.renderer = renderer
        self.talk = Talk(runtime, agent, self)
        self.screen: Screen  # set by `converse`, as the two need each other
        self.state = _state_of(agent)
        self.changed = anyio.Event()
        self.warned_at: float | None = None
        self._last: Shown | None = None
        self._printed: list[str] = []  # lines of the open block that are printed for good
        self._open: list[str] = []  # and those that are not
        self._free = False
        self._note_price(agent)

    def happened(self, event: Event) -> None:
        self.state, shown = advance(self.state, event, time.monotonic())
        self.show(*shown)
        self.changed.set()

    def show(self, *shown: Shown) -> None:
        lines: list[str] = []
        for each in shown:
            drawn = self.renderer.draw(each, self.screen.columns)
            if self._parted(each):
                lines.append("")
            if isinstance(each, Block):
                drawn, self._printed = continuation(self._printed, drawn), []
            lines.extend(drawn)
            self._last = each
        if any(isinstance(each, Block) for each in shown):
            self._open = []
        self.screen.emit(lines)

    def began(self, agent: Agent) -> None:
        self.state = _state_of(agent)
        self._note_price(agent)

    def moved(self, agent: Agent) -> None:
        self.began(agent)

    def offer(self, text: str, otherwise: str) -> None:
        if not self.screen.put_back(text):
            self.show(Line("info", otherwise))

    def settle_open_block(self) -> None:
        """Draw the block being written; print what of it will not change any more."""
        block = self.state.writing.rest
        width, room = self.screen.columns, most_live_lines(self.screen.rows)
        if not block.text.strip():
            self._open = []
            return
        drawn, whole = self.renderer.open_block(block, width)
        if not whole:
            self._open = drawn[-room:]
            return
        already = len(self._printed)
        count = settled(block.source, len(drawn), already, room)
        if count > already:
            lead = [""] if self._parted(block) else []
            self._last = block
            new = [*lead, *continuation(self._printed, drawn[:count])]
            self._printed = drawn[:count]
            self._open = drawn[count:]
            self.screen.emit(new)
        self._open = drawn[count:][-room:]

    def _parted(self, next_: Shown) -> bool:
        """Whether a blank line comes before `next_`; not inside a block, unless something came between."""
        if isinstance(next_, Block) and self._printed:
            return isinstance(self._last, Line)
        return gap(self._last, next_)

    def live(self) -> str:
        width = self.screen.columns
        now = time.monotonic()
        lines = list(self._open)
        if lines and self._parted(self.state.writing.rest):
            lines.insert(0, "")
        extra: list[str] = []
        for line in activity(self.state, self.talk.waiting(), now, width):
            extra.extend(self.renderer.draw(line, width)[:1])
        if extra and not (self._together(lines)):
            lines.append("")
        return "\n".join([*lines, *extra, ""])

    def _together(self, lines: list[str]) -> bool:
        """Whether running calls may stand directly under the finished ones."""
        return not lines and isinstance(self._last, Line) and self._last.kind in ("success", "failure", "thought")

    def status(self) -> str:
        line = status_line(self.state, self.screen.columns - 1, free=self._free, now=time.monotonic())
        return self.renderer.plain(line)

    def hints(self, text: str) -> str:
        width = self.screen.columns - 1
        return "\n".join(f"{name:<9} {purpose}"[:width] for name, purpose in hints(text))

    def _note_price(self, agent: Agent) -> None:
        price = agent.model.info.price
        self._free = price is not None and not (price.plain or price.output)


def _state_of(agent: Agent) -> ChatState:
    info = agent.model.info
    session = agent.session
    price_known = info.price is not None
    cost = spent(session.tree.entries, session.tree.copied) if price_known else None
    return ChatState(agent.model.name, info.window, used=used_tokens(session.branch()), cost=cost)


async def converse(
    runtime: Host,
    agent: Agent,
    devices: Devices,
    *,
    notes: Sequence[str] = (),
    first: str | None = None,
    renderer: Renderer | None = None,
) -> int:
    """Talk on `devices` until the person leaves; returns the exit code. `notes` are told at the beginning."""
    stage = Stage(runtime, agent, renderer or Renderer())
    talk = stage.talk
    typed: Pending[str] = Pending()
    async with anyio.create_task_group() as group:
        history = await anyio.to_thread.run_sync(input_history, runtime.workspace.input_history)
        views = Views(stage.live, stage.status, stage.hints, stage.renderer.mark("user"))
        stage.screen = Screen(devices, views, _actions(stage, group, typed.put), history)
        stage.show(*opening_lines(agent, runtime.workspace.root, notes, _home()))
        for task in (talk.follow, partial(_paint, stage), partial(_tick, stage)):
            group.start_soon(task)
        if first is not None and first.strip():
            typed.put(first)
        group.start_soon(_listen, stage, typed)
        await stage.screen.run()
        await _end(stage)
        group.cancel_scope.cancel()
    return _HUNG_UP if devices.hang_up.happened else 0


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _actions(stage: Stage, group: TaskGroup, submit: Callable[[str], None]) -> Actions:
    def stop() -> None:
        group.start_soon(stage.talk.stop)

    def warn() -> None:
        stage.warned_at = time.monotonic()
        stage.show(Line("info", "Press Ctrl-C again to leave."))

    def since_warning() -> float | None:
        return None if stage.warned_at is None else time.monotonic() - stage.warned_at

    return Actions(
        submit=submit,
        stop=stop,
        warn=warn,
        quit=lambda: stage.screen.leave(),  # there is no screen yet
        working=lambda: stage.talk.working,
        since_warning=since_warning,
    )


async def _listen(stage: Stage, typed: Pending[str]) -> None:
    """What was typed, in order: commands are carried out, all else goes to the agent."""
    while True:
        text = await typed.take()
        stage.warned_at = None
        command, shell = parse_command(text), parse_shell(text)
        if shell is not None:
            await stage.talk.shell(shell)
        elif command is not None:
            await stage.talk.run(command)
        elif not await stage.talk.say(text.strip()):
            stage.screen.put_back(text)
        stage.changed.set()
        if stage.talk.over:
            stage.screen.leave()


async def _paint(stage: Stage) -> None:
    """Draw the block being written whenever it grew, but never so often that drawing is all that happens."""
    while True:
        await stage.changed.wait()
        stage.changed = anyio.Event()
        began = time.perf_counter()
        stage.settle_open_block()
        stage.screen.redraw()
        await anyio.sleep(max(_SHORTEST_PAUSE, 4 * (time.perf_counter() - began)))


async def _tick(stage: Stage) -> None:
    """Let running times run."""
    while True:
        await anyio.sleep(_TICK)
        if stage.state.working:
            stage.screen.redraw()


async def _end(stage: Stage) -> None:
    await stage.talk.close()
    agent = stage.talk.agent
    if not is_new(agent):
        default = await anyio.to_thread.run_sync(_default_workspace)
        back = way_back(agent, stage.runtime.workspace.root, default)
        stage.show(Line("info", clean(f"To go on: {back}")))


def _default_workspace() -> Path:
    """The workspace that a command without -w would take here."""
    if named := os.environ.get("MOONWAKE_WORKSPACE"):
        return Path(named).resolve()
    return find_workspace(Path.cwd()) or default_workspace().resolve()
