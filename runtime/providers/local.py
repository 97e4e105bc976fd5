"""The embedded model as a provider: llama.cpp in a child process, spoken to as any Chat Completions server.

Laws:
- The child starts on first use, once, however many calls wait for it; one that died is started anew by the next call.
- `close` ends the child and waits for it. Should nobody call it, the child ends by itself with this process.
- What fails before any text came is tried once more on a fresh connection, on a fresh child if it died.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread

from governors.messages import AssistantMessage
from runtime.errors import ModelUnavailable

from .base import CallPiece, Finished, ModelInfo, Problem, Request, Retry, StreamEvent, TextPiece, ThinkingPiece
from .local_child import SERVER, Child, start_child
from .local_info import default_threads, describe, is_smollm2, whole_memory
from .openai_chat import OpenAIChat

START_TIMEOUT = 60.0  # seconds until the model must be loaded

_CLOSED = "the local model was closed: open the runtime again"

#: llama.cpp's server drops reused connections now and then: of 80 calls 5 (asyncio) and 7 (trio) broke before any
#: text. On a connection of its own none did, and on loopback a new one costs nothing.
_ONE_CALL_EACH = {"Connection": "close"}

_DYING = 0.3  # seconds that a process whose connection broke gets to be found dead
#: Temperature and top_p as its authors advise (llama.cpp's 0.8 makes so small a model ramble); the rest keeps it from
#: saying one sentence for ever, and was chosen by reading its answers.
_SMOLLM2_SAMPLING = {"temp": 0.2, "top_p": 0.9, "penalty_repeat": 1.03, "dry_multiplier": 0.8, "dry_allowed_length": 5}


def is_installed() -> bool:
    """Whether the package that runs local models is there (`pip install 'moonwake[local]'`). Does not import it."""
    return find_spec("xllamacpp") is not None


@dataclass(frozen=True, slots=True)
class _Running:
    child: Child
    chat: OpenAIChat


class Local:
    """A provider for one GGUF file. `window` (tokens) and `threads` overrule what `local_info` chooses."""

    name = "local"

    def __init__(
        self,
        model_path: Path,
        *,
        window: int | None = None,
        threads: int | None = None,
        start_timeout: float = START_TIMEOUT,
        command: Sequence[str] = SERVER,
    ) -> None:
        self.model_path = model_path.absolute()
        self._window = window
        self._threads = threads or default_threads(_cores())
        self._start_timeout = start_timeout
        self._command = tuple(command)
        self._info: ModelInfo | None = None
        self._running: _Running | None = None
        self._starting = anyio.Lock()
        self._start_scope: anyio.CancelScope | None = None
        self._closed = False

    def model_info(self) -> ModelInfo:
        """What the file says of the model; read once (up to 0.2 s), without starting anything.

        Raises `ModelUnavailable` where the file cannot be used.
        """
        if self._info is None:
            self._info = describe(self.model_path, window=self._window, memory=whole_memory())
        return self._info

    @property
    def pid(self) -> int | None:
        """The process id of the server while it runs."""
        running = self._running
        return running.child.process.pid if running is not None and running.child.running else None

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """As `Provider.stream`; the first event waits until the model is loaded."""
        answer = _Answer(self, request)
        try:
            yield answer
        finally:
            await answer.leave()

    async def warm(self) -> None:
        """Start the server. What goes wrong is told by the first call."""
        try:
            running = await self.ready()
        except ModelUnavailable:
            return
        await running.chat.warm()

    async def close(self) -> None:
        """End the server and wait for it. Calls made afterwards end with a problem."""
        self._closed = True
        if self._start_scope is not None:
            self._start_scope.cancel()
        with anyio.CancelScope(shield=True):
            async with self._starting:
                await self._end()

    async def ready(self) -> _Running:
        """The running server, started if need be. Raises `ModelUnavailable`."""
        async with self._starting:
            if self._closed:
                raise ModelUnavailable(_CLOSED)
            if self._running is not None and not self._running.child.running:
                await self._end()
            if self._running is None:
                self._running = await self._start()
            return self._running

    async def _start(self) -> _Running:
        info = await anyio.to_thread.run_sync(self.model_info)
        child: Child | None = None
        with anyio.CancelScope() as self._start_scope:  # `close` need not wait for a slow start
            child = await start_child(
                self.model_path,
                window=info.window,
                threads=self._threads,
                sampling=_SMOLLM2_SAMPLING if is_smollm2(self.model_path) else {},
                within=self._start_timeout,
                command=self._command,
            )
        if child is None:
            raise ModelUnavailable(_CLOSED)
        return _Running(child, OpenAIChat(self.name, child.key, f"{child.url}/v1", headers=_ONE_CALL_EACH))

    async def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.child.end()
            await running.chat.close()


class _Answer:
    """The events of one call. No cancel scope is open while an event is handed out."""

    def __init__(self, local: Local, request: Request) -> None:
        self._local = local
        self._request = request
        self._running: _Running | None = None
        self._opened: AbstractAsyncContextManager[AsyncIterator[StreamEvent]] | None = None
        self._events: AsyncIterator[StreamEvent] | None = None
        self._attempt = 1
        self._shown = False
        self._over = False

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._over:
            raise StopAsyncIteration
        if self._events is None:
            try:
                self._running = await self._local.ready()
            except ModelUnavailable as error:
                return self._failed(str(error))
            self._opened = self._running.chat.stream(self._request)
            self._events = await self._opened.__aenter__()
        event = await anext(self._events)
        if isinstance(event, Finished):
            return await self._finished(event)
        self._shown = self._shown or isinstance(event, TextPiece | ThinkingPiece | CallPiece)
        return event

    async def leave(self) -> None:
        """Close the call under way, if there is one."""
        opened, self._opened, self._events = self._opened, None, None
        if opened is not None:
            await opened.__aexit__(None, None, None)

    async def _finished(self, finished: Finished) -> StreamEvent:
        """The end as it is, or another attempt if nothing was shown and the connection, not the time, ran out."""
        await self.leave()
        problem, running = finished.problem, self._running
        self._over = True
        if problem is None or problem.kind != "network" or running is None:
            return finished
        died = await running.child.gone(within=_DYING)
        if died:
            problem = replace(problem, text=f"the local model's server {running.child.how_it_ended()} while answering")
        if self._attempt == 1 and not self._shown and (died or "Timeout" not in problem.detail):
            self._attempt, self._over = 2, False
            return Retry(problem.text, 0.0, self._attempt, problem, finished.message.usage)
        if died:
            problem = replace(problem, text=f"{problem.text}. Ask again: it is started anew")
        return replace(finished, problem=problem)

    def _failed(self, text: str) -> Finished:
        self._over = True
        message = AssistantMessage((), "error", self._request.model.id, self._request.model.wire)
        return Finished(message, Problem("unknown", text))


def _cores() -> int:
    """Processor cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(usable(0)) if usable is not None else os.cpu_count() or 1
