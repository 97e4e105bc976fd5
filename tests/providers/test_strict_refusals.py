"""The strict servers are strict: what each rule forbids is refused with the provider's own words and form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime.providers.anthropic import Anthropic
from runtime.providers.base import ModelInfo, Request, Wire
from runtime.providers.catalog import lookup
from runtime.providers.openai_chat import OpenAIChat
from runtime.providers.openai_responses import OpenAIResponses
from tests.servers import KEY, serve
from tests.strict.anthropic import MessagesHost
from tests.strict.chat import ChatHost
from tests.strict.chat_hosts import HOSTS
from tests.strict.mind import Mind
from tests.strict.responses import ResponsesHost

from .network import ask, finished, opened

Change = Callable[[dict[str, Any]], Any]
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
USE = {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "seen"}]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def messages_body() -> dict[str, Any]:
    """A legal one, with a step of a tool."""
    messages = [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [text("I look"), dict(USE)]},
        {"role": "user", "content": [dict(RESULT)]},
    ]
    return {"model": "claude-sonnet-5-5", "max_tokens": 100, "tools": [dict(TOOL)], "messages": messages}


def chat_body() -> dict[str, Any]:
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    function = {"name": "look", "parameters": {"type": "object", "properties": {}}}
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": "seen"},
    ]
    return {
        "model": "m",
        "max_tokens": 100,
        "tools": [{"type": "function", "function": function}],
        "messages": messages,
    }


def responses_body() -> dict[str, Any]:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}
    return {"model": "gpt-6.2-sol", "max_output_tokens": 100, "store": False, "input": [said, call, output]}


async def refusal_of(body: dict[str, Any], wire: Wire, host: str = "openai") -> str | None:
    """What the strict server says to `body`; None when it answers."""
    mind = Mind(1, wild=False)
    served: Any = {"anthropic": MessagesHost(mind), "openai_responses": ResponsesHost(mind)}.get(wire)
    served = served or ChatHost(HOSTS[host], mind)
    usage = {"stream_usage": HOSTS[host].stream_options}
    info: ModelInfo = lookup("acme", str(body["model"]), {"wire": wire, "abilities": usage})
    make: Any = {"anthropic": Anthropic, "openai_chat": OpenAIChat, "openai_responses": OpenAIResponses}[wire]
    async with serve(served.handle) as server, opened(make("acme", KEY, f"{server.url}/v1")) as provider:
        end = finished(await ask(provider, Request.of(info, body)))
    if not served.refusals:
        return None
    assert end.problem is not None and end.problem.kind == "bad_request", end.problem
    return str(served.refusals[0])


def at(*path: Any, value: Any) -> Change:
    """Put `value` at `path`."""

    def change(body: dict[str, Any]) -> None:
        place: Any = body
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def mark_all(body: dict[str, Any]) -> None:
    for block in (*body["tools"], *(block for message in body["messages"] for block in message["content"])):
        block["cache_control"] = SHORT


def mark_short_then_long(body: dict[str, Any]) -> None:
    body["tools"][0]["cache_control"] = SHORT
    body["messages"][0]["content"][0]["cache_control"] = LONG


def think(body: dict[str, Any]) -> None:
    body["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "x", "signature": "y"})


ANTHROPIC: list[tuple[Change, str]] = [
    (at("messages", 0, "role", value="assistant"), "first message"),
    (lambda body: body["messages"].pop(), "prefill"),
    (lambda body: body["messages"].pop(1), "unexpected `tool_use_id`"),
    (lambda body: body["messages"].insert(2, {"role": "user", "content": [text("wait")]}), "without `tool_result`"),
    (lambda body: body["messages"][2]["content"].insert(0, text("first")), "before any other block"),
    (lambda body: body["messages"].extend(messages_body()["messages"]), "must be unique"),
    (at("messages", 1, "content", 1, "id", value="functions.look:1"), "tool_use.id"),
    (at("messages", 1, "content", 1, "input", value="{}"), "valid dictionary"),
    (at("messages", 1, "content", 0, "text", value=""), "non-empty"),
    (at("messages", 0, "content", value=[]), "non-empty content"),
    (at("messages", 2, "content", 0, "content", value=[]), "cannot be empty"),
    (lambda body: body["messages"].append({"role": "assistant", "content": [text("I")]}), "prefill"),
    (think, "Invalid `signature`"),
    (at("temperature", value=0.5), "temperature"),
    (at("thinking", value={"type": "enabled", "budget_tokens": 2048}), "adaptive"),
    (at("tool_choice", value={"type": "any"}), "none"),
    (at("messages", 0, "role", value="system"), "first message"),
    (lambda body: body["messages"].insert(1, {"role": "system", "content": [text("x")]}), "none"),
    (lambda body: body["messages"].append({"role": "system", "content": [text("x")]}), "none"),
    (mark_all, "maximum of 4"),
    (mark_short_then_long, "ttl='1h'"),
    (at("frequency_penalty", value=1), "Extra inputs"),
    (at("thinking", value={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}), "none"),
]


CHAT: list[tuple[str, Change, str]] = [
    ("openai", lambda body: body["messages"].pop(), "must be followed by tool messages"),
    ("openai", lambda body: body["messages"].pop(2), "must be a response"),
    ("openai", at("messages", 2, "content", value=""), "none"),
    ("openai", at("messages", 2, "tool_calls", 0, "function", "arguments", value="{"), "arguments"),
    ("openai", at("messages", 2, "tool_calls", 0, "id", value="x" * 41), ".id"),
    ("openai", at("reasoning_effort", value="low"), "reasoning_effort"),
    ("openai", at("tools", value=[]), "empty array"),
    (
        "openai",
        at("messages", 3, "content", value=[{"type": "image_url", "image_url": {"url": "data:,"}}]),
        "image_url",
    ),
    ("openai", lambda body: body["messages"].extend(chat_body()["messages"][1:]), "duplicate"),
    ("mistral", at("messages", 2, "tool_calls", 0, "id", value="call_1"), "length of 9"),
    ("mistral", lambda body: body["messages"].append({"role": "user", "content": "and?"}), "after role 'tool'"),
    ("mistral", at("max_completion_tokens", value=5), "max_completion_tokens"),
    ("deepseek", lambda body: None, "must be passed back"),
    ("deepseek", at("messages", 2, "reasoning_content", value=""), "none"),
    ("moonshotai", at("messages", 2, "reasoning_content", value=""), "is missing"),
    ("moonshotai", at("messages", 2, "reasoning_content", value=" "), "none"),
    ("groq", at("messages", 2, "reasoning_content", value="x"), "unsupported"),
    ("google", lambda body: None, "thought_signature"),
    ("vllm", lambda body: body["messages"].append({"role": "system", "content": "more"}), "at the beginning"),
    ("template", lambda body: body["messages"].append({"role": "user", "content": "and?"}), "must alternate"),
]
RESPONSES: list[tuple[Change, str]] = [
    (at("store", value=True), "store"),
    (at("max_output_tokens", value=8), "max_output_tokens"),
    (lambda body: body["input"].pop(), "No tool output found"),
    (lambda body: body["input"].pop(1), "No tool call found"),
    (at("input", 1, "arguments", value={}), "arguments"),
    (at("input", 1, "id", value="rs_1"), "begins with"),
    (lambda body: body["input"].append(body["input"][1]), "Duplicate"),
    (lambda body: body["input"].insert(1, {"type": "reasoning", "summary": [], "encrypted_content": "x"}), "verified"),
    (at("temperature", value=1), "temperature"),
    (at("input", value=[]), "must be provided"),
]


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses"])
async def test_a_legal_request_is_answered(wire: Wire) -> None:
    """The bodies that the other tests break are fine before."""
    body = {"anthropic": messages_body, "openai_chat": chat_body, "openai_responses": responses_body}[wire]()
    assert await refusal_of(body, wire) is None


async def judge(body: dict[str, Any], wire: Wire, change: Change, says: str, host: str = "openai") -> None:
    change(body)
    said = await refusal_of(body, wire, host)
    assert (said is None) if says == "none" else (said is not None and says in said), said


@pytest.mark.parametrize(("change", "says"), ANTHROPIC)
async def test_messages_are_refused_as_anthropic_does(change: Change, says: str) -> None:
    """One change to a legal request, and the words that come back."""
    await judge(messages_body(), "anthropic", change, says)


@pytest.mark.parametrize(("host", "change", "says"), CHAT)
async def test_chats_are_refused_as_their_host_does(host: str, change: Change, says: str) -> None:
    """One change to a request that OpenAI takes, at a host that may not."""
    await judge(chat_body(), "openai_chat", change, says, host)


@pytest.mark.parametrize(("change", "says"), RESPONSES)
async def test_responses_are_refused_as_openai_does(change: Change, says: str) -> None:
    """One change to a legal request, and the words that come back."""
    await judge(responses_body(), "openai_responses", change, says)
