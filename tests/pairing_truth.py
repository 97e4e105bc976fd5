"""Whether the results of a story stand where they belong, by the numbers in their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from governors.messages import AssistantMessage, Message, ToolResult, UserMessage
from tests.growing import Story, number_of


def mispaired(told: Story, kept: Sequence[Message]) -> Iterator[str]:
    """Results that stand at another call's place, twice, or nowhere though their call is there."""
    calls: list[Any] = []
    seen: dict[int, int] = {}
    for message in kept:
        if isinstance(message, AssistantMessage):
            calls = list(message.calls)
        elif isinstance(message, ToolResult):
            call = calls.pop(0)
            number = told.truth.get(_raw_text(told, message))
            if number is not None and number != number_of(call):
                yield f"result {number} answers call {number_of(call)}"
            if number is not None:
                seen[number] = seen.get(number, 0) + 1
        elif isinstance(message, UserMessage) and message.content and message.text.startswith("[late result"):
            found = _numbers(message.text)
            if found is not None:
                seen[found] = seen.get(found, 0) + 1
                if told.kind == "unique" and f"call id_{found}]" not in message.text:
                    yield f"late result {found} names another call: {message.text[:80]}"
    yield from (f"result {number} is there {count} times" for number, count in seen.items() if count > 1)


def _raw_text(told: Story, message: ToolResult) -> str:
    found = _numbers(message.text)
    return next((text for text, number in told.truth.items() if number == found), "") if found is not None else ""


def _numbers(text: str) -> int | None:
    start = text.find("result ", 1 if text.startswith("[") else 0)
    start = text.find("\n\nresult ") + 2 if text.startswith("[late") else start
    word = text[start + 7 :].split(" ", 1)[0] if start >= 0 else ""
    return int(word) if word.isdigit() else None
