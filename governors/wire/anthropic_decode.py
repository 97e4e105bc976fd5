"""The Anthropic Messages protocol, read back: a request's dicts to messages.

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
    Document,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from .anthropic_tools_decode import ToolReader, is_filler
from .base import CannotDecode, Decoded
from .common import dump, follows, label_of
from .compaction_items import KIND, read_item


def decode(payload: Mapping[str, Any] | Sequence[Any], *, model: str | None = None) -> Decoded:
    """The system prompt and the messages of a request (parts, body, or the bare list of its messages).

    `model` says which model its replies came from; by default the one that the body names. Raises `CannotDecode`
    for content that the message model has no place for, such as a document or a picture by URL.
    """
    system = ""
    dicts: Any = payload
    if isinstance(payload, Mapping):
        system = "\n\n".join(_texts(payload.get("system") or [], "system"))
        dicts = payload.get("messages") or []
        model = model if model is not None else payload.get("model")
    messages: list[Message] = []
    tools: dict[str, str] = {}
    changes = ToolReader(payload.get("tools") if isinstance(payload, Mapping) else None)
    for position, message in enumerate(dicts):
        where = f"messages[{position}]"
        if changes.are_in(message):
            messages.append(changes.read(messages, message, where))
        elif not is_filler(dicts, position):
            messages += _decode_message(message, where, tools, model)
    return Decoded(system, tuple(messages))


def _decode_message(message: Any, where: str, tools: dict[str, str], model: str | None) -> Iterator[Message]:
    if not isinstance(message, Mapping):
        raise CannotDecode(f"{where} is not an object but {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    blocks = _blocks(content, f"{where}.content")
    if role == "assistant" and len(blocks) == 1 and blocks[0][1].get("type") == KIND:
        yield read_item(blocks[0][1], "anthropic", "anthropic")
    elif role == "assistant":
        parts = tuple(_decode_reply_part(block, place) for place, block in blocks)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        tools.update((call.id, call.name) for call in calls)
        yield AssistantMessage(parts, "tool_use" if calls else "stop", model, "anthropic")
    elif role == "user":
        yield from _decode_user(blocks, tools)
    elif role == "system":
        yield SystemPatch("\n\n".join(_texts(content, f"{where}.content")))
    else:
        raise CannotDecode(f"{where}.role is {role!r}; it can be user, assistant or system")


def _blocks(content: Any, where: str) -> list[tuple[str, Mapping[str, Any]]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    if not isinstance(content, Sequence) or not all(isinstance(block, Mapping) for block in content):
        raise CannotDecode(f"{where} is neither text nor a list of blocks")
    return [(f"{where}[{index}]", block) for index, block in enumerate(content)]


def _texts(content: Any, where: str) -> Iterator[str]:
    for place, block in _blocks(content, where):
        if block.get("type") != "text":
            raise CannotDecode(f"{place} is a {block.get('type')!r} block; only text can stand there")
        yield str(block.get("text") or "")


def _decode_reply_part(block: Mapping[str, Any], where: str) -> AssistantPart:
    kind = block.get("type")
    if kind == "text":
        return Text(str(block.get("text") or ""))
    if kind == "thinking":
        return Thinking(str(block.get("thinking") or ""), _optional_text(block.get("signature")))
    if kind == "redacted_thinking":
        return Thinking("", _optional_text(block.get("data")), redacted=True)
    if kind == "tool_use":
        given = block.get("input")
        return ToolCall(
            id=str(block.get("id") or ""),
            name=str(block.get("name") or ""),
            arguments=given if isinstance(given, str) else dump(given),
            complete=given is not None,
        )
    raise CannotDecode(f"{where} is a {kind!r} block, which a reply cannot hold here")


def _optional_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _decode_user(blocks: list[tuple[str, Mapping[str, Any]]], tools: Mapping[str, str]) -> Iterator[Message]:
    results = [block for _, block in blocks if block.get("type") == "tool_result"]
    if blocks and not results:
        yield UserMessage(tuple(_decode_user_part(block, where) for where, block in blocks))
        return
    place = 0
    while place < len(blocks):
        step = _decode_results(blocks, place, tools)
        place += len(step)
        shown, taken = _reattach(step, blocks[place:])
        place += taken
        yield from shown
        rest: list[UserPart] = []
        while place < len(blocks) and blocks[place][1].get("type") != "tool_result":
            where, block = blocks[place]
            rest.append(_decode_user_part(block, where))
            place += 1
        if rest:
            yield UserMessage(tuple(rest))
    if not blocks:
        yield UserMessage(())


def _decode_results(
    blocks: list[tuple[str, Mapping[str, Any]]], start: int, tools: Mapping[str, str]
) -> list[ToolResult]:
    """The results that stand together from `start` on."""
    results = []
    for where, block in blocks[start:]:
        if block.get("type") != "tool_result":
            break
        call = str(block.get("tool_use_id") or "")
        inner = _blocks(block.get("content"), f"{where}.content")
        content = tuple(_decode_user_part(part, place) for place, part in inner)
        results.append(ToolResult(call, tools.get(call, ""), content, bool(block.get("is_error"))))
    return results


def _reattach(
    results: list[ToolResult], following: list[tuple[str, Mapping[str, Any]]]
) -> tuple[list[ToolResult], int]:
    """Give error results the pictures and documents back that `encode` moved behind them; also how many blocks those
    took."""
    shown: list[ToolResult] = []
    taken = 0
    for result in results:
        behind: list[Image | Document] = []
        place = taken
        while result.is_error and place + 1 < len(following):
            where, block = following[place + 1]
            if block.get("type") not in ("image", "document"):
                break
            part = _decode_user_part(block, where)
            if isinstance(part, Text) or following[place][1].get("text") != label_of(part, result):
                break
            behind.append(part)
            place += 2
        restored = _restore(result, behind)
        if restored is not None:
            result, taken = restored, place
        shown.append(result)
    return shown, taken


def _restore(result: ToolResult, behind: list[Image | Document]) -> ToolResult | None:
    """The result with each of them where its mark stands, or None when marks and parts do not agree."""
    waiting = list(behind)
    content: list[UserPart] = []
    for part in result.content:
        if waiting and part == Text(follows(waiting[0])):
            content.append(waiting.pop(0))
        else:
            content.append(part)
    if waiting or not behind:
        return None
    return ToolResult(result.call_id, result.tool, tuple(content), result.is_error)


def _decode_user_part(block: Mapping[str, Any], where: str) -> UserPart:
    if block.get("type") == "text":
        return Text(str(block.get("text") or ""))
    if block.get("type") == "image":
        return Image(*_decode_source(block, where))
    if block.get("type") == "document":
        return Document(*_decode_source(block, where), str(block.get("title") or ""))
    raise CannotDecode(f"{where} is a {block.get('type')!r} block; text, images and documents can be read")


def _decode_source(block: Mapping[str, Any], where: str) -> tuple[str, str]:
    """The media type and the data of an image or a document."""
    source = block.get("source")
    if not isinstance(source, Mapping) or source.get("type") != "base64":
        raise CannotDecode(f"{where} is of type {block.get('type')} and not given as base64 data")
    return str(source.get("media_type") or ""), str(source.get("data") or "")
