"""Content of messages and arguments of calls: never empty, always JSON, as written wherever it can be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from adversarial import ARGUMENTS
from builders import call, image, patch, reply, result, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import argument_texts, json_values

from governors.arguments import MAX_DEPTH, legal_arguments, parse_object
from governors.content import legal_patch, legal_reply, legal_result, legal_user
from governors.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult


def legal(message: Message) -> Message:
    if isinstance(message, AssistantMessage):
        return legal_reply(message)
    if isinstance(message, ToolResult):
        return legal_result(message)
    return legal_user(message)  # type: ignore[arg-type] # no patches here


@pytest.mark.parametrize(
    ("message", "mended"),
    [
        (user(), user("(empty message)")),
        (user("", " \n"), user("(empty message)")),
        (reply(""), reply("(no text)")),
        (reply("", call()), reply(call())),
        (result("a", ""), result("a", "(no output)")),
        (ToolResult("a", "exec", ()), ToolResult("a", "exec", (Text("(no output)"),))),
        (user("", image()), user(image())),
        (reply(Thinking("", "signed"), ""), reply(Thinking("", "signed"))),
        (user("half \ud800", "whole"), user("half \ufffd", "whole")),
        (reply(call(" na\ud800me ")), reply(call("na\ufffdme"))),
    ],
)
def test_fault_empty_text_is_refused(message: Message, mended: Message) -> None:
    """A visible constant where nothing was said, nothing beside a call, a thought or a picture."""
    assert legal(message) == mended
    assert legal(legal(message)) is legal(message)


@given(st.sampled_from([user("a", image()), reply("a", Thinking("", "s"), call()), result("a"), result("a", image())]))
def test_legal_messages_come_back_as_the_same_object(message: Message) -> None:
    """No false alarm, the first time or from memory."""
    assert legal(message) is message
    assert legal(message) is message


def test_patches_are_mended_too() -> None:
    """A system patch has text that UTF-8 can hold, and some."""
    assert legal_patch(patch("half \ud800")) == patch("half \ufffd")
    assert legal_patch(patch(" ")) == patch("(empty message)")
    whole = patch("whole")
    assert legal_patch(whole) is whole


@given(st.one_of(st.sampled_from(ARGUMENTS), st.text(st.characters()), json_values.map(json.dumps)))
def test_arguments_are_always_a_clean_object(text: str) -> None:
    """Whatever the model wrote: JSON of an object, encodable, and stable when judged again."""
    made = legal_arguments(text)
    value = parse_object(made)
    assert value is not None
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    assert legal_arguments(made) is made


@given(argument_texts())
def test_arguments_that_are_an_object_stay_as_written(text: str) -> None:
    """Byte for byte, as the same object."""
    assert legal_arguments(text) is text


@given(argument_texts(), st.data())
def test_arguments_that_were_cut_off_are_never_completed(text: str, data: st.DataObject) -> None:
    """No strict prefix of an object becomes another object: it stays visible as it was."""
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    if cut.strip():
        assert json.loads(legal_arguments(cut)) == {"unparsed": cut}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n", {}),
        ('{"path": "C:\\path\\d+"}', {"path": "C:\\path\\d+"}),
        ('{"a": "\\\\d \\" \\u00e9 \\uzz"}', {"a": '\\d " é \\uzz'}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        ('{"n": NaN}', {"unparsed": '{"n": NaN}'}),
        ('{"n": 1e999}', {"unparsed": '{"n": 1e999}'}),
        ("[1]", {"unparsed": "[1]"}),
        ("null", {"unparsed": "null"}),
        ('{"recap": "', {"unparsed": '{"recap": "'}),
        ("raw \ud800", {"unparsed": "raw \ufffd"}),
    ],
)
def test_fault_invalid_arguments_run_as_none(text: str, value: dict[str, Any]) -> None:
    """Slips with one reading are mended; what cannot be read is shown to the model, never taken for `{}`."""
    assert json.loads(legal_arguments(text)) == value


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('{"a": "\\ud99c"}', '{"a": "\ufffd"}'),
        ('{"\\ude00": 1}', '{"\ufffd": 1}'),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}'),
        ('{"a": "\\\\ud99c"}', '{"a": "\\\\ud99c"}'),
        ('{"a": "raw \ud99c"}', '{"a": "raw \ufffd"}'),
        ('{"a": "\ud83d\\ude00"}', '{"a": "😀"}'),
        ('{"a": "\ud99c", "a": "\\ud83d\\ude00"}', '{"a": "😀"}'),
    ],
)
def test_fault_the_model_emits_a_lone_surrogate_in_arguments(text: str, made: str) -> None:
    """Raw or escaped, in keys or values; escapes that are whole stay as they were written."""
    assert legal_arguments(text) == made


def test_arguments_nested_too_deeply_stay_visible() -> None:
    """As deep as providers take is fine; deeper is shown as text, at any depth."""
    for depth, fits in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (100_000, False)):
        text = '{"a":' * depth + "1" + "}" * depth
        assert (legal_arguments(text) == text) is fits


def test_a_call_keeps_its_arguments_object_when_only_its_name_is_mended() -> None:
    """What was fine about a call stays."""
    made = legal_reply(reply(ToolCall("a", " exec ", '{"a":1}')))
    assert made.calls == (ToolCall("a", "exec", '{"a":1}'),)


def test_a_calls_signature_stays_unless_it_cannot_be_sent() -> None:
    """It goes back unchanged, also with a call that was mended, or not at all."""
    made = legal_reply(reply(ToolCall("a", "exec ", "", signature="signed"), ToolCall("b", "exec", signature="\ud800")))
    assert made.calls == (ToolCall("a", "exec", signature="signed"), ToolCall("b", "exec"))
    whole = reply(ToolCall("a", "exec", signature="signed"))
    assert legal_reply(whole) is whole
