"""The OpenAI Chat Completions protocol, read back: a request's dicts to messages.

Laws:
- What `encode` made comes back as the same parts when it is decoded and encoded again.
- A faulty history is read as it stands (a call without a name, a result nobody asked for), so that the repairs
  can see it. Only what the message model cannot hold is refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from .base import CannotDecode, Decoded
from .common import data_uri, decode_file, dump
from .openai_chat import UNSIGNED, WIRE
from .openai_chat_order import SYSTEM_ROLES


def decode(payload: Mapping[str, Any] | Sequence[Any], *, model: str | None = None) -> Decoded:
    """The leading system prompt and the messages of a request (parts, body, or the bare list of its messages).

    `model` says which model its replies came from; by default the one that the body names. The protocol does not
    say which results are errors: their text does. Raises `CannotDecode` for content that the message model has no
    place for, such as audio, or a picture or document by URL.
    """
    dicts: Any = payload
    if isinstance(payload, Mapping):
        dicts = payload.get("messages") or []
        model = model if model is not None else payload.get("model")
    system = ""
    messages: list[Message] = []
    tools: dict[str, str] = {}
    for position, message in enumerate(dicts):
        where = f"messages[{position}]"
        if not isinstance(message, Mapping):
            raise CannotDecode(f"{where} is not an object but {type(message).__name__}")
        if position == 0 and message.get("role") in SYSTEM_ROLES:
            system = _text(message.get("content"), f"{where}.content")
        else:
            messages += _decode_message(message, where, tools, model)
    return Decoded(system, tuple(messages))


def _decode_message(
    message: Mapping[str, Any], where: str, tools: dict[str, str], model: str | None
) -> Iterator[Message]:
    role, content, place = message.get("role"), message.get("content"), f"{where}.content"
    if role in SYSTEM_ROLES:
        yield SystemPatch(_text(content, place))
    elif role == "user":
        yield from _decode_user(_parts(content, place))
    elif role == "tool":
        call = str(message.get("tool_call_id") or "")
        tool = str(message.get("name") or tools.get(call, ""))
        yield ToolResult(call, tool, (Text(_text(content, place)),))
    elif role == "assistant":
        yield from _decode_reply(message, where, tools, model)
    else:
        raise CannotDecode(f"{where}.role is {role!r}; it can be system, developer, user, assistant or tool")


def _decode_user(parts: list[UserPart]) -> Iterator[UserMessage]:
    if any(not isinstance(part, Text) for part in parts) or not parts:
        yield UserMessage(tuple(parts))
        return
    # `encode` makes a list of texts only by merging messages, so that each was a message of its own.
    for part in parts:
        yield UserMessage((part,))


def _decode_reply(
    message: Mapping[str, Any], where: str, tools: dict[str, str], model: str | None
) -> Iterator[AssistantMessage]:
    texts = [part for part in _parts(message.get("content"), f"{where}.content") if part != Text("")]
    given = message.get("tool_calls") or []
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise CannotDecode(f"{where}.tool_calls is not a list")
    calls = [_decode_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(given)]
    tools.update((call.id, call.name) for call in calls)
    reasoning = message.get("reasoning_content")
    thinking = [Thinking(reasoning)] if isinstance(reasoning, str) and reasoning else []
    for text in texts[:-1]:  # merged by `encode`, as in `_decode_user`
        yield _reply([text], model)
    yield _reply([*thinking, *texts[-1:], *calls], model)


def _reply(parts: Sequence[Any], model: str | None) -> AssistantMessage:
    content: tuple[AssistantPart, ...] = tuple(parts)
    calls = any(isinstance(part, ToolCall) for part in content)
    return AssistantMessage(content, "tool_use" if calls else "stop", model, WIRE)


def _decode_call(call: Any, where: str) -> ToolCall:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        raise CannotDecode(f"{where} is not a call of a function")
    function = call["function"]
    arguments = function.get("arguments")
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=arguments if isinstance(arguments, str) else dump(arguments),
        complete=arguments is not None,
        signature=_signature(call),
    )


def _signature(call: Mapping[str, Any]) -> str | None:
    """What Gemini signed a call with, where its compatible route puts it."""
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, Mapping) else None
    signature = google.get("thought_signature") if isinstance(google, Mapping) else None
    return signature if isinstance(signature, str) and signature != UNSIGNED else None


def _text(content: Any, where: str) -> str:
    parts = _parts(content, where)
    if any(not isinstance(part, Text) for part in parts):
        raise CannotDecode(f"{where} holds an image or a document where only text can stand")
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def _parts(content: Any, where: str) -> list[UserPart]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, Sequence):
        raise CannotDecode(f"{where} is neither text nor a list of parts")
    return [_decode_part(part, f"{where}[{index}]") for index, part in enumerate(content)]


def _decode_part(part: Any, where: str) -> UserPart:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("text", "refusal"):
        return Text(str(part.get(kind) or ""))
    if kind == "image_url":
        shown = part.get("image_url")
        return data_uri(shown.get("url") if isinstance(shown, Mapping) else None, where)
    if kind == "file":
        return decode_file(part.get("file"), where)
    raise CannotDecode(f"{where} is {part if kind is None else kind!r}; text, images and documents can be read")
