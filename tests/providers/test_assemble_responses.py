"""Responses streams, folded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text, Thinking, ToolCall, Usage
from runtime.providers.assemble_responses import ResponsesAssembler

from .response_events import MODEL, Item, called, ended, fold, response, said, stream, thought, watch

WORDS = st.text(st.sampled_from('ab \u00e9\U0001f600\\"\ud83d'), min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.text('ab\u00e9\U0001f600"', max_size=6), max_size=2).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)


@st.composite
def replies(draw: st.DrawFn) -> list[Item]:
    """A few items, as a provider may give them: reasoning before what it was for, then messages and calls."""
    items: list[Item] = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            items.append(thought(f"enc-{number}", *draw(st.lists(WORDS, max_size=2))))
        if draw(st.booleans()):
            items.append(said(*draw(st.lists(WORDS, min_size=1, max_size=2))))
        else:
            items.append(called(f"call_{number}", draw(ARGUMENTS)))
    return items


def test_items_keep_their_order_and_reasoning_its_seal() -> None:
    """The encrypted content of the finished item counts; a summary of several parts is signed at its last."""
    items = [
        thought("r1", "one", "two"), called("c1", '{"x":1}'), thought("r2"), said("I look", phase="commentary"),
        called("c2"),
    ]  # fmt: skip
    message = fold(*stream(items))
    assert message.content == (
        Thinking("one"),
        Thinking("two", "r1"),
        ToolCall("c1", "f", '{"x":1}'),
        Thinking("", "r2"),
        Text("I look", "commentary"),
        ToolCall("c2", "f", "{}"),
    )
    assert (message.stop, message.model, message.wire) == ("tool_use", "m", "openai_responses")
    assert message.usage == Usage(10, 60, 10, 20, 9, 4)


@given(replies(), st.integers(1, 5))
def test_every_way_of_telling_gives_one_message(items: list[Item], size: int) -> None:
    """With places or ids, with repetitions or without, whole or in pieces: the message is the same, and encodable."""
    whole = fold(response(items))
    assert whole.content == fold(*stream(items, size)).content
    assert whole.content == fold(*stream(items, size, indexed=False)).content
    assert whole.content == fold(*stream(items, size, telling=False)).content
    assert whole.content == fold(ended(items)).content
    repr(whole).encode()


@given(replies(), st.integers(1, 5), st.data())
def test_what_was_received_is_kept_and_shown_once(items: list[Item], size: int, data: st.DataObject) -> None:
    """Wherever the stream breaks, the message holds what was shown, no more and no less."""
    events = list(stream(items, size))
    until = data.draw(st.integers(0, len(events)))
    message, text, thinking, arguments = watch(*events[:until], cut="aborted")
    told = "".join(part.text for part in message.content if isinstance(part, Thinking))
    assert (_sure(message.text), _sure(told)) == (_sure(text), _sure(thinking))
    shown = [arguments[index] or "{}" for index in range(len(message.calls))]
    assert [_sure(call.arguments) for call in message.calls] == [_sure(text) for text in shown]
    for index, call in enumerate(message.calls):
        assert call.complete == (bool(arguments[index]) and _is_object(call.arguments))


def test_texts_are_shown_as_paragraphs_of_their_own() -> None:
    """As the message joins them; parts of a summary likewise."""
    items = [thought("r", "one", "two"), said("I look.", phase="commentary"), said("Done.", "Really.")]
    message, text, thinking, _ = watch(*stream(items))
    assert text == message.text == "I look.\n\nDone.\n\nReally."
    assert thinking == "one\n\ntwo"


def _sure(text: str) -> str:
    """Without what waits for the other half of a pair, which is in the message and not shown yet."""
    return text.replace("\ufffd", "").replace("\n\n", "")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refused"), ("max_messages", "length")]
)
def test_an_incomplete_response_says_why(reason: str, stop: str) -> None:
    """Each reason has one stop, streamed or whole, and the reply is whole as far as it goes."""
    items = [said("as far as")]
    details = {"incomplete_details": {"reason": reason}}
    for message in (
        fold(*list(stream(items))[:-1], ended(items, "incomplete", **details)),
        fold(response(items, "incomplete", **details)),
    ):
        assert (message.text, message.stop) == ("as far as", stop)


def test_a_call_that_the_limit_cut_is_incomplete() -> None:
    """It must never run."""
    items = [called("c", '{"x": "ha')]
    message = fold(
        *list(stream(items))[:-1], ended(items, "incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert message.calls == (ToolCall("c", "f", '{"x": "ha', complete=False),)


@pytest.mark.parametrize("telling", [True, False])
def test_a_refusal_is_text_and_a_stop_of_its_own(telling: bool) -> None:
    """The refusal's words are kept."""
    message = fold(*stream([said("I cannot.", kind="refusal")], telling=telling))
    assert (message.text, message.stop) == ("I cannot.", "refused")


@pytest.mark.parametrize("state", ["queued", "in_progress"])
def test_an_answer_that_comes_later_is_deferred(state: str) -> None:
    """Its calls never run."""
    assert fold(response([called("c")], state)).stop == "deferred"


@pytest.mark.parametrize(
    ("code", "status"), [("server_error", 500), ("rate_limit_exceeded", 429), ("invalid_prompt", 400), ("odd", None)]
)
def test_a_failed_response_is_a_fault(code: str, status: int | None) -> None:
    """Its code stands for a status; what came before is kept, and what was counted too."""
    error = {"code": code, "message": "no"}
    begun = list(stream([said("par")]))[:4]
    for last in (
        ended([], "failed", error=error),
        {"type": "error", "sequence_number": 7, **error},
        {"type": "error", "error": error},
        {"error": error},
    ):
        assembler = ResponsesAssembler(MODEL)
        for event in (*begun, last):
            assembler.feed(event)
        assert assembler.fault is not None
        assert assembler.fault.status == status
        assert assembler.fault.body["error"]["message"] == "no"
        assert assembler.finish("error").text == "par"
        assert not assembler.answered


def test_a_failure_without_words_is_the_servers() -> None:
    """And can be tried again."""
    assembler = ResponsesAssembler(MODEL)
    assembler.feed({"type": "response.failed", "response": {"status": "failed", "error": None}})
    assert assembler.fault is not None
    assert assembler.fault.status == 500


def test_a_place_used_again_is_another_item() -> None:
    """Some servers count every item as the first."""
    events = [
        {**event, "output_index": 0} if "output_index" in event else event for event in stream([said("a"), said("b")])
    ]
    assert fold(*events).content == (Text("a"), Text("b"))


def test_ids_that_change_with_every_event_do_no_harm() -> None:
    """The place says whose an event is."""
    events = []
    for number, event in enumerate(stream([thought("r", "hm"), called("c", '{"x":1}'), said("hello")])):
        item = {"item": {**event["item"], "id": f"i{number}"}} if "item" in event else {}
        events.append({**event, **item, **({"item_id": f"e{number}"} if "item_id" in event else {})})
    assert fold(*events).content == (Thinking("hm", "r"), ToolCall("c", "f", '{"x":1}'), Text("hello"))


def test_reasoning_in_the_open_is_thinking_without_a_seal() -> None:
    """Open models tell it all; where a summary comes beside it, the first to come counts."""
    where = {"output_index": 0, "item_id": "r"}
    message, _, shown, _ = watch(
        {"type": "response.output_item.added", **where, "item": {"type": "reasoning", "id": "r", "summary": []}},
        {"type": "response.reasoning_text.delta", **where, "content_index": 0, "delta": "hm"},
        {"type": "response.reasoning_summary_text.delta", **where, "summary_index": 0, "delta": "in short"},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "m", "content_index": 0, "delta": "ok"},
        ended([]),
    )
    assert message.content == (Thinking("hm"), Text("ok"))
    assert shown == "hm"


def test_arguments_that_were_told_wrongly_are_as_told_at_the_end() -> None:
    """Cumulative pieces, as some gateways send them, would not be JSON."""
    pieces = [
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": d} for d in ('{"x"', '{"x":1}')
    ]
    begin = {"type": "response.output_item.added", "output_index": 0, "item": {**called("c", ""), "id": "i"}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**called("c", '{"x":1}'), "id": "i"}}
    assert fold(begin, *pieces, done, ended([])).calls == (ToolCall("c", "f", '{"x":1}'),)


def test_fault_5_a_call_assembled_twice_collapses() -> None:
    """One id, one content: one call. Different calls under one id are kept, and missing ids are made up."""
    items = [called(f"c_{x}", json.dumps({"x": x})) for x in "abccd"]
    assert [call.id for call in fold(*stream(items)).calls] == ["c_a", "c_b", "c_c", "c_d"]
    items = [called(id, json.dumps({"n": n})) for n, id in enumerate(["c", "c", "", ""])]
    assert [call.id for call in fold(*stream(items)).calls] == ["c", "c", "call_2", "call_3"]


def test_fault_47_lone_surrogates_are_replaced() -> None:
    """In text, in thinking and in arguments."""
    lone = json.loads('"\\ud99c"')
    message = fold(*stream([thought("r", lone), said(lone), called("c", '{"x":"\\ud99c"}')]))
    assert message.content[:2] == (Thinking("\ufffd", "r"), Text("\ufffd"))
    assert json.loads(message.calls[0].arguments) == {"x": "\ufffd"}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "response.news_to_come", "output_index": 9},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.output_item.done", "output_index": "x", "item": {"type": 3}},
        {"type": "response.output_item.done", "output_index": 5, "item": {"type": "web_search_call", "content": "x"}},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.completed", "response": None},
        {"type": "keepalive", "sequence_number": 3},
    ],
)
def test_odd_events_are_passed_over(event: dict[str, Any]) -> None:
    """They say nothing, and nothing breaks."""
    assert fold(event, *stream([said("hi")])).content == (Text("hi"),)


def test_what_is_not_answered_is_not_ended() -> None:
    """Only a finished response says so."""
    assembler = ResponsesAssembler(MODEL)
    *events, last = stream([said("hi")])
    for event in events:
        assembler.feed(event)
    assert not assembler.answered and not assembler.ended
    assembler.feed(last)
    assert assembler.answered and assembler.ended
