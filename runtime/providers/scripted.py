"""The scripted provider: a public fake that plays replies in order. For tests, examples and rehearsals.

It is as strict as a real provider: a request that breaks a rule of its wire is refused with the rules that it broke,
and one that is larger than the model's window overflows. Every request is kept in `requests`. It waits only where it
was given something to wait with. Scripts are Python values, or plain text (`scripts`).
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from governors.messages import AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage
from governors.wire import WIRES
from governors.wire.base import Abilities

from .base import (
    CacheTerms,
    CallPiece,
    ChosenModel,
    Finished,
    ModelInfo,
    Price,
    Problem,
    Request,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
    Wire,
)
from .scripts import Call, Play, Reply, Script, ScriptError, parse_script

__all__ = ["Call", "Reply", "Script", "ScriptError", "Scripted"]

_PIECE = 12  # characters a piece, so that streaming shows


class Scripted:
    """Plays `script` in order; when it is over, `otherwise` (a text or a function of the request) answers.

    `sleep` takes the seconds of each `Reply.wait`: a fake clock's in tests, `anyio.sleep` in rehearsals; None: nothing
    waits.
    """

    def __init__(
        self,
        script: Iterable[Script] = (),
        *,
        otherwise: Script | None = None,
        sleep: Callable[[float], Awaitable[object]] | None = None,
        name: str = "scripted",
    ) -> None:
        self._script = list(script)
        self._otherwise = otherwise
        self._sleep = sleep
        self._name = name
        self._played = 0
        self._calls = 0
        self.requests: list[Request] = []
        self.closed = False

    @classmethod
    def from_text(cls, text: str, **options: Any) -> Scripted:
        """Plays a script in plain text (`docs/testing.md`); options as in `Scripted`. Raises `ScriptError`."""
        return cls._of(parse_script(text), options)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> Scripted:
        """Plays the script in a file, in UTF-8. Raises `ScriptError`, also for a file that cannot be read."""
        try:
            text = Path(path).expanduser().read_bytes().decode("utf-8")
        except OSError as error:
            raise ScriptError(f"the script {os.fspath(path)} cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise ScriptError(f"{os.fspath(path)}, line {line}: this is not UTF-8") from error
        return cls._of(parse_script(text, os.fspath(path)), options)

    @classmethod
    def _of(cls, play: Play, options: dict[str, Any]) -> Scripted:
        return cls(play.replies, **{"otherwise": play.otherwise, **options})

    @property
    def name(self) -> str:
        return self._name

    def model(self, *, wire: Wire = "anthropic", window: int = 200_000, **changes: Any) -> ModelInfo:
        """A `ModelInfo` for this provider; keyword arguments replace its fields."""
        abilities = Abilities(images=True)
        price = Price(plain=3.0, output=15.0, cache_read=0.3, cache_write_5m=3.75, cache_write_1h=6.0)
        terms = CacheTerms((300, 3_600), chosen=True, renews=True) if wire == "anthropic" else CacheTerms()
        limit = min(4096, window // 4)
        info = ModelInfo("scripted", self.name, wire, window, limit, abilities, 1.0, price, cache=terms)
        return replace(info, **changes)

    def chosen(self, **changes: Any) -> ChosenModel:
        """This provider with its model, for `Runtime.open(..., model=...)`; arguments as in `model`."""
        return ChosenModel(self.model(**changes), self, "a script")

    def add(self, *script: Script) -> None:
        self._script.extend(script)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        async with aclosing(self._events(request)) as events:
            yield events

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        self.closed = True

    async def _events(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        refusal = _refusal(request)
        if refusal is not None:
            yield Finished(AssistantMessage((), "error"), refusal)
            return
        reply = self._next(request)
        if reply.wait and self._sleep is not None:
            await self._sleep(reply.wait)
        if reply.thinking:
            yield ThinkingPiece(reply.thinking)
        for start in range(0, len(reply.text), _PIECE):
            yield TextPiece(reply.text[start : start + _PIECE])
        if reply.hold is not None:
            await reply.hold()
        calls = self._made(reply.calls)
        for index, call in enumerate(calls):
            yield CallPiece(index, call.name, call.arguments)
        yield _finished(request, reply, calls)

    def _next(self, request: Request) -> Reply:
        step = self._script.pop(0) if self._script else self._otherwise
        if step is None:
            text = f"the script is over: it had {self._played:,} replies. Add more, or one for all others (otherwise)"
            return Reply(error=Problem("unknown", text))
        self._played += 1
        if callable(step):
            step = step(request)
        if isinstance(step, Call):
            return Reply(calls=(step,))
        return Reply(step) if isinstance(step, str) else step

    def _made(self, calls: Sequence[Call]) -> list[ToolCall]:
        made = []
        for call in calls:
            self._calls += 1
            text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            made.append(ToolCall(call.id or f"call_{self._calls}", call.tool, text))
        return made


def _finished(request: Request, reply: Reply, calls: list[ToolCall]) -> Finished:
    content: list[Text | Thinking | ToolCall] = []
    if reply.thinking:
        content.append(Thinking(reply.thinking, "scripted-signature"))
    if reply.text:
        content.append(Text(reply.text))
    content.extend(calls)
    prompt = _size(request.body)
    usage = reply.usage or Usage(plain=prompt, output=max(1, len(reply.text) // 4))
    stop: StopReason = reply.stop or ("error" if reply.error else "tool_use" if calls else "stop")
    message = AssistantMessage(tuple(content), stop, request.model.id, request.model.wire, usage)
    return Finished(message, _problem(reply))


def _problem(reply: Reply) -> Problem | None:
    if reply.error is None or isinstance(reply.error, Problem):
        return reply.error
    return Problem(reply.error, f"the scripted model failed ({reply.error})")


def _refusal(request: Request) -> Problem | None:
    info = request.model
    broken = [each for each in WIRES[info.wire].check(dict(request.body), info.abilities) if each.severity != "$"]
    if broken:
        listed = "; ".join(str(each) for each in broken)
        return Problem("bad_request", f"the request breaks the rules of {info.wire}: {listed}", 400, listed)
    size = _size(request.body)
    if size > info.window:
        text = f"the prompt has {size:,} tokens, and the window of {info.id} is {info.window:,}."
        return Problem("overflow", text, 400, window=info.window, prompt=size)
    return None


def _size(body: Mapping[str, Any]) -> int:
    """Roughly the tokens of a body, never more than our own estimate of it: four characters a token."""
    return len(json.dumps(body, ensure_ascii=False)) // 5
