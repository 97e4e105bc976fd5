"""Messages streams, folded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from governors.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from governors.wire.base import Abilities
from runtime.providers.assemble_anthropic import AnthropicAssembler
from runtime.providers.base import CallPiece, ModelInfo, Price, TextPiece, ThinkingPiece

MODEL = ModelInfo("m", "p", "anthropic", 1000, 100, Abilities(), price=Price(1, 1, 1, 1, 1))


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(reason: str, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def fold(*events: dict[str, Any], cut: Any = None) -> AssistantMessage:
    assembler = AnthropicAssembler(MODEL)
    for event in events:
        assembler.feed(event)
    return assembler.finish(cut)


def test_interleaved_blocks_keep_their_order() -> None:
    """Thinking, text and calls come out as they came, signatures with their thinking."""
    message = fold(
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="SIG"),
        start(1, type="redacted_thinking", data="XXX"),
        start(2, type="text", text="I "),
        delta(2, "text_delta", text="look"),
        start(3, type="tool_use", id="toolu_1", name="f", input={}),
        delta(3, "input_json_delta", partial_json=""),
        delta(3, "input_json_delta", partial_json='{"x":'),
        delta(3, "input_json_delta", partial_json="1}"),
        end("tool_use", output_tokens=9),
        {"type": "message_stop"},
    )
    assert message.content == (
        Thinking("hm", "SIG"),
        Thinking("", "XXX", redacted=True),
        Text("I look"),
        ToolCall("toolu_1", "f", '{"x":1}'),
    )
    assert message.stop == "tool_use"
    assert (message.model, message.wire) == ("m", "anthropic")


def test_thinking_without_text_keeps_its_signature() -> None:
    """A model may hide its reasoning and still want it back."""
    message = fold(start(0, type="thinking", thinking=""), delta(0, "signature_delta", signature="S"), end("end_turn"))
    assert message.content == (Thinking("", "S"),)


def test_pieces_are_shown_as_they_come() -> None:
    """One piece for each delta that says something."""
    assembler = AnthropicAssembler(MODEL)
    events = [
        start(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"),
        start(1, type="text", text=""), delta(1, "text_delta", text="a"),
        start(2, type="tool_use", id="t", name="f", input={}), delta(2, "input_json_delta", partial_json="{}"),
        {"type": "ping"}, {"type": "content_block_stop", "index": 2}, {"type": "news_to_come"},
    ]  # fmt: skip
    pieces = [piece for event in events for piece in assembler.feed(event)]
    assert pieces == [ThinkingPiece("hm"), TextPiece("a"), CallPiece(0, "f", ""), CallPiece(0, "f", "{}")]


def test_usage_tells_the_two_kinds_of_cache_writes_apart() -> None:
    """They cost 1.25 and 2 times a plain token."""
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 1,
    }
    message = fold(
        {"type": "message_start", "message": {"usage": usage}},
        start(0, type="text", text="hi"),
        end("end_turn", output_tokens=8, input_tokens=None, output_tokens_details={"thinking_tokens": 5}),
    )
    assert message.usage == Usage(3, 100, 10, 20, 8, 5)


def test_cache_writes_without_a_split_are_the_short_kind() -> None:
    """Compatible servers send the sum only."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 30}
    assert fold({"type": "message_start", "message": {"usage": usage}}, end("end_turn")).usage == Usage(3, 0, 30, 0)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("pause_turn", "deferred"),
    ],
)
def test_stop_reasons(reason: str, stop: str) -> None:
    """Each of the API's reasons has one stop."""
    assert fold(start(0, type="text", text="x"), end(reason)).stop == stop


@pytest.mark.parametrize("cut", ["aborted", None])
def test_a_call_that_was_cut_is_incomplete(cut: Any) -> None:
    """By a broken stream or by the output limit."""
    call = start(0, type="tool_use", id="t", name="f", input={})
    message = fold(call, delta(0, "input_json_delta", partial_json='{"x": "ha'), end("max_tokens"), cut=cut)
    assert message.calls == (ToolCall("t", "f", '{"x": "ha', complete=False),)


def test_input_that_comes_whole_with_the_block() -> None:
    """Compatible servers may not stream it."""
    message = fold(start(0, type="tool_use", id="t", name="f", input={"x": "é"}), end("tool_use"))
    assert message.calls[0].arguments == '{"x": "é"}'


def test_fault_5_a_call_assembled_twice_collapses() -> None:
    """`a b c c d` with one id and one content twice is four calls."""
    blocks = [start(n, type="tool_use", id=f"t_{x}", name="f", input={"x": x}) for n, x in enumerate("abccd")]
    assert [call.id for call in fold(*blocks, end("tool_use")).calls] == ["t_a", "t_b", "t_c", "t_d"]


def test_different_calls_under_one_id_are_kept_and_missing_ids_made_up() -> None:
    """Nothing a model asked for is lost here."""
    blocks = [start(n, type="tool_use", id=id, name="f", input={"n": n}) for n, id in enumerate(["t", "t", "", ""])]
    assert [call.id for call in fold(*blocks, end("tool_use")).calls] == ["t", "t", "call_2", "call_3"]


def test_lone_surrogates_are_replaced() -> None:
    """In text, in thinking and in arguments."""
    lone = json.loads('"\\ud99c"')
    message = fold(
        start(0, type="text", text=lone), start(1, type="tool_use", id="t", name="f", input={}),
        delta(1, "input_json_delta", partial_json='{"x":"\\ud99c"}'), end("tool_use"),
    )  # fmt: skip
    assert message.text == "\ufffd"
    assert json.loads(message.calls[0].arguments) == {"x": "\ufffd"}


@pytest.mark.parametrize(("kind", "status"), [("overloaded_error", 529), ("rate_limit_error", 429), ("odd", None)])
def test_an_error_event_is_a_fault(kind: str, status: int | None) -> None:
    """Its type stands for a status."""
    assembler = AnthropicAssembler(MODEL)
    assembler.feed({"type": "error", "error": {"type": kind, "message": "no"}})
    assert assembler.fault is not None
    assert assembler.fault.status == status


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": None},
    ],
)
def test_odd_events_are_passed_over(event: dict[str, Any]) -> None:
    """They say nothing, and nothing breaks."""
    assert fold(event, end("end_turn")).content == ()
