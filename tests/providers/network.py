"""What the tests of the network providers share: providers, a request, and questions to its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from governors.messages import StopReason
from governors.wire.base import Abilities
from runtime.providers.anthropic import Anthropic
from runtime.providers.base import Finished, ModelInfo, Request, StreamEvent, TextPiece, Wire
from runtime.providers.openai_chat import OpenAIChat
from runtime.providers.openai_responses import OpenAIResponses
from runtime.providers.transport import NetworkProvider
from tests.servers import (
    KEY,
    Connection,
    Handler,
    Seen,
    anthropic_text,
    chat_text,
    responses_text,
    serve,
)

Make: TypeAlias = Callable[..., NetworkProvider]


def chat(url: str, key: str = KEY) -> NetworkProvider:
    return OpenAIChat("acme", key, f"{url}/v1", key_variable="ACME_API_KEY")


def messages(url: str, key: str = KEY) -> NetworkProvider:
    return Anthropic("acme", key, url, key_variable="ACME_API_KEY")


def responses(url: str, key: str = KEY) -> NetworkProvider:
    return OpenAIResponses("acme", key, f"{url}/v1", key_variable="ACME_API_KEY")


#: A whole reply of each wire.
TEXTS: dict[Make, Callable[[str], Handler]] = {
    chat: chat_text,
    messages: anthropic_text,
    responses: responses_text,
}
WITH_TEXT = pytest.mark.parametrize(("make", "text"), list(TEXTS.items()))


WIRE_OF: dict[type, Wire] = {
    OpenAIChat: "openai_chat",
    Anthropic: "anthropic",
    OpenAIResponses: "openai_responses",
}


def request_for(provider: NetworkProvider, timeout: float = 5.0, **abilities: Any) -> Request:
    wire = WIRE_OF[type(provider)]
    model = ModelInfo("m-1", "acme", wire, 1000, 100, Abilities(**abilities))
    said = [{"role": "user", "content": "hi é 😀"}]
    body: dict[str, Any] = {"model": "m-1", "max_tokens": 100, "messages": said}
    if wire == "openai_responses":
        body = {"model": "m-1", "max_output_tokens": 100, "store": False, "input": said}
    return Request.of(model, body, timeout)


@asynccontextmanager
async def opened(provider: NetworkProvider) -> AsyncIterator[NetworkProvider]:
    try:
        yield provider
    finally:
        await provider.close()


async def ask(provider: Any, request: Request) -> list[StreamEvent]:
    async with provider.stream(request) as events:
        return [event async for event in events]


async def ask_of(make: Make, handler: Handler, silence: float = 5.0) -> list[StreamEvent]:
    async with serve(handler) as server, opened(make(server.url)) as provider:
        return await ask(provider, request_for(provider, silence))


def finished(events: list[StreamEvent]) -> Finished:
    """The last event, checked to be the only `Finished`."""
    last = events[-1]
    assert isinstance(last, Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    return last


def shown(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextPiece))


def problem(events: list[StreamEvent], kind: str, stop: StopReason = "error") -> str:
    """The problem's text, after checking its kind and how the reply ended."""
    last = finished(events)
    assert last.problem is not None
    assert (last.problem.kind, last.message.stop) == (kind, stop)
    return last.problem.text


START = {
    chat: {"choices": [{"index": 0, "delta": {"content": "par"}, "finish_reason": None}]},
    messages: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "par"}},
    responses: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "par"},
}
EACH = pytest.mark.parametrize("make", list(TEXTS))


def begun(make: Make, then: Callable[[Connection], Any]) -> Handler:
    """Sends `par` and goes on as `then` says."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.start()
        await connection.event(START[make])
        await then(connection)

    return handle
