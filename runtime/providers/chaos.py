"""A provider that fails as real ones do, but on purpose and again the same way: for tests of what stands before it.

`Chaos` wraps any provider. At each call it draws one fault, or none, from its seed and the number of the call, so that
a run that went wrong can be made again. Faults are what hosts were seen to do; what comes is still a stream by the
rules of `Provider.stream`, as a provider of ours makes one of what such a host sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any, Literal, TypeAlias, get_args

import anyio

from governors.messages import AssistantMessage, AssistantPart, Text, Thinking, ToolCall, Usage

from .assemble import make_call
from .base import (
    CallPiece,
    Finished,
    Problem,
    Provider,
    Request,
    Retry,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
    UsagePiece,
)
from .chat_calls import ChatCalls

Fault: TypeAlias = Literal[
    "limited",  # 429, and no word of when to come back
    "limited_for",  # 429 with a Retry-After
    "overloaded",  # 5xx
    "unreachable",  # no connection
    "overflow",  # a false alarm: the prompt would have fitted
    "refused",
    "stalled",  # a part of the answer, then nothing until the time-out
    "cut",  # a part of the answer, then the connection breaks
    "empty",  # an answer without anything in it
    "malformed",  # arguments that are no JSON, in an answer that ended well
    "same_ids",  # all calls of all answers have one id
    "same_index",  # all calls come at index 0
    "snapshots",  # each piece of a call repeats all before it
    "high_usage",  # a thousand times what it was
    "negative_usage",
    "no_usage",
]

FAULTS: tuple[Fault, ...] = get_args(Fault)
#: About every third call fails, in one way or another.
RATES: Mapping[Fault, float] = dict.fromkeys(FAULTS, 0.02)

_REFUSALS: dict[Fault, Problem] = {
    "limited": Problem("rate_limited", "chaos limits how much may be asked of it now (429)", 429),
    "limited_for": Problem("rate_limited", "chaos limits how much may be asked of it now (429)", 429),
    "overloaded": Problem("overloaded", "chaos failed or is overloaded (529)", 529),
    "unreachable": Problem("network", "cannot connect to chaos: nothing answers there", unsent=True),
    "overflow": Problem("overflow", "the prompt is larger than the model takes, says chaos", 400),
    "refused": Problem("refused", "chaos refused this content (400)", 400),
}
_BREAKS: frozenset[Fault] = frozenset({"stalled", "cut"})
_LONGEST_WAIT = 20.0  # seconds of a Retry-After
_MOST_PIECES = 8  # before a break
_PART = 7  # characters of arguments a piece


class Chaos:
    """`provider`, with faults. `rates` are chances of each (0 to 1, at most 1 together), or one number for all.

    `sleep` waits for a stalled answer's time-out. `made` counts what was done to the calls so far. Raises `ValueError`
    for rates that are none.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        seed: int | str = 0,
        rates: Mapping[Fault, float] | float = RATES,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self.provider = provider
        self.seed = seed
        self.rates = _checked(rates)
        self.made: Counter[Fault] = Counter()
        self.calls = 0
        self._sleep = sleep

    @property
    def name(self) -> str:
        return self.provider.name

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """As `Provider.stream`, with the fault that this call drew."""
        random = Random(f"{self.seed}/{self.calls}")
        self.calls += 1
        fault = self._drawn(random)
        if fault is not None:
            self.made[fault] += 1
        async with aclosing(self._events(request, fault, random)) as events:
            yield events

    async def warm(self) -> None:
        await self.provider.warm()

    async def close(self) -> None:
        await self.provider.close()

    def _drawn(self, random: Random) -> Fault | None:
        left = random.random()
        for fault, rate in self.rates.items():
            left -= rate
            if left < 0:
                return fault
        return None

    async def _events(self, request: Request, fault: Fault | None, random: Random) -> AsyncGenerator[StreamEvent, None]:
        if fault in _REFUSALS:
            await anyio.lowlevel.checkpoint()
            problem = _REFUSALS[fault]
            if fault == "limited_for":
                problem = replace(problem, retry_after=round(random.random() * _LONGEST_WAIT, 3))
            yield Finished(AssistantMessage((), "refused" if fault == "refused" else "error"), problem)
            return
        breaks_after = random.randrange(_MOST_PIECES) if fault in _BREAKS else None
        heard: list[StreamEvent] = []
        async with self.provider.stream(request) as events:
            async for event in events:
                if breaks_after is not None and (isinstance(event, Finished) or len(heard) >= breaks_after):
                    yield await self._broken(request, fault, heard)
                    return
                heard.append(event)
                if isinstance(event, Finished):
                    for each in _damaged(event, request, fault, random):
                        yield each
                elif fault is None or isinstance(event, Retry) or _stays(event, fault):
                    yield event

    async def _broken(self, request: Request, fault: Fault | None, heard: list[StreamEvent]) -> Finished:
        """What had come, as an aborted reply."""
        text = "the reply from chaos broke off before its end"
        if fault == "stalled":
            await self._sleep(request.timeout)
            text = f"chaos sent nothing for {request.timeout:g} seconds"
        return Finished(_partial(heard, request), Problem("network", text))


def _checked(rates: Mapping[Fault, float] | float) -> dict[Fault, float]:
    given = dict(rates) if isinstance(rates, Mapping) else dict.fromkeys(FAULTS, rates)
    if unknown := [fault for fault in given if fault not in FAULTS]:
        raise ValueError(f"there is no fault {unknown[0]!r}: {', '.join(FAULTS)}")
    if not all(0 <= rate <= 1 for rate in given.values()) or sum(given.values()) > 1 + 1e-9:
        raise ValueError(f"rates are chances from 0 to 1, and at most 1 together, not {given}")
    return given


def _stays(event: StreamEvent, fault: Fault) -> bool:
    """Whether a piece comes as it is. Calls are sent anew, usage is told at the end, an empty answer has none."""
    if fault == "empty":
        return False
    if isinstance(event, CallPiece):
        return fault not in ("malformed", "same_ids", "same_index", "snapshots")
    return not (isinstance(event, UsagePiece) and fault in ("high_usage", "negative_usage", "no_usage"))


def _damaged(end: Finished, request: Request, fault: Fault | None, random: Random) -> Iterator[StreamEvent]:
    """The end of a stream with its fault, and the pieces that are only known by then."""
    message = end.message
    match fault:
        case "empty":
            message = replace(message, content=(), stop="stop")
        case "malformed" | "same_ids" | "same_index" | "snapshots":
            sent = ChatCalls()
            for entry in _entries(message.calls, fault, random):
                yield from sent.feed([entry])
            kept: tuple[AssistantPart, ...] = tuple(part for part in message.content if not isinstance(part, ToolCall))
            message = replace(message, content=(*kept, *sent.finish(message.stop)))
        case "high_usage" | "negative_usage":
            factor = 1_000 if fault == "high_usage" else -1
            usage = message.usage or Usage(plain=max(1, request.tokens), output=1)
            message = replace(message, usage=Usage(plain=usage.prompt * factor, output=usage.output * factor))
        case "no_usage":
            message = replace(message, usage=None)
        case _:
            pass
    yield replace(end, message=message)


def _entries(calls: tuple[ToolCall, ...], fault: Fault, random: Random) -> Iterator[dict[str, Any]]:
    """`tool_calls` entries of Chat Completions, as a host with this fault sends them."""
    for place, call in enumerate(calls):
        id = "call_0" if fault == "same_ids" else call.id
        index = 0 if fault == "same_index" else place
        arguments = call.arguments
        if fault == "malformed":
            arguments = arguments[: random.randrange(len(arguments))] if len(arguments) > 1 else "{"
        parts = [arguments[start : start + _PART] for start in range(0, len(arguments), _PART)] or [""]
        for number, part in enumerate(parts):
            whole = "".join(parts[: number + 1]) if fault == "snapshots" else part
            function = {"name": call.name, "arguments": whole}
            first = number == 0 or fault == "snapshots"
            yield (
                {"index": index, "id": id, "function": function}
                if first
                else {
                    "index": index,
                    "function": {"arguments": whole},
                }
            )


def _partial(heard: list[StreamEvent], request: Request) -> AssistantMessage:
    thinking = "".join(event.text for event in heard if isinstance(event, ThinkingPiece))
    text = "".join(event.text for event in heard if isinstance(event, TextPiece))
    content: list[AssistantPart] = [Thinking(thinking)] if thinking else []
    content += [Text(text)] if text else []
    arguments: dict[int, str] = {}
    names: dict[int, str] = {}
    for event in heard:
        if isinstance(event, CallPiece):
            arguments[event.index] = arguments.get(event.index, "") + event.arguments
            names[event.index] = event.tool
    content += [make_call(f"call_{index}", names[index], given, "aborted") for index, given in arguments.items()]
    usage = next((event.usage for event in reversed(heard) if isinstance(event, UsagePiece)), None)
    return AssistantMessage(tuple(content), "aborted", request.model.id, request.model.wire, usage)
