"""The gate before a provider: shared by all that ask it with one key, whatever session, agent or model they ask for.

`admission` decides who may go; here it is waited for. Laws:
- A call is let through once, and its place is free again as soon as it is over, or was given up while it waited.
- Whoever waits longer than a second is told so by a `Retry` event of attempt 1: nothing was asked yet.
- Nobody waits for a provider that named a time too far off: the call ends at once with a problem that says when.
"""

from __future__ import annotations

import random as random_module
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from math import ceil, inf

import anyio
from anyio.lowlevel import RunVar

from governors.messages import AssistantMessage

from .admission import Admission, Limits, Place
from .base import Finished, Problem, Provider, Request, Retry, StreamEvent

__all__ = ["LONGEST_WAIT", "Gate", "Gated", "Limits", "shared_gate"]

NOTICE = 1.0  # seconds after which a person is told
#: Seconds that a closed gate is waited for, as `RetryPolicy.longest_wait`.
LONGEST_WAIT = 60.0


class Gate:
    """An admission, and those who wait at it. `now` is a clock in seconds that never goes back, `random` gives numbers
    in [0, 1). It belongs to one event loop."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = random_module.random,
        longest: float = LONGEST_WAIT,
    ) -> None:
        self.admission = Admission(limits or Limits())
        self.longest = longest
        self._now, self._sleep, self._random = now, sleep, random
        self._news: dict[Place, anyio.Event] = {}
        self._head: Place | None = None

    @property
    def closed_for(self) -> float:
        """Seconds for which the provider wants to be asked nothing."""
        return self.admission.closed_for(self._now())

    @property
    def shut(self) -> bool:
        """Whether it is closed for longer than anyone should wait."""
        return self.closed_for > self.longest

    def enter(self, session: str, tokens: int) -> Place:
        """A place in line; it is admitted at once where nobody waits and nothing is in the way."""
        place = self.admission.ask(session, tokens)
        self._pump()
        return place

    async def wait(self, place: Place, most: float = inf) -> None:
        """Come back when `place` is admitted, the gate is shut, or `most` seconds are over."""
        until = self._now() + most
        try:
            while not place.admitted and not self.shut:
                left = until - self._now()
                if left <= 0:
                    return
                self._news[place] = news = anyio.Event()
                wait = self.admission.wait(self._now()) if place is self.admission.next else inf
                await self._either(news, min(left, wait))
                self._pump()
        finally:
            self._news.pop(place, None)

    def hear(self, place: Place, event: StreamEvent) -> None:
        """What came of a call that went through."""
        problem = event.problem if isinstance(event, Finished) else None
        if isinstance(event, Retry) or (problem is None and place.state == "answered"):
            return  # the provider's own waiting, or nothing new
        if problem is None or problem.kind not in ("rate_limited", "overloaded", "network"):
            self.admission.answered(place)
        elif problem.kind != "network":
            self.admission.refused(
                place,
                rate=problem.kind == "rate_limited",
                retry_after=problem.retry_after,
                now=self._now(),
                chance=self._random(),
            )
            if self.shut:
                self._tell_all()
        self._pump()

    def leave(self, place: Place, used: int | None = None) -> None:
        """Give the place back; `used` are the tokens of the call, None where they are not known."""
        self.admission.leave(place, used)
        self._pump()

    def why(self, provider: str, place: Place) -> str:
        """Why `place` waits, for a person."""
        ahead = self.admission.ahead_of(place)
        others = f", after {ahead:,} other {'call' if ahead == 1 else 'calls'}" if ahead else ""
        if (closed := self.closed_for) > 0:
            return f"{provider} wants to be asked nothing for {ceil(closed)} s; this call waits{others}."
        limits = self.admission.limits
        if self.admission.running >= limits.concurrency:
            return f"{limits.concurrency:,} calls to {provider} are under way, its limit; this one waits{others}."
        return f"this call waits until {provider} may be asked again{others}."

    def _pump(self) -> None:
        """Let go who may, and tell those whom that concerns."""
        for place in self.admission.admit(self._now()):
            self._tell(place)
        head = self.admission.next
        if head is not self._head:
            self._head = head
            if head is not None:
                self._tell(head)  # it is the one who watches the clock

    def _tell(self, place: Place) -> None:
        if (news := self._news.get(place)) is not None:
            news.set()

    def _tell_all(self) -> None:
        for news in self._news.values():
            news.set()

    async def _either(self, news: anyio.Event, seconds: float) -> None:
        """Until there is news, or `seconds` are over."""
        if seconds == inf:
            await news.wait()
            return
        async with anyio.create_task_group() as group:

            async def clock() -> None:
                await self._sleep(seconds)
                group.cancel_scope.cancel()

            group.start_soon(clock)
            await news.wait()
            group.cancel_scope.cancel()


_SHARED: RunVar[dict[tuple[str, str, bytes], Gate]] = RunVar("gates")


def shared_gate(provider: str, base_url: str | None, key: str, limits: Limits | None = None) -> Gate:
    """The gate of this event loop for `provider` at `base_url` with `key`; `limits` hold from now on for all of it."""
    gates = _SHARED.get({})
    _SHARED.set(gates)
    named = (provider, base_url or "", sha256(key.encode("utf-8", "replace")).digest())
    gate = gates.setdefault(named, Gate())
    if limits is not None:
        gate.admission.limits = limits
    return gate


class Gated:
    """A provider behind a gate."""

    def __init__(self, provider: Provider, gate: Gate) -> None:
        self.provider = provider
        self.gate = gate

    @property
    def name(self) -> str:
        return self.provider.name

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """As `Provider.stream`; a `Retry` of attempt 1 says that the call waits for its turn."""
        passage = _Passage(self.provider, self.gate, request)
        try:
            yield passage
        finally:
            await passage.leave()

    async def warm(self) -> None:
        await self.provider.warm()

    async def close(self) -> None:
        await self.provider.close()


class _Passage:
    """The events of one call, from its place in line to its end."""

    def __init__(self, provider: Provider, gate: Gate, request: Request) -> None:
        self._provider, self._gate, self._request = provider, gate, request
        self._place: Place | None = None
        self._opened: AbstractAsyncContextManager[AsyncIterator[StreamEvent]] | None = None
        self._events: AsyncIterator[StreamEvent] | None = None
        self._told = False
        self._over = False
        self._used: int | None = None

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._over:
            raise StopAsyncIteration
        if self._place is None:
            self._place = self._gate.enter(self._request.session, self._request.tokens)
        if self._events is None:
            if (event := await self._wait(self._place)) is not None:
                return event
            self._opened = self._provider.stream(self._request)
            self._events = await self._opened.__aenter__()
        event = await anext(self._events)
        if isinstance(event, Finished):
            self._over = True
            self._used = event.message.usage.total if event.message.usage is not None else None
        self._gate.hear(self._place, event)
        return event

    async def _wait(self, place: Place) -> StreamEvent | None:
        """Until the call may go (None), or what there is to say before."""
        await self._gate.wait(place, inf if self._told else NOTICE)
        if place.admitted:
            return None
        if not self._gate.shut:
            self._told = True
            wait = max(self._gate.closed_for, 0.0)
            return Retry(self._gate.why(self._provider.name, place), wait, 1)
        self._over = True
        text = f"{self._provider.name} limits how much may be asked of it now, and told so to another call"
        problem = Problem("rate_limited", text, retry_after=self._gate.closed_for, unsent=True)
        return Finished(AssistantMessage((), "error"), problem)

    async def leave(self) -> None:
        """Close the call under way, and give its place back, whatever happened."""
        opened, self._opened, self._events = self._opened, None, None
        place, self._place = self._place, None
        self._over = True
        try:
            if opened is not None:
                await opened.__aexit__(None, None, None)
        finally:
            if place is not None:
                self._gate.leave(place, self._used)
