"""Bodies that go out unread, in the envelope that an SDK wrote once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from governors.wire.encoded import dump_bytes
from runtime.providers.base import Request
from runtime.providers.envelope import Outgoing
from tests.servers import KEY, Connection, Seen, answering, chat_text, serve, status

from .network import EACH, Make, ask, chat, finished, opened, problem, request_for

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | NAMES, lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.sampled_from(["", " ", "\n\t"]))
def test_fields_are_added_to_any_object(body: dict[str, Any], space: str) -> None:
    """Also to an empty one, and to one with space inside and around it; without fields the bytes are the same ones."""
    written = (space + "{" + space + dump_bytes(body).decode()[1:-1] + space + "}" + space).encode()
    outgoing = Outgoing.of(written, {"stream": True})
    assert json.loads(outgoing.whole()) == {**body, "stream": True}
    assert outgoing.length == len(outgoing.whole())
    assert Outgoing.of(written, {}).whole() == written


async def test_a_long_body_goes_out_in_pieces() -> None:
    """The pieces are the body, and none of them is all of it."""
    body = dump_bytes({"text": "é" * 5_000_000})
    outgoing = Outgoing.of(body, {"stream": True})
    pieces = [bytes(piece) async for piece in outgoing.pieces()]
    assert b"".join(pieces) == body[:-1] + b',"stream":true}'
    assert max(map(len, pieces)) < len(body) / 2


async def test_a_long_body_arrives_whole() -> None:
    """With its length told, as many servers take no chunked request; by the SDK's way and by the envelope's."""
    async with serve(chat_text("ok")) as server, opened(chat(server.url)) as provider:
        request = request_for(provider)
        long = Request.of(request.model, {**request.body, "user": "x" * 9_000_000})
        for _ in range(2):
            assert finished(await ask(provider, long)).message.text == "ok"
    for seen in server.seen:
        assert seen.json == {**long.body, "stream": True, "stream_options": {"include_usage": True}}
        assert "transfer-encoding" not in seen.headers


@EACH
async def test_later_calls_go_out_as_the_sdk_sent_the_first(make: Make) -> None:
    """The same line and headers but for the length, also where a call has headers of its own."""
    async with serve(chat_text("ok")) as server, opened(make(server.url)) as provider:
        provider.headers["x-title"] = "one"
        short = request_for(provider)
        longer = Request.of(short.model, {**short.body, "user": "me"}, short.timeout)
        await ask(provider, short)
        await ask(provider, longer)
        provider.headers["x-title"] = "two"
        await ask(provider, short)
        await ask(provider, short)
    one, other, third, fourth = (_without_length(seen) for seen in server.seen)
    assert one == other
    assert third == fourth == (one[0], {**one[1], "x-title": "two"})
    assert [int(seen.headers["content-length"]) for seen in server.seen] == [len(seen.body) for seen in server.seen]
    assert KEY in str(one)
    assert server.seen[1].json["user"] == "me"


def _without_length(seen: Seen) -> tuple[str, dict[str, str]]:
    return seen.path, {name: value for name, value in seen.headers.items() if name != "content-length"}


@EACH
async def test_an_error_after_the_first_call_is_told_alike(make: Make) -> None:
    """The SDK's error and ours give the same problem, with the wait that was asked for."""
    refusal = status(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, {"retry-after": "7"})
    good = status(200, {"choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}]})
    async with serve(answering(refusal, good, refusal)) as server, opened(make(server.url)) as provider:
        first, _, third = [finished(await ask(provider, request_for(provider))) for _ in range(3)]
        assert server.connections == 1
    assert first.problem is not None
    assert third.problem is not None
    assert (first.problem.kind, first.problem.retry_after) == ("rate_limited", 7.0)
    assert (third.problem.kind, third.problem.text) == (first.problem.kind, first.problem.text)
    assert (third.problem.status, third.problem.retry_after) == (429, 7.0)


async def test_a_key_that_is_refused_later_is_named_as_at_first() -> None:
    """The envelope holds the key; what a server says of it is masked all the same, and the next call is served."""
    refused = status(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}})
    handler = answering(chat_text("ok"), refused, chat_text("ok"))
    async with serve(handler) as server, opened(chat(server.url)) as provider:
        await ask(provider, request_for(provider))
        last = finished(await ask(provider, request_for(provider)))
        assert last.problem is not None
        assert last.problem.kind == "auth"
        assert "ACME_API_KEY" in last.problem.text
        assert KEY not in last.problem.text + last.problem.detail
        assert finished(await ask(provider, request_for(provider))).message.text == "ok"


async def test_an_endless_error_is_cut() -> None:
    """What is read of it is bounded, and its connection is given up."""

    async def flood(_: Seen, connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 500 no\r\ncontent-type: text/plain\r\ncontent-length: 99999999999\r\n\r\n")
        while True:
            await connection.send(b"x" * 65_536)

    async with serve(answering(chat_text("ok"), flood)) as server, opened(chat(server.url)) as provider:
        await ask(provider, request_for(provider))
        problem(await ask(provider, request_for(provider)), "overloaded")
