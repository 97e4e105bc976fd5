"""The OpenAI Responses protocol, read back: a request's items to messages.

Laws:
- What `encode` made comes back as the same parts when it is decoded and encoded again.
- A faulty history is read as it stands (a call without a name, a result nobody asked for), so that the repairs
  can see it. Only what the message model cannot hold is refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolResult,
    ToolSpec,
    UserMessage,
    UserPart,
)
from .base import CannotDecode, Decoded
from .common import data_uri, decode_file, dump, untagged
from .compaction_items import KIND, read_item
from .openai_responses import WIRE

SYSTEM_ROLES = ("system", "developer")


def decode(payload: Mapping[str, Any] | Sequence[Any], *, model: str | None = None) -> Decoded:
    """The instructions and the messages of a request (parts, body, or the bare list of its items).

    Without instructions, a leading system or developer message takes their place, so that no cut can lose it (and is
    encoded as instructions again). `model` says which model its
    replies came from; by default the one that the body names. Raises `CannotDecode` for items that the message model
    has no place for, such as the provider's own tools.
    """
    items: Any = payload
    system = ""
    if isinstance(payload, Mapping):
        system = str(payload.get("instructions") or "")
        items = payload.get("input") or []
        model = model if model is not None else payload.get("model")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    messages: list[Message] = []
    reply: list[AssistantPart] = []
    tools: dict[str, str] = {}
    for position, item in enumerate(items):
        where = f"input[{position}]"
        if not isinstance(item, Mapping):
            raise CannotDecode(f"{where} is not an object but {type(item).__name__}")
        if _is_of_reply(item):
            reply += _decode_reply_item(item, where, tools)
            continue
        messages += _reply(reply, model)
        reply = []
        if item.get("type") == "additional_tools":
            messages.append(_with_tools(messages, item, where))
        elif position == 0 and not system and item.get("role") in SYSTEM_ROLES:
            system = _text(item.get("content"), f"{where}.content")
        else:
            messages.append(_decode_item(item, where, tools))
    messages += _reply(reply, model)
    return Decoded(system, tuple(messages))


def _with_tools(messages: list[Message], item: Mapping[str, Any], where: str) -> SystemPatch:
    """The patch that brings the tools of `item`: the one just before, where its words stand, or one of its own."""
    change = ToolChange(added=tuple(_decode_tools(item.get("tools"), f"{where}.tools")))
    before = messages[-1] if messages else None
    text = before.text if isinstance(before, SystemPatch) and before.tools is None else untagged(before)
    if text is None:
        return SystemPatch(change.text, tools=change)
    messages.pop()
    return SystemPatch(text, tools=change)


def _decode_tools(tools: Any, where: str) -> Iterator[ToolSpec]:
    for index, tool in enumerate(tools if isinstance(tools, Sequence) and not isinstance(tools, str) else ()):
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            raise CannotDecode(f"{where}[{index}] is no function; only functions can be read there")
        parameters = tool.get("parameters")
        known = parameters if isinstance(parameters, Mapping) else {}
        yield ToolSpec(str(tool.get("name") or ""), str(tool.get("description") or ""), known)


def _is_of_reply(item: Mapping[str, Any]) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _reply(parts: list[AssistantPart], model: str | None) -> Iterator[AssistantMessage]:
    if parts:
        calls = any(isinstance(part, ToolCall) for part in parts)
        yield AssistantMessage(tuple(parts), "tool_use" if calls else "stop", model, WIRE)


def _decode_reply_item(item: Mapping[str, Any], where: str, tools: dict[str, str]) -> Iterator[AssistantPart]:
    if item.get("type") == "reasoning":
        yield from _decode_reasoning(item)
    elif item.get("type") == "function_call":
        call = _decode_call(item)
        tools[call.id] = call.name
        yield call
    else:
        for part in _parts(item.get("content"), f"{where}.content"):
            if not isinstance(part, Text):
                raise CannotDecode(f"{where}.content holds an image or a document, which a reply cannot hold here")
            phase = item.get("phase")
            yield replace(part, phase=phase) if isinstance(phase, str) else part


def _decode_reasoning(item: Mapping[str, Any]) -> Iterator[Thinking]:
    """One part for each text of the summary; the last of them is signed."""
    summary = item.get("summary")
    texts = [
        str(part.get("text") or "")
        for part in (summary if isinstance(summary, Sequence) and not isinstance(summary, str) else ())
        if isinstance(part, Mapping)
    ]
    encrypted = item.get("encrypted_content")
    for text in texts[:-1]:
        yield Thinking(text)
    yield Thinking(texts[-1] if texts else "", encrypted if isinstance(encrypted, str) else None)


def _decode_call(item: Mapping[str, Any]) -> ToolCall:
    arguments = item.get("arguments")
    return ToolCall(
        id=str(item.get("call_id") or ""),
        name=str(item.get("name") or ""),
        arguments=arguments if isinstance(arguments, str) else dump(arguments),
        complete=arguments is not None,
    )


def _decode_item(item: Mapping[str, Any], where: str, tools: Mapping[str, str]) -> Message:
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        call = str(item.get("call_id") or "")
        tool = str(item.get("name") or tools.get(call, ""))
        return ToolResult(call, tool, tuple(_parts(item.get("output"), f"{where}.output")))
    if kind == KIND:
        return read_item(item, WIRE, "openai")
    if kind != "message":
        raise CannotDecode(f"{where} is {kind!r}; messages, reasoning, function calls and their outputs can be read")
    if role in SYSTEM_ROLES:
        return SystemPatch(_text(item.get("content"), f"{where}.content"))
    if role == "user":
        return UserMessage(tuple(_parts(item.get("content"), f"{where}.content")))
    raise CannotDecode(f"{where}.role is {role!r}; it can be user, assistant, system or developer")


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
    if kind in ("input_text", "output_text", "text"):
        return Text(str(part.get("text") or ""))
    if kind == "refusal":
        return Text(str(part.get("refusal") or ""))
    if kind == "input_image":
        return data_uri(part.get("image_url"), where)
    if kind == "input_file":
        return decode_file(part, where)
    raise CannotDecode(f"{where} is {part if kind is None else kind!r}; text, images and documents can be read")
