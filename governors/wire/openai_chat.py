"""The OpenAI Chat Completions protocol and its compatibles: messages to a request body.

Laws:
- `encode` of a longer list extends `encode` of a shorter one, message by message (block by block where the host
  demands strict alternation), as long as neither ends in the middle of a step.
- One tool message a call stands straight after the reply, in call order; pictures that tools returned come after
  all of them, in one user message (H1, H2).
- A text is one string wherever it can be: many compatible hosts take no list of parts.

Field names and shapes: https://platform.openai.com/docs/api-reference/chat and the types of the official SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    arguments_text,
    canonical,
    image_follows,
    image_label,
    image_withheld,
    is_blank,
    is_clean,
    joined_text,
    message_blocks,
    patch_text,
    remember_step,
    rolling_hash,
    schema,
    sendable_name,
    steps,
)

WIRE = "openai_chat"

SYSTEM_ROLES = ("system", "developer")

Part = dict[str, Any]


def encode(
    messages: Sequence[Message],
    *,
    system: str,
    tools: Sequence[ToolSpec],
    abilities: Abilities,
    model: str | None = None,
) -> Payload:
    """The parts `tools` and `messages` of a request; the system prompt leads the messages.

    `messages` are repaired ones (see `governors.repair`). Where the model wants its reasoning back, it is taken
    from replies that came over this wire from `model`; with `model` None, from any model of this wire.
    """
    encoded = _encode_messages(messages, abilities, model)
    if abilities.strict_alternation:
        encoded = _alternate(encoded)
    if not is_blank(system):
        encoded.insert(0, Encoded({"role": _system_role(abilities), "content": scrub(system)}))
    return {"tools": [_encode_tool(tool) for tool in tools], "messages": encoded}


def body(
    parts: Mapping[str, Any],
    *,
    model: str,
    max_output: int,
    abilities: Abilities,
    thinking: str | None = None,
) -> Payload:
    """A request body around encoded `parts`. `max_output` is in tokens; `thinking` None leaves it to the model."""
    request: Payload = {"model": model, abilities.max_tokens_field: max_output}
    if thinking is not None and thinking not in THINKING_LEVELS:
        raise ValueError(f"thinking is {thinking!r}; it can be one of {', '.join(THINKING_LEVELS)}")
    takes_effort = abilities.thinking != "none" and (abilities.thinking_with_tools or not parts.get("tools"))
    if thinking is not None and takes_effort:
        request["reasoning_effort"] = "none" if thinking == "off" else thinking
    if parts.get("tools"):  # an empty list is refused
        request["tools"] = parts["tools"]
    request["messages"] = parts["messages"]
    return request


def mark_cache(body: Payload) -> Payload:
    """`body` itself: hosts of this protocol cache by themselves and take no marks."""
    return body


def _system_role(abilities: Abilities) -> str:
    return "developer" if abilities.developer_role else "system"


def _encode_messages(messages: Sequence[Message], abilities: Abilities, model: str | None) -> list[Encoded]:
    patch_role = _system_role(abilities) if abilities.system_anywhere else "user"
    said = f"{WIRE}/images={abilities.images}/patch={patch_role}"
    replied = f"{WIRE}/null={abilities.null_content}/reasoning={abilities.replay_reasoning}/model={model!r}"
    resulted = f"{WIRE}/images={abilities.images}/name={abilities.tool_name_in_result}"
    encoded: list[Encoded] = []
    for item in steps(messages):
        if isinstance(item, tuple):
            encoded += remember_step(item, resulted, partial(_encode_step, item, abilities))
        elif isinstance(item, AssistantMessage):
            reply = remember(item, replied, partial(_encode_reply, item, abilities, model))
            if reply is not None:
                encoded.append(reply)
        elif isinstance(item, SystemPatch):
            encoded.append(remember(item, said, partial(_encode_patch, item, patch_role)))
        else:
            encoded.append(remember(item, said, partial(_encode_user, item, abilities.images)))
    return encoded


def _encode_patch(patch: SystemPatch, role: str) -> Encoded:
    text = patch_text(patch.text) if role == "user" or is_blank(patch.text) else scrub(patch.text)
    return Encoded({"role": role, "content": text})


def _encode_user(message: UserMessage, images: bool) -> Encoded:
    parts = [_encode_part(part, images) for part in message.content if not _is_empty(part)]
    if all(part["type"] == "text" for part in parts):
        text = "\n\n".join(part["text"] for part in parts)
        return Encoded({"role": "user", "content": text or EMPTY_MESSAGE})
    return Encoded({"role": "user", "content": parts})


def _encode_reply(message: AssistantMessage, abilities: Abilities, model: str | None) -> Encoded | None:
    """A reply, or None when nothing of it can be sent: it was only reasoning (C5), or empty."""
    text = joined_text(message.content)
    calls = [
        {
            "id": scrub(call.id),
            "type": "function",
            "function": {"name": sendable_name(call.name), "arguments": arguments_text(call)},
        }
        for call in message.calls
        if call.complete
    ]
    if not calls:
        return Encoded({"role": "assistant", "content": text}) if text else None
    fields: dict[str, Any] = {"role": "assistant", "content": text or (None if abilities.null_content else "")}
    if abilities.replay_reasoning:
        ours = message.wire == WIRE and (model is None or message.model == model)
        fields["reasoning_content"] = _reasoning(message) if ours else ""
    fields["tool_calls"] = calls
    return Encoded(fields)


def _reasoning(message: AssistantMessage) -> str:
    return "".join(scrub(part.text) for part in message.content if isinstance(part, Thinking))


def _encode_step(results: tuple[ToolResult, ...], abilities: Abilities) -> list[Encoded]:
    encoded = [_encode_result(result, abilities) for result in results]
    shown: list[Part] = []
    for result in results:
        for part in result.content:
            if isinstance(part, Image) and _can_show(part, abilities.images):
                shown += [_text(image_label(result)), _encode_part(part, images=True)]
    if shown:
        encoded.append(Encoded({"role": "user", "content": shown}))
    return encoded


def _encode_result(result: ToolResult, abilities: Abilities) -> Encoded:
    texts = [_result_text(part, abilities.images) for part in result.content if not _is_empty(part)]
    text = "\n\n".join(texts) or NO_OUTPUT
    # The protocol has no flag for errors, so the text says it, unless it does so already.
    if result.is_error and not result.stand_in and not text.lstrip().casefold().startswith("error"):
        text = f"error: {text}"
    fields: dict[str, Any] = {"role": "tool", "tool_call_id": scrub(result.call_id)}
    if abilities.tool_name_in_result:
        fields["name"] = sendable_name(result.tool) or "unknown"
    fields["content"] = text
    return Encoded(fields)


def _result_text(part: Text | Image, images: bool) -> str:
    if isinstance(part, Text):
        return scrub(part.text)
    return image_follows(part) if _can_show(part, images) else image_withheld(part)


def _is_empty(part: Text | Image) -> bool:
    return isinstance(part, Text) and is_blank(part.text)


def _encode_part(part: Text | Image, images: bool) -> Part:
    if isinstance(part, Text):
        return _text(scrub(part.text))
    if not _can_show(part, images):
        return _text(image_withheld(part))
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}


def _can_show(image: Image, images: bool) -> bool:
    sendable = is_clean(image.media_type) and is_clean(image.data)
    return images and sendable and bool(image.data) and image.media_type.startswith("image/")


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _encode_tool(tool: ToolSpec) -> Part:
    function: Part = {"name": scrub(tool.name)}
    if not is_blank(tool.description):
        function["description"] = scrub(tool.description)
    function["parameters"] = schema(tool.parameters)
    return {"type": "function", "function": function}


def _alternate(messages: list[Encoded]) -> list[Encoded]:
    """User and assistant in turn, the user first: neighbours of one role become one message."""
    merged: list[Encoded] = []
    for message in messages:
        before = merged[-1] if merged else None
        role = message["role"]
        if role == "assistant" and all(one["role"] in SYSTEM_ROLES for one in merged):
            merged.append(Encoded({"role": "user", "content": OPENING}))
            merged.append(message)
        elif before is not None and before["role"] == role and role in ("user", "assistant"):
            merged[-1] = _merge(before, message)
        else:
            merged.append(message)
    return merged


def _merge(before: Encoded, after: Encoded) -> Encoded:
    content: Any = [*_as_parts(before["content"]), *_as_parts(after["content"])]
    if len(content) == 1 and content[0]["type"] == "text":
        content = content[0]["text"]
    return Encoded({**before, **after, "content": content})


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [_text(content)] if content else []


def prefix_blocks(body: Mapping[str, Any]) -> list[bytes]:
    """The system prompt, the tools and every content block as canonical bytes, in order."""
    messages = list(body.get("messages") or [])
    leading: list[Any] = []
    if messages and isinstance(messages[0], dict) and messages[0].get("role") in SYSTEM_ROLES:
        leading = [messages.pop(0)]
    blocks = [block for message in leading for block in message_blocks(message, _split)]
    blocks += [canonical(["tool", tool]) for tool in body.get("tools") or []]
    for message in messages:
        blocks += message_blocks(message, _split)
    return blocks


def prefix_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 in hex over `prefix_blocks`, rolled block by block."""
    return rolling_hash(prefix_blocks(body))


def _split(message: Any) -> Iterator[bytes]:
    """A message's blocks: its parts, then its reasoning, then its calls, so that merging only appends."""
    if not isinstance(message, dict):
        yield canonical(["?", message])
        return
    head = [message.get("role"), message.get("tool_call_id"), message.get("name")]
    for part in _as_parts(message.get("content")):
        yield canonical([*head, part])
    if "reasoning_content" in message:
        yield canonical([*head, "reasoning", message["reasoning_content"]])
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        yield canonical([*head, "call", call])
