"""The Responses provider: what it posts, how its errors end, and that a reply goes back as it came."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import Text, ToolResult, UserMessage
from governors.wire import WIRES
from governors.wire.base import Abilities
from runtime.providers.base import Request
from tests.servers import model_server, responses_events, serve

from .network import ask, finished, opened, request_for, responses, shown
from .response_events import MODEL, called, ended, fold, said, stream, thought

WIRE = WIRES["openai_responses"]
ABILITIES = Abilities(thinking="effort", cache_marks=True, developer_role=True)


async def test_the_body_is_posted_as_it_is() -> None:
    """Only `stream` is added: usage comes without being asked for."""
    async with model_server([responses_events(*stream([said("ok")]))]) as server:
        async with opened(responses(server.url)) as provider:
            assert finished(await ask(provider, request_for(provider))).problem is None
        assert server.seen[0].path == "/v1/responses"
        assert list(server.seen[0].json) == ["model", "max_output_tokens", "store", "input", "stream"]


@pytest.mark.parametrize(
    ("error", "kind", "stop"),
    [
        ({"code": "server_error", "message": "sorry"}, "overloaded", "error"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limited", "error"),
        ({"code": "context_length_exceeded", "message": "Your input exceeds the context window."}, "overflow", "error"),
        ({"code": "image_content_policy_violation", "message": "no"}, "refused", "refused"),
        ({"code": "bio_policy", "message": "no"}, "refused", "refused"),
        ({"code": "invalid_prompt", "message": "against our usage policy"}, "refused", "refused"),
        ({"code": "invalid_image", "message": "no picture"}, "bad_request", "error"),
    ],
)
@pytest.mark.parametrize("form", ["failed", "event"])
async def test_an_error_in_the_stream_ends_it_with_what_came(
    error: dict[str, str], kind: str, stop: str, form: str
) -> None:
    """As the end of the response or as an event of its own."""
    last: dict[str, Any] = {"type": "error", **error} if form == "event" else ended([], "failed", error=error)
    begun = list(stream([said("par")]))[:4]
    async with serve(responses_events(*begun, last)) as server, opened(responses(server.url)) as provider:
        events = await ask(provider, request_for(provider))
    end = finished(events)
    assert end.problem is not None
    assert (end.problem.kind, end.message.stop, shown(events), end.message.text) == (kind, stop, "par", "par")
    assert error["message"] in end.problem.text or kind == "overflow"


async def test_a_reply_that_a_filter_ended_is_refused() -> None:
    """No error, but nothing to go on from either."""
    end = ended([said("so far")], "incomplete", incomplete_details={"reason": "content_filter"})
    async with serve(responses_events(end)) as server, opened(responses(server.url)) as provider:
        last = finished(await ask(provider, request_for(provider)))
    assert (last.problem, last.message.stop, last.message.text) == (None, "refused", "so far")


async def test_fault_28_a_reply_goes_back_item_by_item_as_it_came() -> None:
    """Reasoning before what followed it, sealed as it was, phases kept, ids left out: twice round, byte for byte."""
    items = [
        thought("sealed-1", "First.", "Then."), said("I look.", phase="commentary"),
        thought("sealed-2"), called("call_1", '{"path": "a"}'), called("call_2", '{"path":"b"}'),
    ]  # fmt: skip
    history: list[Any] = [UserMessage((Text("hi"),))]
    async with (
        model_server([responses_events(*stream(items))], abilities=ABILITIES) as server,
        opened(responses(server.url)) as provider,
    ):
        for _ in range(2):
            parts = WIRE.encode(history, system="be brief", tools=(), abilities=ABILITIES, model="m")
            body = WIRE.mark_cache(WIRE.body(parts, model="m", max_output=99, abilities=ABILITIES), "12h")
            last = finished(await ask(provider, Request.of(MODEL, body, 5.0)))
            assert last.problem is None
            if len(history) == 1:
                history += [last.message]
                history += [ToolResult(call.id, call.name, (Text("x"),)) for call in last.message.calls]
    sent = [item for item in parts["input"] if item["type"] != "function_call_output"][2:]
    without = [{key: value for key, value in item.items() if key != "status"} for item in items]
    assert sent == without
    assert fold(*stream(sent)).content == history[1].content
