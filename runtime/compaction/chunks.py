"""A conversation that is too long for one request, as text in pieces that each fit. Pure.

Laws: no message is left out; the order stays; a piece has at most so many tokens, and a message that alone has more is
shortened in its middle, with a note that says how to read all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from governors.messages import (
    AssistantMessage,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)

_SAID = {UserMessage: "User", AssistantMessage: "You", ToolResult: "Result", SystemPatch: "System"}


def transcript(messages: Sequence[Message]) -> tuple[str, ...]:
    """Each message as text."""
    return tuple(_told(message) for message in messages)


def pieces(texts: Sequence[str], most: int, measure: Callable[[str], int]) -> tuple[tuple[str, ...], ...]:
    """`texts` in groups of at most `most` tokens each, as `measure` gives them for a text."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    size = 0
    for text in texts:
        fitted = shortened(text, most, measure)
        tokens = measure(fitted)
        if group and size + tokens > most:
            groups.append(tuple(group))
            group, size = [], 0
        group.append(fitted)
        size += tokens
    return (*groups, tuple(group)) if group else tuple(groups)


def shortened(text: str, most: int, measure: Callable[[str], int]) -> str:
    """`text`, or its beginning and end where it has more than `most` tokens."""
    tokens = measure(text)
    kept = len(text)
    while tokens > most and kept > 0:
        kept = min(kept - 1, kept * most // (tokens + 1))
        half = kept // 2
        end = text[len(text) - half :] if half else ""
        cut = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{end}" if half else ""
        tokens = measure(cut)
        if tokens <= most:
            return cut
    return text if tokens <= most else ""


def _told(message: Message) -> str:
    said = _SAID[type(message)]
    if isinstance(message, ToolResult):
        said = f"Result of {message.tool}" + (" (an error)" if message.is_error else "")
    if isinstance(message, SystemPatch):
        return f"[{said}]\n{message.text}"
    parts = [_part(part) for part in message.content]
    return f"[{said}]\n" + "\n".join(part for part in parts if part)


def _part(part: object) -> str:
    match part:
        case Text(text):
            return text
        case ToolCall():
            return f"(calls {part.name} with {part.arguments})"
        case Thinking():
            return ""
        case Image():
            return "(a picture)"
        case _:
            return f"(a {type(part).__name__.lower()})"
