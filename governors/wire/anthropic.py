"""The Anthropic Messages protocol: messages to a request body.

Laws:
- `encode` of a longer list extends `encode` of a shorter one, message by message (block by block where the host
  demands strict alternation), as long as neither ends in the middle of a step.
- All results of a step stand in one user message, in call order, before anything else (A2).
- Thinking goes back byte for byte to the model that signed it, and to no other (A5, C7).

Field names and shapes: https://docs.anthropic.com/en/api/messages and the types of the official SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..content import EMPTY_MESSAGE, NO_OUTPUT
from ..messages import (
    AssistantMessage,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    remember,
)
from ..scrub import scrub
from .base import THINKING_LEVELS, Abilities, Payload
from .common import (
    OPENING,
    Encoded,
    arguments_object,
    image_follows,
    image_label,
    image_withheld,
    is_blank,
    is_clean,
    patch_text,
    remember_step,
    schema,
    sendable_name,
    steps,
)

WIRE = "anthropic"

#: The image types that the protocol names.
MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

#: Tokens of thinking for models that take a budget. At least 1,024, and below max_tokens (A7).
BUDGETS: Mapping[str, int] = {"low": 2_048, "medium": 8_192, "high": 16_384, "max": 32_000}
LEAST_BUDGET = 1_024

Block = dict[str, Any]


def encode(
    messages: Sequence[Message],
    *,
    system: str,
    tools: Sequence[ToolSpec],
    abilities: Abilities,
    model: str | None = None,
) -> Payload:
    """The parts `system`, `tools` and `messages` of a request.

    `messages` are repaired ones (see `governors.repair`). Thinking is kept in replies that came over this wire
    from `model`; with `model` None, from any model of this wire.
    """
    encoded = _encode_messages(messages, abilities, model)
    if encoded and encoded[0]["role"] != "user":
        encoded.insert(0, Encoded({"role": "user", "content": [_text(OPENING)]}))
    return {
        "system": [] if is_blank(system) else [_text(scrub(system))],
        "tools": [_encode_tool(tool) for tool in tools],
        "messages": _merge_neighbours(encoded) if abilities.strict_alternation else encoded,
    }


def body(
    parts: Mapping[str, Any],
    *,
    model: str,
    max_output: int,
    abilities: Abilities,
    thinking: str | None = None,
) -> Payload:
    """A request body around encoded `parts`. `max_output` is in tokens; `thinking` None leaves it to the model."""
    request: Payload = {"model": model, "max_tokens": max_output}
    request.update(_thinking_fields(thinking, max_output, abilities, parts))
    for part in ("tools", "system"):
        if parts.get(part):
            request[part] = parts[part]
    request["messages"] = parts["messages"]
    return request


def _thinking_fields(
    level: str | None, max_output: int, abilities: Abilities, parts: Mapping[str, Any]
) -> dict[str, Any]:
    if abilities.thinking == "none":
        return {}
    if level is None:
        return {"thinking": {"type": "adaptive", **_binding(abilities)}} if abilities.drop_block else {}
    if level not in THINKING_LEVELS:
        raise ValueError(f"thinking is {level!r}; it can be one of {', '.join(THINKING_LEVELS)}")
    if level == "off":
        return {"thinking": {"type": "disabled"}}
    if abilities.thinking == "effort":
        return {"output_config": {"effort": level}}
    if abilities.thinking == "adaptive":
        return {"thinking": {"type": "adaptive", **_binding(abilities)}, "output_config": {"effort": level}}
    budget = min(BUDGETS[level], max_output - 1)
    if budget < LEAST_BUDGET or _continues_without_thinking(parts["messages"]):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _binding(abilities: Abilities) -> dict[str, Any]:
    """On models that bind reasoning to its prefix: after a cut, older blocks are dropped and not refused (A6)."""
    return {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if abilities.drop_block else {}


def _continues_without_thinking(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a step is open whose reply does not start with thinking.

    A thinking budget is refused then ("a final assistant message must start with a thinking block"): the reply
    came from another model, or from this one with thinking off.
    """
    if len(messages) < 2 or messages[-1]["content"][0].get("type") != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in ("thinking", "redacted_thinking")


def _encode_messages(messages: Sequence[Message], abilities: Abilities, model: str | None) -> list[Encoded]:
    images = abilities.images
    plain = f"{WIRE}/images={images}"
    replied = f"{WIRE}/model={model!r}"
    encoded: list[Encoded] = []
    for item in steps(messages):
        if isinstance(item, tuple):
            encoded += remember_step(item, plain, partial(_encode_step, item, images))
        elif isinstance(item, AssistantMessage):
            reply = remember(item, replied, partial(_encode_reply, item, model))
            if reply is not None:
                encoded.append(reply)
        else:
            encoded.append(remember(item, plain, partial(_encode_user, item, images)))
    return encoded


def _encode_user(message: UserMessage | SystemPatch, images: bool) -> Encoded:
    if isinstance(message, SystemPatch):
        return Encoded({"role": "user", "content": [_text(patch_text(message.text))]})
    blocks = [_encode_part(part, images) for part in message.content if not _is_empty(part)]
    return Encoded({"role": "user", "content": blocks or [_text(EMPTY_MESSAGE)]})


def _encode_reply(message: AssistantMessage, model: str | None) -> Encoded | None:
    """A reply, or None when nothing of it can be sent: it was only thinking (C5), or empty."""
    signed_here = message.wire == WIRE and (model is None or message.model == model)
    blocks: list[Block] = []
    for part in message.content:
        if isinstance(part, Thinking):
            if signed_here and _is_intact(part):
                blocks.append(_encode_thinking(part))
        elif isinstance(part, ToolCall):
            if part.complete:
                blocks.append(_encode_call(part))
        elif not is_blank(part.text):
            blocks.append(_text(scrub(part.text)))
    # A reply must not end in thinking: the provider refuses it whatever stands before.
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()
    return Encoded({"role": "assistant", "content": blocks}) if blocks else None


def _is_intact(part: Thinking) -> bool:
    return bool(part.signature) and is_clean(part.text) and is_clean(part.signature or "")


def _encode_thinking(part: Thinking) -> Block:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _encode_call(call: ToolCall) -> Block:
    name = sendable_name(call.name)
    return {"type": "tool_use", "id": scrub(call.id), "name": name, "input": arguments_object(call)}


def _encode_step(results: tuple[ToolResult, ...], images: bool) -> list[Encoded]:
    blocks = [_encode_result(result, images) for result in results]
    for result in results:
        if result.is_error:
            for part in result.content:
                if isinstance(part, Image) and _can_show(part, images):
                    blocks += [_text(image_label(result)), _image(part)]
    return [Encoded({"role": "user", "content": blocks})]


def _encode_result(result: ToolResult, images: bool) -> Block:
    content = []
    for part in result.content:
        if result.is_error and isinstance(part, Image) and _can_show(part, images):
            content.append(_text(image_follows(part)))  # an error may hold only text (A4)
        elif not _is_empty(part):
            content.append(_encode_part(part, images))
    block: Block = {
        "type": "tool_result",
        "tool_use_id": scrub(result.call_id),
        "content": content or [_text(NO_OUTPUT)],
    }
    if result.is_error:
        block["is_error"] = True
    return block


def _is_empty(part: Text | Image) -> bool:
    return isinstance(part, Text) and is_blank(part.text)


def _encode_part(part: Text | Image, images: bool) -> Block:
    if isinstance(part, Text):
        return _text(scrub(part.text))
    return _image(part) if _can_show(part, images) else _text(image_withheld(part))


def _can_show(image: Image, images: bool) -> bool:
    return images and image.media_type in MEDIA_TYPES and bool(image.data) and is_clean(image.data)


def _image(image: Image) -> Block:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _encode_tool(tool: ToolSpec) -> Block:
    block: Block = {"name": scrub(tool.name)}
    if not is_blank(tool.description):
        block["description"] = scrub(tool.description)
    block["input_schema"] = schema(tool.parameters)
    return block


def _merge_neighbours(messages: Iterable[Encoded]) -> list[Encoded]:
    merged: list[Encoded] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            content = [*merged[-1]["content"], *message["content"]]
            merged[-1] = Encoded({"role": message["role"], "content": content})
        else:
            merged.append(message)
    return merged
