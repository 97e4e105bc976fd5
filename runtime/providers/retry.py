"""Trying a call again: only what may pass by itself, and only while nothing of the reply was shown.

`RetryingProvider` stands before any provider. tenacity decides whether and when; the waiting is a `Retry` event
and then `sleep`. A failed attempt's `Finished` is held back until it is known to be the last.
"""

from __future__ import annotations

import random as random_module
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread

from .base import CallPiece, Finished, Problem, Provider, Request, Retry, StreamEvent, TextPiece, ThinkingPiece
from .problems import is_transient


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long. Delays are seconds; each is drawn between half of it and all of it.

    A provider that asks to wait longer than `longest_wait` is not waited for: the problem says so.
    """

    attempts: int = 4
    first_delay: float = 1.0
    factor: float = 2.0
    longest_delay: float = 30.0
    longest_wait: float = 60.0


class RetryingProvider:
    """A provider whose transient failures are tried again. `random` gives numbers in [0, 1)."""

    def __init__(
        self,
        provider: Provider,
        policy: RetryPolicy | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.provider = provider
        self.policy = policy or RetryPolicy()
        self._sleep = sleep
        self._random = random

    @property
    def name(self) -> str:
        return self.provider.name

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """As `Provider.stream`, with `Retry` events between attempts."""
        attempts = _Attempts(self.provider, request, self.policy, self._sleep, self._random)
        try:
            yield attempts
        finally:
            await attempts.leave()

    async def warm(self) -> None:
        await anyio.to_thread.run_sync(import_module, "tenacity")
        await self.provider.warm()

    async def close(self) -> None:
        await self.provider.close()


class _Attempts:
    """The events of one call over all its attempts."""

    def __init__(
        self,
        provider: Provider,
        request: Request,
        policy: RetryPolicy,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        import tenacity

        self._provider = provider
        self._request = request
        self._policy = policy
        self._sleep = sleep
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(max(1, policy.attempts)),
            wait=lambda state: _delay(_problem_of(state), state.attempt_number, policy, random),
            retry=tenacity.retry_if_result(lambda finished: self._again(finished.problem)),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        self._retrying.begin()
        self._state = tenacity.RetryCallState(self._retrying, fn=None, args=(), kwargs={})
        self._opened: AbstractAsyncContextManager[AsyncIterator[StreamEvent]] | None = None
        self._events: AsyncIterator[StreamEvent] | None = None
        self._shown = False
        self._wait: float | None = None
        self._over = False

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._over:
            raise StopAsyncIteration
        if self._wait is not None:
            wait, self._wait = self._wait, None
            await self._sleep(wait)
        if self._events is None:
            self._opened = self._provider.stream(self._request)
            self._events = await self._opened.__aenter__()
        event = await anext(self._events)
        if isinstance(event, Finished):
            return await self._finished(event)
        self._shown = self._shown or isinstance(event, TextPiece | ThinkingPiece | CallPiece)
        return event

    async def _finished(self, finished: Finished) -> StreamEvent:
        import tenacity

        await self.leave()
        self._state.set_result(finished)
        decision = self._retrying.iter(self._state)
        if not isinstance(decision, tenacity.DoSleep) or finished.problem is None:
            self._over = True
            return self._explained(finished)
        self._state.prepare_for_next_attempt()
        self._wait = float(decision)
        problem = finished.problem
        return Retry(problem.text, self._wait, self._state.attempt_number, problem, finished.message.usage)

    def _again(self, problem: Problem | None) -> bool:
        if problem is None or self._shown or not is_transient(problem):
            return False
        return (problem.retry_after or 0.0) <= self._policy.longest_wait

    def _explained(self, finished: Finished) -> Finished:
        """Adds to the problem why it was not tried again, where a person would ask."""
        problem = finished.problem
        if problem is None or not is_transient(problem) or self._shown:
            return finished
        if (problem.retry_after or 0.0) > self._policy.longest_wait:
            more = f" It asks to wait {problem.retry_after:.0f} seconds: try again then, or choose another model"
        elif self._state.attempt_number > 1:
            more = f" Tried {self._state.attempt_number} times"
        else:
            return finished
        return replace(finished, problem=replace(problem, text=f"{problem.text.rstrip('.')}.{more}"))

    async def leave(self) -> None:
        """Close the attempt under way, if there is one."""
        opened, self._opened, self._events = self._opened, None, None
        if opened is not None:
            await opened.__aexit__(None, None, None)


def _problem_of(state: Any) -> Problem:
    """tenacity asks for a delay only after a result that `_again` took, so there is a problem."""
    problem: Problem = state.outcome.result().problem
    return problem


def _delay(problem: Problem, attempt: int, policy: RetryPolicy, random: Callable[[], float]) -> float:
    """Exponential with jitter, never shorter than what the provider asks for (then a little longer, spread)."""
    delay = min(policy.longest_delay, policy.first_delay * policy.factor ** (attempt - 1))
    delay *= 0.5 + random() / 2
    if problem.retry_after is None:
        return delay
    return problem.retry_after + min(delay, 1.0) * random() if problem.retry_after > 0 else delay
