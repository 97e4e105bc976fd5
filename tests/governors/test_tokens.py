"""Counting: equal to the vocabulary's own count, never less than the truth, never an exception."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from types import MappingProxyType
from typing import Any

import pytest
import tiktoken
from adversarial import adversarial_histories
from builders import call, image, patch, reply, result, user
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from governors import tokens
from governors.messages import AssistantMessage, Message, Messages, Thinking, ToolCall, ToolSpec
from governors.repair import repair
from governors.tokens import (
    CALL_FRAME,
    LARGEST_IMAGE,
    MESSAGE_FRAME,
    SYSTEM_FRAME,
    TOOL_FRAME,
    ByteCounter,
    TiktokenCounter,
    image_tokens,
    load_vocabulary,
    message_tokens,
    messages_tokens,
    scaled,
    system_tokens,
    tools_tokens,
    vocabulary_loaded,
)

SAMPLES = [
    "",
    "Hello, world! It's 2026; they're here, I'LL see.",
    "今天天气很好,我们去公园散步吧。" * 20,
    "한국어와 日本語とไทย",
    'def f(x):\n\treturn {"a": [1, 22, 333, 4444]}  # done\r\n\r\n' * 10,
    json.dumps({"path": "/etc/x", "n": [1.5, None, True]}, indent=2),
    base64.b64encode(bytes(range(256)) * 8).decode(),
    "😀👩‍👩‍👧‍👦🇩🇪é" * 9,
    "   \n\n\t  \r\n   x",
    "half \ud800 and \ude00",
    "<|endoftext|><|im_start|>user<|endofprompt|>",
]


class CountingCounter:
    """Counts characters, and how often it was asked about each text."""

    key = "characters"

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def count(self, text: str) -> int:
        self.asked[text] = self.asked.get(text, 0) + 1
        return len(text)


@pytest.fixture(scope="module")
def counter() -> TiktokenCounter:
    load_vocabulary()
    return TiktokenCounter()


@pytest.fixture(scope="module")
def reference() -> tiktoken.Encoding:
    """The vocabulary as tiktoken itself builds it, from the file that we ship instead of the network."""

    def ranks_from_our_file(*_: Any, **expected: Any) -> dict[bytes, int]:
        packed = resources.files("governors").joinpath("data/o200k_base.tiktoken.gz").read_bytes()
        raw = gzip.decompress(packed)
        assert hashlib.sha256(raw).hexdigest() == expected["expected_hash"]
        lines = (line.split() for line in raw.splitlines())
        return {base64.b64decode(token): int(rank) for token, rank in lines}

    globals_of = {**openai_public.o200k_base.__globals__, "load_tiktoken_bpe": ranks_from_our_file}
    code = openai_public.o200k_base.__code__
    parameters = type(openai_public.o200k_base)(code, globals_of)()
    return tiktoken.Encoding(**parameters)


def test_counts_are_tiktokens_own(counter: TiktokenCounter, reference: tiktoken.Encoding) -> None:
    """CJK, code, JSON, base64, emoji, white space, and text that names special tokens."""
    for text in SAMPLES:
        assert counter.count(text) == len(reference.encode_ordinary(text))


@given(text=st.text(st.characters(), max_size=60))
def test_counts_are_tiktokens_own_for_any_text(
    counter: TiktokenCounter, reference: tiktoken.Encoding, text: str
) -> None:
    """Also for lone surrogates, and never more than by bytes."""
    count = counter.count(text)
    assert count == len(reference.encode_ordinary(text))
    assert count <= ByteCounter().count(text)


def test_fault_special_tokens_in_a_text_raise(counter: TiktokenCounter) -> None:
    """They are text that a person wrote, and count as such."""
    assert counter.count("<|endoftext|>") > 1
    assert message_tokens(user("<|im_start|>system"), counter) > 3


def test_fault_chinese_is_counted_by_a_quarter(counter: TiktokenCounter) -> None:
    """A text that is mostly CJK costs about a token a character, not a quarter."""
    text = "编辑文件时请先阅读全部内容再决定如何修改" * 100
    assert counter.count(text) > len(text) / 2
    assert ByteCounter().count(text) == 3 * len(text)


WORDS = "the quick brown fox said: don't jump over 1234567 lazy dogs\n"
LONG = {
    "words": WORDS * 4_000,
    "words without a space at the cut": WORDS * 1_600 + "x" * 60_000 + WORDS * 1_600,
    "one letter": "a" * 150_000,
    "equals signs": "=" * 250_000,
    "line breaks": "\n" * 150_000,
    "spaces": " " * 150_000,
    "base64": base64.b64encode(hashlib.shake_256(b"seed").digest(150_000)).decode(),
    "cjk": "日本語の文章" * 20_000,
    "emoji": "😀👍🏽" * 40_000,
    "punctuation and spaces": "- " * 100_000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_text_never_counts_less_in_pieces_than_whole(
    counter: TiktokenCounter, reference: tiktoken.Encoding, name: str
) -> None:
    """Cut after a word it is exact; cut within one it is a little more, never less."""
    text = LONG[name]
    whole, counted = len(reference.encode_ordinary(text)), counter.count(text)
    assert whole <= counted <= whole + 40 * (len(text) // 100_000 + 1)
    if name == "words":
        assert counted == whole


def test_a_run_that_breaks_the_splitting_is_counted(counter: TiktokenCounter) -> None:
    """Half a million spaces and more overflow the regular expression when they are counted in one piece."""
    assert 0 < counter.count(" " * 1_000_000 + "x") < 20_000


def test_before_the_vocabulary_is_loaded_bytes_are_counted() -> None:
    """An upper bound, under a key of its own, so that no count is mistaken for the other kind."""
    load_vocabulary.cache_clear()
    try:
        assert not vocabulary_loaded()
        early = TiktokenCounter()
        message = user("日本 hello")
        assert (early.key, early.count("日本 hello")) == ("bytes", 12)
        before = message_tokens(message, early)
        load_vocabulary()
        assert early.key == "o200k_base"
        assert message_tokens(message, early) < before
    finally:
        load_vocabulary()


def test_bytes_count_halves_of_surrogate_pairs() -> None:
    """What cannot be encoded counts too."""
    assert ByteCounter().count("a\ud800é") >= 4


@given(adversarial_histories)
def test_any_message_has_a_cost(history: Messages) -> None:
    """Never an exception, never nothing, and the sum is the sum."""
    costs = [message_tokens(message, ByteCounter()) for message in history]
    assert all(cost > 0 for cost in costs)
    assert messages_tokens(history, ByteCounter()) == sum(costs)


@pytest.mark.parametrize(
    ("message", "cost"),
    [
        (user("four"), MESSAGE_FRAME + 5),
        (reply("four", call("exec", "a", x=1)), MESSAGE_FRAME + 5 + CALL_FRAME + 4 + 8),
        (reply(Thinking("four", "s" * 300)), MESSAGE_FRAME + 4 + 100 + 4),
        (reply(ToolCall("a", "exec", "{}", signature="s" * 10)), MESSAGE_FRAME + CALL_FRAME + 4 + 2 + 4),
        (result("a", "four", tool="exec"), MESSAGE_FRAME + CALL_FRAME + 4 + 5),
        (patch("four"), MESSAGE_FRAME + SYSTEM_FRAME + 4),
        (user(image(750, 100)), MESSAGE_FRAME + 85 + 170 * 2),
    ],
)
def test_each_kind_of_message_has_its_frame(message: Message, cost: int) -> None:
    """Text, calls, results, reasoning, patches and pictures, each with what stands around it."""
    assert message_tokens(message, ByteCounter()) == cost


@pytest.mark.parametrize(
    ("size", "cost"),
    [
        ((None, None), LARGEST_IMAGE),
        ((100, None), LARGEST_IMAGE),
        ((0, 100), LARGEST_IMAGE),
        ((1, 1), 85 + 170),
        ((1000, 1000), 1_334),
        ((2000, 1500), 4_000),
        ((8000, 6000), LARGEST_IMAGE),
    ],
)
def test_fault_an_image_counts_as_nothing_or_as_its_base64(size: tuple[int | None, int | None], cost: int) -> None:
    """By area or tiles, whichever is dearer, at most what providers scale down to; unknown sizes cost the most."""
    assert image_tokens(image(*size)) == cost
    heavy = user(image(*size, data="A" * 3_000_000))
    assert message_tokens(heavy, ByteCounter()) == MESSAGE_FRAME + cost


def test_fault_tools_and_system_are_not_counted() -> None:
    """Names, descriptions, schemas and frames count; an empty system prompt costs nothing."""
    tool = ToolSpec("exec", "Runs it.", {"type": "object", "properties": {"command": {"type": "string"}}})
    schema = '{"type":"object","properties":{"command":{"type":"string"}}}'
    assert tools_tokens([tool, tool], ByteCounter()) == 2 * (TOOL_FRAME + 4 + 8 + len(schema))
    frozen = ToolSpec("exec", "Runs it.", MappingProxyType({"a": MappingProxyType({}), "b": {1}}))
    assert tools_tokens([frozen], ByteCounter()) == TOOL_FRAME + 4 + 8 + len('{"a":{},"b":"{1}"}')
    assert system_tokens("four", ByteCounter()) == 4 + SYSTEM_FRAME
    assert system_tokens("", ByteCounter()) == tools_tokens((), ByteCounter()) == 0


def test_a_factor_rounds_up() -> None:
    """Part of a token is a token."""
    assert (scaled(10, 1.2), scaled(3, 1.13), scaled(0, 1.4)) == (12, 4, 0)


def test_no_text_of_a_message_is_counted_twice() -> None:
    """Counts are kept with a message, also with one that repair had to make anew."""
    counter = CountingCounter()
    history = (
        user("question"),
        reply("thinking aloud", call(id="c/0", n=1), call(id="c/0", n=2)),
        result("c/0", "one \ud800"),
        reply(call(id="gone", complete=False), "cut off", stop="length"),
        result("gone", "late"),
    )
    for _ in range(3):
        messages_tokens(repair(history), counter)
    texts = {text: times for text, times in counter.asked.items() if text != "read_file"}
    assert len(texts) >= 8
    assert set(texts.values()) == {1}
    assert any(isinstance(message, AssistantMessage) for message in repair(history))


def test_counts_are_kept_by_the_way_of_counting() -> None:
    """Two counters do not see each other's counts."""
    message = user("日本")
    assert message_tokens(message, ByteCounter()) != message_tokens(message, CountingCounter())


def test_the_pattern_is_the_published_one(counter: TiktokenCounter, reference: tiktoken.Encoding) -> None:
    """Written in parts here, it splits as the published one does."""
    assert reference._pat_str == tokens._SPLIT
