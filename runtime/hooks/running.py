"""Runs the hooks of one agent.

Laws: `ask` gives back what a hook returned, or None, and never raises but for the caller's own cancellation; a plain
function runs in a worker thread, so that it cannot hold up the event loop; one that did not end in time is left alone
until its thread has ended, and other work has threads of its own; each fault of a hook is told once.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..events import Event, Notice
from ..tools.apart import Apart, run_apart, words_of
from .contract import DEFAULT_TIMEOUT, Hook, HookContext

logger = logging.getLogger(__name__)

_MOST_THREADS = 8
_MOST_EVENTS = 10_000  # that wait for slow hooks; then the oldest are dropped


@dataclass(slots=True)
class _Running:
    ended: bool = False


class Hooks:
    """`timeout` (seconds) is for hooks that name none. `notify` tells the person; `group` owns the task that tells
    hooks of events."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        *,
        agent: str,
        session: str,
        workspace: Path,
        notify: Callable[[Notice], None],
        group: TaskGroup | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.turn: int | None = None
        self._hooks = tuple(hooks)
        self._context = functools.partial(HookContext, agent, session, workspace)
        self._notify, self._group, self._timeout = notify, group, timeout
        self._told: set[tuple[str, str, str]] = set()
        self._late: dict[tuple[str, str], _Running] = {}
        self._threads: anyio.CapacityLimiter | None = None
        self._listening = self.at("on_event")
        self._events: deque[tuple[int | None, Event]] = deque()
        self._telling = False
        self._silence = anyio.Event()

    def at(self, point: str) -> tuple[Hook, ...]:
        """The hooks that take part at `point`, in order."""
        return tuple(hook for hook in self._hooks if getattr(hook, point) is not None)

    async def ask(self, hook: Hook, point: str, value: object, turn: int | None = None) -> Any:
        """What the hook returns for `value`; None when it fails."""
        key = (hook.name, point)
        late = self._late.get(key)
        if late is not None and not late.ended:
            return None
        running = _Running()
        limit = self._timeout if hook.timeout is None else hook.timeout
        context = self._context(self.turn if turn is None else turn)
        apart = await run_apart(functools.partial(self._call, getattr(hook, point), context, value, running), limit)
        if apart.error is None and apart.values:
            return apart.values[0]
        if apart.timed_out and not running.ended:
            self._late[key] = running
        self._fault(hook, point, apart, limit)
        return None

    def refuse(self, hook: Hook, point: str, why: str) -> None:
        """Tell, once, that what a hook gave back cannot be used. `why` begins with what it was."""
        self._tell_once(hook, point, "refused", f"The hook {hook.name} ({point}) changed nothing: {why}.")

    def heard(self, event: Event) -> None:
        """Let the hooks know of an event, soon; nobody waits for them."""
        if not self._listening or self._group is None:
            return
        if len(self._events) >= _MOST_EVENTS:
            self._events.popleft()
            for hook in self._listening:
                text = f"Hooks are slower than events come: {hook.name} (on_event) does not hear all of them."
                self._tell_once(hook, "on_event", "lost", text)
        self._events.append((self.turn, event))
        if not self._telling:
            self._telling, self._silence = True, anyio.Event()
            self._group.start_soon(self._tell_events)

    async def settle(self) -> None:
        """Wait until the hooks have heard of everything, for as long as one call may take."""
        if self._telling:
            with anyio.move_on_after(self._timeout):
                await self._silence.wait()

    async def _tell_events(self) -> None:
        try:
            while self._events:
                turn, event = self._events.popleft()
                for hook in self._listening:
                    await self.ask(hook, "on_event", event, turn)
        finally:
            self._telling = False
            self._silence.set()

    async def _call(self, call: Callable[..., Any], context: HookContext, value: object, running: _Running) -> Any:
        if _is_async(call):
            running.ended = True  # it ends with its task
            return await call(context, value)

        def work() -> Any:
            try:
                return call(context, value)
            finally:
                running.ended = True

        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_MOST_THREADS)
        result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        return await result if inspect.isawaitable(result) else result

    def _fault(self, hook: Hook, point: str, apart: Apart[Any], limit: float) -> None:
        error = apart.error
        if apart.timed_out:
            what = f"it had not ended after {limit:g} seconds"
        elif error is None or isinstance(error, anyio.get_cancelled_exc_class()):
            what = "it was cancelled from within"
        else:
            what = f"{type(error).__name__}: {words_of(error)[:500]}"
            logger.info("the hook %s failed at %s", hook.name, point, exc_info=error)
        text = f"The hook {hook.name} ({point}) failed and is passed over: {what}. This is told once."
        self._tell_once(hook, point, "failed", text)

    def _tell_once(self, hook: Hook, point: str, kind: str, text: str) -> None:
        if (hook.name, point, kind) not in self._told:
            self._told.add((hook.name, point, kind))
            self._notify(Notice(level="warning", text=text))


def _is_async(call: Callable[..., Any]) -> bool:
    while isinstance(call, functools.partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004 - objects that are called
