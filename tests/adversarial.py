"""Histories that something went wrong with.

`adversarial_histories` is anything at all: ids reused, empty, blank, too long, illegal; results doubled, orphaned,
late, before their call; replies that broke off with half-streamed calls; text that UTF-8 cannot hold; arguments that
are no JSON. `damaged` starts from a conversation that was whole, so that a test knows which result belongs to which
call.
`faults_of` says what keeps a list of messages from being legal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from builders import call, image, patch, reply, result, user
from hypothesis import strategies as st

from governors.messages import (
    UNFINISHED,
    AssistantMessage,
    Message,
    Messages,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)

PATTERNS = [r"[A-Za-z0-9_-]{1,64}", r"[A-Za-z0-9_-]{1,40}", r"[A-Za-z0-9]{9}", r"call_[A-Za-z0-9]{24}"]
patterns = st.sampled_from(PATTERNS)

IDS = [
    "call_0",
    "call_0",
    "call_1",
    " call_0 ",
    "abcdefghi",  # legal for Mistral
    "call_0-2-0",  # what a renamed call_0 may be called
    "",
    "   ",
    "chatcmpl-tool-9f0c2f7d5c1e4d0b8a7e6f5d4c3b2a19",
    "t" * 65,
    "functions.read:0",
    "идентификатор",
    "half\ud800",
]
ARGUMENTS = [
    "{}",
    '{"path": "x"}',
    '{"path": "x"}',
    "",
    "  ",
    '{"recap": "',
    "null",
    "[1]",
    '"text"',
    "{'single': 1}",
    '{"n": NaN}',
    '{"n": 1e999}',
    '{"n": ' + "9" * 5000 + "}",
    '{"a": ' * 150 + "1" + "}" * 150,
    '{"a":' * 3_000,
    '{"path": "C:\\path"}',
    '{"text": "two\nlines"}',
    '{"text": "\\ud99c"}',
    '{"text": "\\ud83d\\ude00"}',
    '{"\\ude00": 1}',
    '{"text": "raw \ud99c"}',
    '{"path": 1, "path": 2}',
]
TEXTS = ["", " ", "\n\t", "hello", "ok", "ok", "日本語", "<|endoftext|>", "high \ud83d", "\ude00 low", "\ud83d\ude00"]

texts = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(), max_size=6))
user_parts = st.one_of(texts.map(Text), texts.map(Text), st.just(image()))
thinking = st.builds(
    Thinking, texts, st.one_of(st.none(), st.sampled_from(["", "signed", "si\ud800gned"])), st.booleans()
)
tool_calls = st.builds(
    ToolCall,
    st.sampled_from(IDS),
    st.sampled_from(["read_file", "read_file", "exec", "", " ", "na\ud800me"]),
    st.sampled_from(ARGUMENTS),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([None, None, "signed", "si\ud800gned"]),
)
replies = st.builds(
    AssistantMessage,
    st.lists(st.one_of(texts.map(Text), thinking, tool_calls, tool_calls, tool_calls), max_size=5).map(tuple),
    st.sampled_from(["stop", "tool_use", "tool_use", "length", *sorted(UNFINISHED)]),
)
results = st.builds(
    ToolResult,
    st.sampled_from(IDS),
    st.sampled_from(["read_file", "", "to\ud800ol"]),
    st.lists(user_parts, max_size=2).map(tuple),
    st.booleans(),
    st.sampled_from([False, False, True]),
)
messages = st.one_of(
    replies,
    replies,
    results,
    results,
    st.lists(user_parts, max_size=2).map(lambda parts: UserMessage(tuple(parts))),
    texts.map(SystemPatch),
)
adversarial_histories = st.lists(messages, max_size=14).map(tuple)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A whole conversation with unique ids. Call number n has the argument n and the result text `result n`."""
    history: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        history.append(user(f"question {number}"))
        for _ in range(draw(st.integers(0, 3))):
            numbers = range(number, number := number + draw(st.integers(1, 3)))
            history.append(reply(*(call(id=f"id_{each}", n=each) for each in numbers)))
            history += [result(f"id_{each}", f"result {each}") for each in numbers]
        history.append(reply(f"answer {number}"))
    return history


def restart_ids(history: list[Message]) -> list[Message]:
    """As relays do it: the calls of every reply are call_0, call_1, ..., and so are their results."""
    names: dict[str, str] = {}
    for message in history:
        if isinstance(message, AssistantMessage):
            names |= {each.id: f"call_{place}" for place, each in enumerate(message.calls)}
    return [_renamed(message, names) for message in history]


def _renamed(message: Message, names: dict[str, str]) -> Message:
    if isinstance(message, ToolResult):
        return result(names[message.call_id], *message.content)
    if isinstance(message, AssistantMessage):
        parts = (
            ToolCall(names[part.id], part.name, part.arguments) if isinstance(part, ToolCall) else part
            for part in message.content
        )
        return reply(*parts)
    return message


@st.composite
def interrupted(draw: st.DrawFn, history: list[Message]) -> list[Message]:
    """With input that was steered in, and patches, at any place."""
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(1, len(history)))
        between: Message = draw(st.sampled_from([user("steered in"), patch()]))
        history = [*history[:place], between, *history[place:]]
    return history


def is_result(message: Message) -> bool:
    return isinstance(message, ToolResult)


@st.composite
def damaged(draw: st.DrawFn, history: list[Message], *, drop: bool, double: bool, move: bool) -> list[Message]:
    """With results dropped, doubled, or moved to any place."""
    found = [message for message in history if is_result(message)]
    kinds = [kind for kind, wanted in (("drop", drop), ("double", double), ("move", move)) if wanted]
    for target in draw(st.lists(st.sampled_from(found), unique_by=id)) if found else []:
        kind = draw(st.sampled_from(kinds))
        rest = history if kind == "double" else [message for message in history if message is not target]
        if kind != "drop":
            to = draw(st.integers(0, len(rest)))
            rest = [*rest[:to], target, *rest[to:]]
        history = rest
    return history


@st.composite
def shuffled_steps(draw: st.DrawFn, history: list[Message], *, drop: bool, double: bool) -> list[Message]:
    """Each step's results in any order, some dropped or doubled; none leaves its step."""
    out: list[Message] = []
    for message in history:
        if is_result(message) and drop and draw(st.booleans()):
            continue
        out.append(message)
        if is_result(message):
            start = max(place for place, each in enumerate(out) if isinstance(each, AssistantMessage)) + 1
            tail = out[start:] + ([message] if double and draw(st.booleans()) else [])
            out[start:] = draw(st.permutations(tail))
    return out


def answers_of(messages: Messages) -> dict[int, ToolResult]:
    """For a legal list of numbered calls: the number of each call -> its result."""
    answers = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for offset, each in enumerate(message.calls, 1):
                answer = messages[index + offset]
                assert isinstance(answer, ToolResult)
                answers[json.loads(each.arguments)["n"]] = answer
    return answers


def faults_of(messages: Messages, pattern: str = PATTERNS[0]) -> list[str]:
    """What keeps `messages` from being legal: pairing, ids, empty content, text, arguments, unfinished replies."""
    faults: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        found: list[str] = []
        if isinstance(message, ToolResult):
            if not waiting or waiting.pop(0) != message.call_id:
                found.append(f"result {message.call_id!r} out of place")
        elif waiting:
            found.append(f"calls without result: {waiting}")
            waiting = []
        if isinstance(message, AssistantMessage):
            if message.stop in UNFINISHED:
                found.append(f"a reply that ended {message.stop}")
            for each in message.calls:
                if each.id in seen or not re.fullmatch(pattern, each.id):
                    found.append(f"id {each.id!r} repeated or illegal")
                seen.add(each.id)
                waiting.append(each.id)
                found += _call_faults(each)
        faults += [f"{index}: {what}" for what in (*found, *_content_faults(message))]
    return faults + ([f"end: calls without result: {waiting}"] if waiting else [])


def _call_faults(each: ToolCall) -> Iterator[str]:
    if not each.complete or not each.name.strip():
        yield "a call that was cut off or has no name"
    try:
        value = json.loads(each.arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        yield f"arguments {each.arguments[:60]!r}"
    elif not _is_clean(json.dumps(value, ensure_ascii=False)):
        yield "arguments hide a lone surrogate"


def _content_faults(message: Message) -> Iterator[str]:
    parts: tuple[Any, ...] = (Text(message.text),) if isinstance(message, SystemPatch) else message.content
    if not parts:
        yield "no content"
    for part in parts:
        if isinstance(part, Text) and not part.text.strip():
            yield "empty text"
        for name in ("text", "signature", "name", "arguments"):
            if not _is_clean(getattr(part, name, None) or ""):
                yield f"a lone surrogate in {name}"


def _is_clean(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
