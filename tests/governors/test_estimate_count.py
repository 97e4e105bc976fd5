"""Counting a request for an estimate: near the vocabulary's own count from both sides, measured where it can be."""

from __future__ import annotations

import base64
import json
import random

import pytest
from builders import call, image, patch, reply, result, user
from hypothesis import given
from strategies import histories

from governors.estimate import Estimator
from governors.estimate_count import Count, fixed_count, message_count, messages_count, reply_tokens
from governors.messages import AssistantMessage, Message, Messages, Text, Thinking, ToolCall, ToolSpec, Usage
from governors.tokens import (
    LARGEST_IMAGE,
    MESSAGE_FRAME,
    ByteCounter,
    TiktokenCounter,
    load_vocabulary,
    message_tokens,
    messages_tokens,
)

CODE = "async def run(self, *, limit: int = 3) -> None:\n    for each in self.items[:limit]:\n        print(each)\n\n"
TEXTS = {
    "English": "The log is the truth, and what a model sees is derived from it. Every change is an entry. " * 120,
    "Chinese": "编辑文件时请先阅读全部内容,再决定如何修改。今天天气很好,我们去公园散步吧。" * 120,
    "Japanese": "ファイルを編集する前に、全体を読んでから変更方法を決めてください。" * 120,
    "Korean": "파일을 편집하기 전에 전체 내용을 읽고 수정 방법을 결정하세요. " * 120,
    "code": CODE * 120,
    "JSON": json.dumps([{"id": n, "path": f"/srv/{n * 7919}", "ok": None, "x": n / 7} for n in range(200)], indent=1),
    "base64": base64.b64encode(random.Random(7).randbytes(9_000)).decode(),
}
MODEL = "claude-a"


@pytest.fixture(scope="module")
def counter() -> TiktokenCounter:
    load_vocabulary()
    return TiktokenCounter()


def carriers(text: str) -> list[Message]:
    """The messages that can carry a text."""
    return [
        user(text),
        reply(text),
        reply(Thinking(text)),
        reply(ToolCall("call_1", "exec", text)),
        result("call_1", text),
        patch(text),
    ]


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_estimates_are_tight_from_both_sides(kind: str, counter: TiktokenCounter) -> None:
    """Never under the vocabulary's own count, and at most 2 % over it, wherever the text stands."""
    exact = len(load_vocabulary().encode_ordinary(TEXTS[kind]))
    assert exact > 1_500
    for message in carriers(TEXTS[kind]):
        estimate = Estimator(1.0, counter.key).estimate(message_count(message, counter, MODEL))
        assert exact <= estimate <= exact * 1.02


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_without_a_vocabulary_bytes_bound(kind: str, counter: TiktokenCounter) -> None:
    """Never under the exact count, at most six times as much, and never more for the family's factor."""
    exact = len(load_vocabulary().encode_ordinary(TEXTS[kind]))
    for message in carriers(TEXTS[kind]):
        estimate = Estimator(1.45, ByteCounter.key).estimate(message_count(message, ByteCounter(), MODEL))
        assert exact <= estimate <= exact * 6


def test_every_part_costs_something(counter: TiktokenCounter) -> None:
    """Parts without text, too: an empty text, hidden reasoning, a picture of unknown size, a call without arguments."""
    empty: list[Message] = [
        user(""),
        reply(Thinking("", "c2ln", redacted=True)),
        reply(call()),
        result("call_1", ""),
        patch(""),
    ]
    for message in empty:
        assert message_count(message, counter, MODEL).counted > MESSAGE_FRAME
    assert message_count(user(image()), counter, MODEL).pictures == LARGEST_IMAGE
    assert message_count(user(image(), image()), counter, MODEL).scaled(4.0) < 3 * LARGEST_IMAGE


@given(history=histories())
def test_a_count_is_the_counters_own(history: Messages) -> None:
    """Frames and pictures are shares of what `tokens` counts, and sums are sums."""
    counter = ByteCounter()
    for message in history:
        count = message_count(message, counter, "nobody")
        assert count.counted + count.pictures == message_tokens(message, counter)
        assert 0 < count.frames <= count.counted
        assert count.possible
    total = messages_count(history, counter, "nobody")
    assert total == sum((message_count(each, counter, "nobody") for each in history), Count())
    assert total.counted + total.pictures == messages_tokens(history, counter)


def test_a_reply_is_worth_its_own_usage(counter: TiktokenCounter) -> None:
    """To the model that gave it; to others it is counted."""
    measured = reply(call(path="x"), model=MODEL, usage=Usage(plain=9, output=69))
    assert message_count(measured, counter, MODEL) == Count(MESSAGE_FRAME, 69, MESSAGE_FRAME)
    assert message_count(measured, counter, "gpt-a").known == 0


def test_a_usage_below_its_text_is_not_believed(counter: TiktokenCounter) -> None:
    """Some hosts report an output of 0 or 1."""
    short = reply("word " * 100, model=MODEL, usage=Usage(plain=9, output=1))
    assert message_count(short, counter, MODEL).counted > 100


def test_signatures_are_no_text(counter: TiktokenCounter) -> None:
    """A long signature does not make a measured reply look too small."""
    signed = reply(Thinking("so", "c2ln" * 400), call("exec"), model=MODEL, usage=Usage(plain=9, output=60))
    assert message_count(signed, counter, MODEL).known == 60
    signature = ToolCall("call_1", "exec", "{}", signature="c2ln" * 400)
    called = AssistantMessage((Text("so"), signature), "tool_use", MODEL, usage=Usage(plain=9, output=60, reasoning=40))
    assert message_count(called, counter, MODEL).known == 60


def test_reasoning_that_a_reply_does_not_hold_is_not_sent_again() -> None:
    """It was paid for once; a reply that holds reasoning sends it again."""
    usage = Usage(plain=9, output=500, reasoning=400)
    assert reply_tokens(reply("yes", usage=usage)) == 100
    assert reply_tokens(reply(Thinking("hm"), "yes", usage=usage)) == 500
    assert reply_tokens(reply("yes", usage=Usage(output=5, reasoning=9))) == 0
    assert reply_tokens(reply("yes")) == 0


def test_system_and_tools_are_counted(counter: TiktokenCounter) -> None:
    """With a frame each; nothing costs nothing."""
    tool = ToolSpec("exec", "Run a command.", {"type": "object"})
    count = fixed_count("You are calm.", [tool, tool], counter)
    assert count.counted > count.frames == 8 + 2 * 16
    assert fixed_count("", [], counter) == Count()
