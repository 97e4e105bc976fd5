"""Answers that are a provider's own compaction, folded: what came is handed on as it came."""

from __future__ import annotations

from typing import Any

import pytest

from governors.messages import Usage
from governors.wire.base import Abilities
from runtime.providers.anthropic import COMPACTION, Anthropic
from runtime.providers.assemble_anthropic import AnthropicAssembler
from runtime.providers.assemble_responses import ResponsesAssembler
from runtime.providers.base import Request
from runtime.providers.catalog import lookup

CLAUDE = lookup("anthropic", "claude-opus-5-5", {})
SOL = lookup("openai", "gpt-6.2-sol", {})
BLOCK = {"type": "compaction", "content": "So far.", "signature": "s", "tool_changes": [], "encrypted_content": "m"}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}
SPENT = {"type": "compaction", "input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}


def start(block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def delta(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": fields}


STREAMS = {
    "all of it at once": [start(BLOCK)],
    "content later": [
        start({**BLOCK, "content": None, "encrypted_content": None}),
        delta(type="compaction_delta", content="So far.", encrypted_content="m"),
    ],
    "the signature by itself": [
        start({name: BLOCK[name] for name in ("type", "tool_changes")} | {"content": ""}),
        delta(type="compaction_delta", content="So far.", encrypted_content="m"),
        delta(type="signature_delta", signature="s"),
    ],
    "whole": [{"type": "message", "content": [BLOCK], "stop_reason": "compaction", "usage": {}}],
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_block_is_handed_on(stream: list[dict[str, Any]]) -> None:
    """However it came; the reply itself says nothing, and ended well."""
    assembler = AnthropicAssembler(CLAUDE)
    ended = {"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": {"output_tokens": 0}}
    for chunk in (*stream, ended, {"type": "message_stop"}):
        assembler.feed(chunk)
    assert assembler.remote == (BLOCK,)
    assert assembler.answered and assembler.ended
    assert (assembler.finish().content, assembler.finish().stop) == ((), "stop")


def test_what_stands_beside_it_is_named() -> None:
    """So that a filter can judge it."""
    assembler = AnthropicAssembler(CLAUDE)
    assembler.feed({"type": "message", "content": [{"type": "text", "text": "hm"}, BLOCK], "stop_reason": "compaction"})
    assert assembler.remote == ({"type": "text", "text": "hm"}, BLOCK)


def test_what_it_took_is_counted() -> None:
    """It is told as an iteration, and in no other figure."""
    assembler = AnthropicAssembler(CLAUDE)
    told = {"input_tokens": 0, "output_tokens": 0, "iterations": [SPENT, {"type": "message", "input_tokens": 9}]}
    assembler.feed({"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": told})
    assert assembler.finish().usage == Usage(plain=5, cache_read=100, output=7)


@pytest.mark.parametrize("listed", [True, False])
def test_an_item_is_handed_on(listed: bool) -> None:
    """As it was when it was done, whether or not the finished response lists it again."""
    assembler = ResponsesAssembler(SOL)
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    for index, item in enumerate((thought, ITEM)):
        begun = {**item, "encrypted_content": "early"}
        assembler.feed({"type": "response.output_item.added", "output_index": index, "item": begun})
        assembler.feed({"type": "response.output_item.done", "output_index": index, "item": item})
    output = [thought, ITEM] if listed else []
    assembler.feed({"type": "response.completed", "response": {"status": "completed", "output": output}})
    assert assembler.remote == (thought, ITEM)


def test_other_replies_hand_nothing_on() -> None:
    """Items are kept for compactions alone."""
    assembler = ResponsesAssembler(SOL)
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    assembler.feed({"type": "response.completed", "response": {"status": "completed", "output": [said]}})
    assert assembler.remote == ()


def test_the_beta_is_named_where_it_is_needed() -> None:
    """In requests that ask for a compaction or hold one, by models that have it; words that look so are none."""
    provider = Anthropic("anthropic", "k")

    def betas(body: dict[str, Any], model: Any = CLAUDE) -> str:
        return provider.request_headers(Request.of(model, body)).get("anthropic-beta", "")

    assert COMPACTION[0] in betas({"compaction": {"type": "summarize"}})
    assert COMPACTION[0] in betas({"messages": [{"role": "assistant", "content": [BLOCK]}]})
    assert COMPACTION[0] not in betas({"messages": [{"role": "user", "content": '"type":"compaction"'}]})
    assert COMPACTION[0] not in betas(
        {"compaction": {"type": "summarize"}}, lookup("anthropic", "claude-haiku-4-5", {})
    )
    assert Abilities().compaction == ""


def test_the_catalog_knows_who_has_it() -> None:
    """At the vendors' own addresses, and nowhere else."""
    assert CLAUDE.abilities.compaction == "anthropic" and SOL.abilities.compaction == "openai"
    assert lookup("anthropic", "claude-opus-5-5", {"base_url": "http://elsewhere"}).abilities.compaction == ""
    assert lookup("minimax", "MiniMax-M3", {}).abilities.compaction == ""
