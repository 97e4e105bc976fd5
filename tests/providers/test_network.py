"""The network providers against real servers on loopback that do as they should."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from governors.messages import Text, ToolCall, Usage
from runtime.providers.base import CallPiece, Finished, Request, TextPiece, UsagePiece
from runtime.providers.retry import RetryingProvider
from tests.servers import (
    Connection,
    Handler,
    Seen,
    answering,
    anthropic_text,
    chat_events,
    chat_text,
    model_server,
    serve,
    status,
)

from .network import (
    EACH,
    TEXTS,
    WITH_TEXT,
    Make,
    ask,
    ask_of,
    chat,
    finished,
    messages,
    opened,
    problem,
    request_for,
    responses,
    shown,
)


@WITH_TEXT
async def test_a_reply_streams_and_the_connection_is_used_again(make: Make, text: Callable[..., Handler]) -> None:
    """A strict server takes the request; pieces, message and usage come; the next call needs no new connection."""
    async with model_server([text("hello there")]) as server, opened(make(server.url)) as provider:
        request = request_for(provider)
        for _ in range(2):
            events = await ask(provider, request)
            last = finished(events)
            assert last.problem is None
            assert last.message.content == (Text("hello there"),)
            assert last.message.model == "m-1"
            assert last.message.usage is not None
            assert shown(events) == "hello there"
        assert server.connections == 1
        assert server.seen[0].body.decode().count("hi é 😀") == 1  # as it was encoded, not escaped


async def test_the_body_is_posted_as_it_is() -> None:
    """Only transport fields are added, keys keep their order, and the caller's object is untouched."""
    async with model_server([chat_text("ok")]) as server, opened(chat(server.url)) as provider:
        request = request_for(provider)
        await ask(provider, request)
        sent = server.seen[0].json
    assert list(sent) == ["model", "max_tokens", "messages", "stream", "stream_options"]
    assert sent["stream_options"] == {"include_usage": True}
    assert "stream" not in request.body


async def test_usage_is_not_asked_of_servers_that_do_not_know_it() -> None:
    """`stream_usage` decides."""
    async with serve(chat_text("ok")) as server, opened(chat(server.url)) as provider:
        await ask(provider, request_for(provider, stream_usage=False))
        assert "stream_options" not in server.seen[0].json


async def test_the_beta_header_follows_the_body() -> None:
    """A body that asks for a beta feature is refused without its header."""
    async with serve(anthropic_text("ok")) as server, opened(messages(server.url)) as provider:
        plain = request_for(provider)
        await ask(provider, plain)
        body = {
            **plain.body,
            "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        }
        await ask(provider, Request.of(plain.model, body, 5.0))
    assert [seen.headers.get("anthropic-beta") for seen in server.seen] == [
        None,
        "thinking-binding-controls-2026-08-01",
    ]


async def test_the_openai_account_of_the_environment_stays_at_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server learns neither organization nor project."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    async with serve(chat_text("ok")) as server, opened(chat(server.url)) as provider:
        await ask(provider, request_for(provider))
    assert not {"openai-organization", "openai-project"} & set(server.seen[0].headers)


async def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server is reached although the environment names a proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert finished(await ask_of(chat, chat_text("ok"))).message.text == "ok"


@WITH_TEXT
async def test_a_refused_key_names_the_variable_and_hides_the_key(make: Make, text: Callable[..., Handler]) -> None:
    """The server repeats the key in its answer; we do not."""
    wrong = "sk-wrong-0123456789"
    async with model_server([text("never")]) as server, opened(make(server.url, wrong)) as provider:
        last = finished(await ask(provider, request_for(provider)))
    assert last.problem is not None
    assert (last.problem.kind, last.problem.status) == ("auth", 401)
    assert "ACME_API_KEY" in last.problem.text
    assert "wrong" not in last.problem.text + last.problem.detail


@WITH_TEXT
async def test_overflow_is_recognised_with_its_numbers(make: Make, text: Callable[..., Handler]) -> None:
    """In each provider's own form."""
    async with model_server([text("never")], window=20) as server, opened(make(server.url)) as provider:
        last = finished(await ask(provider, request_for(provider)))
        assert last.problem is not None
        assert last.problem.kind == "overflow"
        assert (last.problem.window, last.problem.prompt) == (20, len(server.seen[0].body))


@WITH_TEXT
async def test_retry_after_comes_with_the_problem(make: Make, text: Callable[..., Handler]) -> None:
    """Errors are values, and carry the wait."""
    events = await ask_of(make, status(429, {"error": {"message": "slow down"}}, {"retry-after": "7"}))
    last = finished(events)
    assert "slow down" in problem(events, "rate_limited")
    assert last.problem is not None
    assert last.problem.retry_after == 7.0


@WITH_TEXT
@pytest.mark.parametrize("code", [500, 503, 529])
async def test_failures_of_the_server_are_values(make: Make, text: Callable[..., Handler], code: int) -> None:
    """The SDKs' own retries are off: one request is one request."""
    async with serve(status(code, b"oops")) as server, opened(make(server.url)) as provider:
        assert "oops" in problem(await ask(provider, request_for(provider)), "overloaded")
        assert len(server.seen) == 1


@WITH_TEXT
async def test_nothing_listens(make: Make, text: Callable[..., Handler]) -> None:
    """The URL is named, and the likely reason."""
    async with serve(status(200)) as server:
        pass
    async with opened(make(server.url)) as provider:
        said = problem(await ask(provider, request_for(provider)), "network", "aborted")
    assert server.url in said
    assert "running?" in said


@WITH_TEXT
async def test_a_redirect_is_not_followed_with_the_key(make: Make, text: Callable[..., Handler]) -> None:
    """The key goes to nobody but the host that the user named."""
    async with serve(text("never")) as other:
        events = await ask_of(make, status(307, b"", {"location": f"{other.url}/v1/messages"}))
        assert other.seen == []
    assert "base_url" in problem(events, "bad_request")


async def test_a_server_that_does_not_stream_is_understood() -> None:
    """A whole chat completion in place of a stream."""
    answer = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    }
    last = finished(await ask_of(chat, status(200, answer)))
    assert (last.problem, last.message.text, last.message.usage) == (None, "whole", Usage(plain=5, output=1))


@EACH
async def test_hosts_that_cannot_stream(make: Make) -> None:
    """Nothing is said of streaming, and the reply comes whole, with its calls and usage."""
    arguments = {"path": "a"}
    function = {"name": "read_file", "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": "so",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    answer = {
        chat: {
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        },
        messages: {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "c", "name": "read_file", "input": arguments},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "output_tokens": 1},
        },
        responses: {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": json.dumps(arguments)},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 1},
        },
    }[make]
    async with serve(status(200, answer)) as server, opened(make(server.url)) as provider:
        provider.streams = False
        events = await ask(provider, request_for(provider))
    assert not {"stream", "stream_options"} & set(server.seen[0].json)
    last = finished(events)
    assert last.problem is None
    assert last.message.content == (Text("so"), ToolCall("c", "read_file", json.dumps(arguments)))
    assert last.message.usage == Usage(plain=5, output=1)
    told = [CallPiece, CallPiece] if make is responses else [CallPiece]  # that it begins, and its arguments
    assert [type(event) for event in events] == [TextPiece, *told, UsagePiece, Finished] or make is chat


@WITH_TEXT
async def test_usage_is_told_as_it_comes(make: Make, text: Callable[..., Handler]) -> None:
    """At a reply's beginning where the provider tells it there, and the last is the final count."""
    events = await ask_of(make, text("hello"))
    told = [event.usage for event in events if isinstance(event, UsagePiece)]
    assert told[-1] == finished(events).message.usage
    if make is messages:
        assert told == [Usage(plain=10, cache_read=5, output=1), Usage(plain=10, cache_read=5, output=7)]
        assert isinstance(events[0], UsagePiece)


async def test_calls_are_shown_piece_by_piece() -> None:
    """Two calls stream; the pieces name call and tool."""
    entries = [("a", "f", ""), ("", "", '{"x":'), ("", "", "1}")]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, **({"id": id} if id else {}), "function": {"name": name, "arguments": arguments}}]}}]}
        for id, name, arguments in entries
    ]  # fmt: skip
    events = await ask_of(
        chat, chat_events(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    )
    assert events[:-1] == [CallPiece(0, "f", ""), CallPiece(0, "f", '{"x":'), CallPiece(0, "f", "1}")]
    assert finished(events).message.calls == (ToolCall("a", "f", '{"x":1}'),)


def test_no_request_can_be_made_of_a_lone_surrogate() -> None:
    """It cannot be encoded, so nothing that holds one can be sent."""
    request = request_for(chat("http://127.0.0.1:1"))
    with pytest.raises(ValueError, match="surrogates"):
        Request.of(request.model, {**request.body, "user": json.loads('"\\ud99c"')})


@EACH
async def test_a_key_that_cannot_be_a_header(make: Make) -> None:
    """Pasted keys hold line ends; the text says to check the key and does not show it."""
    key = "sk-with\nnewline-0123"
    async with serve(chat_text("never")) as server, opened(make(server.url, key)) as provider:
        last = finished(await ask(provider, request_for(provider)))
    assert last.problem is not None
    assert last.problem.kind == "bad_request"
    assert "key" in last.problem.text
    assert "newline-0123" not in last.problem.text + last.problem.detail


@EACH
@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "http://127.0.0.1:99999", "nonsense"])
async def test_a_url_that_is_none(make: Make, url: str) -> None:
    """Also where the mistake shows only when the client is made."""
    async with opened(make(url)) as provider:
        await provider.warm()
        assert "base_url" in problem(await ask(provider, request_for(provider)), "bad_request")


@EACH
async def test_many_calls_at_once(make: Make) -> None:
    """Agents share a provider."""
    text = TEXTS[make]("ok")
    got: list[str] = []

    async def one() -> None:
        got.append(finished(await ask(provider, request_for(provider))).message.text)

    async with serve(text) as server, opened(make(server.url)) as provider, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert got == ["ok"] * 20


@WITH_TEXT
async def test_a_limit_passes_and_the_reply_comes(make: Make, text: Callable[..., Handler]) -> None:
    """429, then a dropped connection, then 200: one reply, and the waits that were asked for."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def drop(_: Seen, connection: Connection) -> None:
        await connection.drop()

    handler = answering(status(429, {"error": {"message": "slow"}}, {"retry-after": "7"}), drop, text("ok"))
    async with serve(handler) as server, opened(make(server.url)) as inner:
        provider = RetryingProvider(inner, sleep=sleep, random=lambda: 0.0)
        events = await ask(provider, request_for(inner))
        assert finished(events).message.text == "ok"
        assert len(server.seen) == 3
    assert slept == [7.0, 1.0]
