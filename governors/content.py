"""Legal content for each kind of message: no empty text, no lone surrogates, arguments that are JSON objects, calls
that name a tool.

Each function returns the same object when nothing was wrong. The texts that stand for nothing are constants, so
that what was sent once never changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from .arguments import legal_arguments
from .messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
    remember,
)
from .scrub import scrub

EMPTY_MESSAGE = "(empty message)"
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"
UNNAMED_TOOL = "unnamed"

_Part = TypeVar("_Part", Text, Image, Document, Thinking, ToolCall)
_Carrier = TypeVar("_Carrier", UserMessage, AssistantMessage, ToolResult)


def legal_user(message: UserMessage) -> UserMessage:
    return remember(message, "legal", lambda: _with_content(message, message.content, EMPTY_MESSAGE)) or message


def legal_reply(message: AssistantMessage) -> AssistantMessage:
    return remember(message, "legal", lambda: _with_content(message, message.content, NO_TEXT)) or message


def legal_result(message: ToolResult) -> ToolResult:
    return remember(message, "legal", lambda: _with_content(message, message.content, NO_OUTPUT)) or message


def legal_patch(message: SystemPatch) -> SystemPatch:
    text = scrub(message.text) if message.text.strip() else EMPTY_MESSAGE
    return message if text == message.text else remember(message, "legal", lambda: replace(message, text=text))


def has_thinking(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and any(isinstance(part, Thinking) for part in message.content)


def without_thinking(message: Message) -> Message:
    """A reply without its reasoning, made once; any other message as it is."""
    if not isinstance(message, AssistantMessage) or not has_thinking(message):
        return message
    kept = tuple(part for part in message.content if not isinstance(part, Thinking))
    return remember(message, "without_thinking", lambda: replace(message, content=kept or (Text(NO_TEXT),)))


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


def _legal_part(part: _Part) -> _Part:
    match part:
        case Text():
            text = scrub(part.text)
            return part if text is part.text else replace(part, text=text)
        case Thinking():
            return _legal_thinking(part)
        case ToolCall():
            return _legal_call(part)
        case _:
            return part


def _legal_call(call: ToolCall) -> ToolCall:
    name, arguments = scrub(call.name.strip()) or UNNAMED_TOOL, legal_arguments(call.arguments)
    signature = call.signature if _is_clean(call.signature) else None
    if name == call.name and arguments == call.arguments and signature == call.signature:
        return call
    return replace(call, name=name, arguments=arguments, signature=signature)


def _is_clean(signature: str | None) -> bool:
    return signature is None or scrub(signature) is signature


def _legal_thinking(part: Thinking) -> Thinking:
    """Reasoning is bound to its signature byte for byte: when either had to be changed, it is signed no longer."""
    text = scrub(part.text)
    if text is part.text and _is_clean(part.signature):
        return part
    return replace(part, text=text, signature=None)
