"""The network providers against real servers on loopback that break off, stall, lie, or are something else."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from governors.messages import ToolCall
from runtime.providers.retry import RetryingProvider
from tests.servers import (
    Connection,
    Seen,
    answering,
    anthropic_events,
    chat_events,
    serve,
    status,
)

from .network import (
    EACH,
    TEXTS,
    Make,
    ask,
    ask_of,
    begun,
    chat,
    finished,
    messages,
    opened,
    problem,
    request_for,
    responses,
    shown,
)


@EACH
async def test_a_connection_dropped_after_text_is_an_aborted_reply(make: Make) -> None:
    """What came is kept."""
    events = await ask_of(make, begun(make, Connection.drop))
    assert "broke" in problem(events, "network", "aborted")
    assert finished(events).message.text == shown(events) == "par"


@EACH
async def test_a_stream_that_ends_without_its_end_marker_is_aborted(make: Make) -> None:
    """A clean close of the connection is no end of a reply."""
    events = await ask_of(make, begun(make, Connection.end))
    assert "before its end" in problem(events, "network", "aborted")
    assert finished(events).message.text == "par"


@EACH
async def test_a_connection_dropped_before_any_answer(make: Make) -> None:
    """Not even a status came."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.drop()

    problem(await ask_of(make, handle), "network", "aborted")


@EACH
async def test_a_stream_that_stalls_times_out(make: Make) -> None:
    """Silence for longer than the time-out ends the reply, with what came."""
    events = await ask_of(make, begun(make, Connection.hang), silence=0.15)
    assert "sent nothing for 0.15 seconds" in problem(events, "network", "aborted")
    assert finished(events).message.text == "par"


@EACH
async def test_a_server_that_never_answers_times_out(make: Make) -> None:
    """The same before the first byte."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.hang()

    assert "0.15" in problem(await ask_of(make, handle, silence=0.15), "network", "aborted")


async def test_keep_alive_comments_are_signs_of_life() -> None:
    """The time-out counts from the last byte, not from the last word."""

    async def pulse(connection: Connection) -> None:
        for _ in range(6):
            await anyio.sleep(0.1)
            await connection.piece(b": still here\n\n")
        await connection.drop()

    events = await ask_of(chat, begun(chat, pulse), silence=0.4)
    assert "broke" in problem(events, "network", "aborted")


@EACH
@pytest.mark.parametrize("sign", ["comment", "ping", "empty"])
async def test_signs_of_life_alone_are_not_waited_for_for_ever(make: Make, sign: str) -> None:
    """Comments, pings and pieces with nothing in them: the heart of a server beats, but no model answers."""
    empty = {"choices": [{"index": 0, "delta": {}, "finish_reason": None}]}
    event = {messages: {"type": "ping"}, responses: {"type": "keepalive"}, chat: empty}[make]
    data = b": still here\n\n" if sign == "comment" else f"event: ping\ndata: {json.dumps(event)}\n\n".encode()
    if sign == "ping" and make is chat:
        data = b'event: ping\ndata: {"type": "ping"}\n\n'

    async def pulse(connection: Connection) -> None:
        while True:
            await connection.piece(data)
            await anyio.sleep(0.02)

    with anyio.fail_after(3):
        events = await ask_of(make, begun(make, pulse), silence=0.1)
    assert "nothing but signs of life" in problem(events, "network", "aborted")
    assert finished(events).message.text == "par"


async def test_signed_thinking_is_no_silence() -> None:
    """A model whose thinking is not shown sends only its signature; that is work, however long it takes."""
    delta = {"type": "signature_delta", "signature": "abc"}
    start = {"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": ""}}

    async def think(connection: Connection) -> None:
        await connection.event(start)
        for _ in range(10):
            await connection.event({"type": "content_block_delta", "index": 1, "delta": delta})
            await anyio.sleep(0.03)
        await connection.drop()

    events = await ask_of(messages, begun(messages, think), silence=0.04)
    assert "broke" in problem(events, "network", "aborted")


@EACH
@pytest.mark.parametrize("junk", ["{broken", "not json at all", '{"choices": [{"delta"'])
async def test_malformed_events_break_the_reply(make: Make, junk: str) -> None:
    """A stream that turns to nonsense is treated as a broken connection."""

    async def go_on(connection: Connection) -> None:
        await connection.event(junk)
        await connection.hang()

    events = await ask_of(make, begun(make, go_on))
    problem(events, "network", "aborted")
    assert finished(events).message.text == "par"


@EACH
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"code": 500, "message": "the server failed", "type": "server_error"}}, "overloaded"),
        ({"error": {"code": 400, "type": "exceed_context_size_error", "message": "?", "n_ctx": 64}}, "overflow"),
    ],
)
async def test_an_error_inside_the_stream(make: Make, error: dict[str, Any], kind: str) -> None:
    """llama.cpp and gateways tell of failures after the 200."""

    async def go_on(connection: Connection) -> None:
        await connection.event(error)
        await connection.hang()

    events = await ask_of(make, begun(make, go_on))
    problem(events, kind)
    assert finished(events).message.text == "par"


async def test_an_anthropic_error_event() -> None:
    """Overload may come in mid-stream."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = await ask_of(messages, anthropic_events({"type": "ping"}, error))
    assert "Overloaded" in problem(events, "overloaded")
    last = finished(events)
    assert last.problem is not None
    assert last.problem.status == 529


@EACH
async def test_a_200_with_an_error_in_place_of_a_stream(make: Make) -> None:
    """Gateways answer so."""
    events = await ask_of(make, status(200, {"error": {"message": "upstream failed", "code": 502}}))
    assert "upstream failed" in finished(events).problem.text  # type: ignore[union-attr]  # checked by its text


@EACH
@pytest.mark.parametrize("page", [b"<!doctype html><title>Sign in</title>", b"Welcome!", b"\x00\x01\x02"])
async def test_something_else_at_the_url(make: Make, page: bytes) -> None:
    """A sign-in page is not a model; waiting will not make it one."""

    async def handle(_: Seen, connection: Connection) -> None:
        await connection.respond(200, page, kind="text/html")

    assert "base_url" in problem(await ask_of(make, handle), "bad_request")


async def test_a_done_marker_without_a_reason() -> None:
    """Enough for a text, not for half a call."""
    text: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "hi"}}]}
    half = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": '}}
    call: dict[str, Any] = {"choices": [{"index": 0, "delta": {"tool_calls": [half]}}]}
    assert finished(await ask_of(chat, chat_events(text))).message.stop == "stop"
    events = await ask_of(chat, chat_events(call))
    problem(events, "network", "aborted")
    assert finished(events).message.calls == (ToolCall("a", "f", '{"x": ', complete=False),)
    problem(await ask_of(chat, chat_events()), "network", "aborted")


@EACH
async def test_leaving_early_closes_the_connection(make: Make) -> None:
    """The server sees that nobody listens any more."""
    async with serve(begun(make, Connection.hang)) as server, opened(make(server.url)) as provider:
        async with provider.stream(request_for(provider)) as events:
            async for _ in events:
                break
        with anyio.fail_after(2):
            await server.gone.wait()


@EACH
@pytest.mark.parametrize("begin", [True, False])
async def test_cancelling_closes_the_connection(make: Make, begin: bool) -> None:
    """In mid-reply and before it, and the provider serves the next call."""

    async def silent(_: Seen, connection: Connection) -> None:
        await connection.hang()

    text = TEXTS[make]("ok")
    first = begun(make, Connection.hang) if begin else silent
    async with serve(answering(first, text)) as server, opened(make(server.url)) as provider:
        with anyio.move_on_after(0.3) as scope:
            await ask(provider, request_for(provider))
        assert scope.cancelled_caught
        with anyio.fail_after(2):
            await server.gone.wait()
        assert finished(await ask(provider, request_for(provider))).message.text == "ok"


@EACH
async def test_no_retry_after_text_was_shown(make: Make) -> None:
    """A second try would say it twice."""
    async with serve(begun(make, Connection.drop)) as server, opened(make(server.url)) as inner:
        provider = RetryingProvider(inner, sleep=anyio.sleep)
        events = await ask(provider, request_for(inner))
        assert len(server.seen) == 1
    problem(events, "network", "aborted")
    assert [type(event).__name__ for event in events] == ["TextPiece", "Finished"]
