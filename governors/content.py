"""Legal content for each kind of message: no empty text, no lone surrogates, arguments that are JSON objects.

Each function returns the same object when nothing was wrong. The texts that stand for nothing are constants, so
that what was sent once never changes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeVar

from .messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, UserMessage, remember
from .scrub import may_hide_surrogate, scrub

EMPTY_MESSAGE = "(empty message)"
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"

Part = TypeVar("Part", Text, Image, Thinking, ToolCall)
_Carrier = TypeVar("_Carrier", UserMessage, AssistantMessage, ToolResult)


def legal_user(message: UserMessage) -> UserMessage:
    return remember(message, "legal", lambda: _with_content(message, message.content, EMPTY_MESSAGE)) or message


def legal_result(message: ToolResult) -> ToolResult:
    return remember(message, "legal", lambda: _with_content(message, message.content, NO_OUTPUT)) or message


def legal_reply(message: AssistantMessage) -> AssistantMessage:
    return remember(message, "legal", lambda: _with_content(message, message.content, NO_TEXT)) or message


def legal_arguments(text: str) -> str:
    """JSON text of an object, whatever the model wrote: `text` itself when it is one.

    What cannot be read as an object stays visible to the model under the key `unparsed`.
    """
    if not text.strip():
        return "{}"
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return json.dumps({"unparsed": scrub(text)}, ensure_ascii=False)
    if may_hide_surrogate(text):
        return _without_surrogates(text, value)
    return scrub(text)


def _with_content(message: _Carrier, content: tuple[Any, ...], placeholder: str) -> _Carrier | None:
    """`message` with legal parts; None when it was legal (a memo must not refer to its own message)."""
    legal = tuple(_legal_part(part) for part in content if not _is_empty(part))
    if not legal:
        legal = (Text(placeholder),)
    if len(legal) == len(content) and all(a is b for a, b in zip(legal, content, strict=True)):
        return None
    return replace(message, content=legal)


def _is_empty(part: Any) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _legal_part(part: Part) -> Part:
    match part:
        case Text():
            text = scrub(part.text)
            return part if text is part.text else replace(part, text=text)
        case Thinking():
            text = scrub(part.text)
            return part if text is part.text else replace(part, text=text)
        case ToolCall():
            name, arguments = scrub(part.name.strip()), legal_arguments(part.arguments)
            if name == part.name and arguments == part.arguments:
                return part
            return replace(part, name=name, arguments=arguments)
        case Image():
            return part


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _without_surrogates(text: str, value: dict[str, Any]) -> str:
    dumped = json.dumps(value, ensure_ascii=False)
    scrubbed = scrub(dumped)
    return text if scrubbed is dumped else scrubbed
