"""Chat Completions streams of many servers, folded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text, Thinking, Usage
from runtime.providers.assemble import scrub_escapes
from runtime.providers.assemble_chat import ChatAssembler

from .chat_chunks import MODEL, A, call, delta, fold, whole


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "refused"), ("model_length", "length"), ("x", "stop")],
)
def test_finish_reasons(reason: str, stop: str) -> None:
    """Each reason has one stop; an unknown one is an ordinary end."""
    assert fold(delta(content="hi"), delta(reason)).stop == stop


def test_stop_beside_calls_is_tool_use_and_tool_use_without_calls_is_stop() -> None:
    """What came says more than the reason."""
    assert fold(delta(tool_calls=[whole(A, 0)]), delta("stop")).stop == "tool_use"
    assert fold(delta(content="hi"), delta("tool_calls")).stop == "stop"


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking(key: str) -> None:
    """Both names of reasoning, and both at once count once."""
    message = fold(delta(**{key: "hm"}), delta(reasoning="!", reasoning_content="!"), delta("stop", content="ok"))
    assert message.content == (Thinking("hm!"), Text("ok"))


def test_content_as_a_list_of_parts() -> None:
    """Mistral nests reasoning in the content."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "ok"}]
    assert fold(delta(content=parts), delta("stop")).content == (Thinking("hm"), Text("ok"))


def test_a_refusal_is_text_and_a_stop_of_its_own() -> None:
    """The refusal's words are kept."""
    message = fold(delta(refusal="I can"), delta(refusal="not."), delta("stop"))
    assert (message.text, message.stop) == ("I cannot.", "refused")


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4},
        {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4, "prompt_tokens_details": None},
    ],
)
@pytest.mark.parametrize("place", ["top", "choice", "groq"])
def test_usage_wherever_it_stands(usage: dict[str, Any], place: str) -> None:
    """The prompt's count includes the cached tokens; `plain` does not."""
    chunk: dict[str, Any] = {"choices": [], "usage": usage}
    if place == "choice":
        chunk = {"choices": [{"index": 0, "delta": {}, "usage": usage}]}
    if place == "groq":
        chunk = {"choices": [], "x_groq": {"usage": usage}}
    assert fold(delta("stop", content="hi"), chunk).usage == Usage(plain=6, cache_read=4, output=2)


def test_a_whole_message_is_taken_too() -> None:
    """A server that does not stream answers with `message`."""
    answer = {
        "choices": [{"index": 0, "message": {"content": "hi", "tool_calls": [whole(A)]}, "finish_reason": "stop"}]
    }
    assert fold(answer).content == (Text("hi"), A)


@pytest.mark.parametrize(
    "chunk", [{"error": {"message": "no", "code": 500}}, {"object": "error", "message": "no", "code": 500}]
)
def test_an_error_in_the_stream_is_a_fault(chunk: dict[str, Any]) -> None:
    """With its status, where it names one."""
    assembler = ChatAssembler(MODEL)
    assembler.feed(chunk)
    assert assembler.fault is not None
    assert assembler.fault.status == 500


@pytest.mark.parametrize(
    "chunk", [{}, {"choices": None}, {"choices": [None, 3]}, {"choices": [{"delta": None}]}, {"usage": []}]
)
def test_odd_chunks_are_passed_over(chunk: dict[str, Any]) -> None:
    """Keep-alives and empty chunks say nothing."""
    assert fold(chunk, delta("stop", content="hi")).text == "hi"


def test_a_surrogate_pair_split_between_chunks_is_joined() -> None:
    """An emoji may arrive as two halves, in two chunks, also inside arguments."""
    first, second = json.loads('"\\ud83d"'), json.loads('"\\ude00"')
    message = fold(
        delta(content="a" + first), delta(content=second + "b"),
        delta(tool_calls=[call('{"x":"' + first, name="f", id="a", index=0)]),
        delta(tool_calls=[call(second + '"}', index=0)]),
        delta("tool_calls"),
    )  # fmt: skip
    assert message.text == "a😀b"
    assert message.calls[0].arguments == '{"x":"😀"}'


def test_fault_47_a_lone_surrogate_from_the_model_is_replaced() -> None:
    """In text as in arguments, raw or escaped, so that every later request can be encoded."""
    lone = json.loads('"\\ud99c"')
    entry = call('{"x":"\\ud99c \\ud83d\\ude00 \\\\ud99c"}', name="f", id="a", index=0)
    message = fold(delta(content="a" + lone), delta(tool_calls=[entry]), delta("stop"))
    assert message.text == "a\ufffd"
    assert json.loads(message.calls[0].arguments) == {"x": "\ufffd 😀 \\ud99c"}


@given(st.lists(st.sampled_from(["\\ud83d", "\\ude00", "\\\\", "x", "\\n", "\\u0041", '\\"']), max_size=8))
def test_scrubbed_arguments_decode_to_encodable_text(parts: list[str]) -> None:
    """Whatever escapes stand beside one another, the decoded value can be sent, and only halves changed."""
    text = f'{{"x":"{"".join(parts)}"}}'
    cleaned = json.loads(scrub_escapes(text))["x"]
    cleaned.encode()
    before = json.loads(text)["x"]
    assert cleaned == before.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
