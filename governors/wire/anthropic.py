"""The Anthropic Messages protocol: messages to a request body.

Laws:
- `encode` of a longer list extends `encode` of a shorter one, message by message (block by block where the host
  demands strict alternation), as long as neither ends in the middle of a step.
- All results of a step stand in one user message, in call order, before anything else (A2).
- A patch is said in words in a user's message of its own, and tools change in one more (see `anthropic_tools`).
- Thinking goes back byte for byte to the model that signed it, and to no other (A5, C7).

Field names and shapes: https://docs.anthropic.com/en/api/messages and the types of the official SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..content import EMPTY_MESSAGE, NO_OUTPUT
from ..documents import document_name
from ..messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    UserPart,
    remember,
)
from ..scrub import scrub
from .anthropic_tools import apart, encode_change, encode_tools, takes_changes
from .base import THINKING_LEVELS, Abilities, Payload
from .common import (
    OPENING,
    arguments_object,
    follows,
    is_blank,
    is_clean,
    is_empty,
    label_of,
    left_out,
    media_memo,
    patch_text,
    remember_step,
    sendable_name,
    steps,
)
from .compaction_items import KIND, given_back
from .encoded import Encoded

WIRE = "anthropic"

#: The image types that the protocol names.
MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

#: Tokens of thinking for models that take a budget. At least 1,024, and below max_tokens (A7).
BUDGETS: Mapping[str, int] = {"low": 2_048, "medium": 8_192, "high": 16_384, "max": 32_000}
LEAST_BUDGET = 1_024
#: Of max_tokens, one part in so many is kept for the answer: thinking that takes all of it leaves none.
ANSWER_SHARE = 8

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
    encoded: list[Encoded] = []
    for item in steps(messages):
        encoded += encode_unit(item, abilities, model)
    if encoded and encoded[0]["role"] != "user" and not opens_itself(encoded[0]):
        encoded.insert(0, opening(abilities))
    offered = {"tools": encode_tools(tools, abilities)} if tools else {}
    return {
        **({} if is_blank(system) else {"system": [_text(scrub(system))]}),
        **offered,
        "messages": _merge_neighbours(encoded) if abilities.strict_alternation else apart(encoded, abilities),
    }


def opens_itself(message: Mapping[str, Any]) -> bool:
    """Whether a message of the assistant's may come first: one that begins with a compaction (A11)."""
    return bool(message["content"]) and message["content"][0].get("type") == KIND


def opening(abilities: Abilities) -> Encoded:
    """The user's message that stands before a conversation which the assistant opens (A1)."""
    return Encoded({"role": "user", "content": [_text(OPENING)]})


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
    budget = min(BUDGETS[level], max_output - max(1, max_output // ANSWER_SHARE))
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


def encode_unit(item: Message | tuple[ToolResult, ...], abilities: Abilities, model: str | None) -> list[Encoded]:
    """The encoded form of a message or of all results of a step, kept with it."""
    if isinstance(item, tuple):
        return remember_step(item, f"{WIRE}/{media_memo(abilities)}", partial(_encode_step, item, abilities))
    if isinstance(item, AssistantMessage):
        key = f"{WIRE}/model={model!r}/unsigned={abilities.unsigned_thinking}"
        return remember(item, key, partial(_encode_reply, item, abilities, model))
    if isinstance(item, SystemPatch):
        inline = takes_changes(abilities)
        key = f"{WIRE}/patch/{abilities.folds_patches}/{inline}/{abilities.schema_references}"
        return remember(item, key, partial(_encode_patch, item, abilities, inline))
    compaction = f"/{abilities.compaction}" if isinstance(item, UserMessage) and item.item is not None else ""
    return remember(item, f"{WIRE}/{media_memo(abilities)}{compaction}", partial(_encode_user, item, abilities))


def _encode_patch(patch: SystemPatch, abilities: Abilities, inline: bool) -> list[Encoded]:
    """What changed in words, as a user's message of its own, then the tools where they can stand here."""
    if abilities.folds_patches:
        return []
    words = Encoded({"role": "user", "content": [_text(patch_text(patch.text))]})
    return [words, encode_change(patch.tools, abilities)] if inline and patch.tools else [words]


def _encode_user(message: Message, abilities: Abilities) -> list[Encoded]:
    assert isinstance(message, UserMessage)
    item = given_back(message, WIRE, abilities)
    if item is not None:
        return [Encoded({"role": "assistant", "content": [item]})]
    blocks = [_encode_part(part, abilities) for part in message.content if not is_empty(part)]
    return [Encoded({"role": "user", "content": blocks or [_text(EMPTY_MESSAGE)]})]


def _encode_reply(message: AssistantMessage, abilities: Abilities, model: str | None) -> list[Encoded]:
    """A reply; none when nothing of it can be sent: it was only thinking (C5), or empty."""
    signed_here = message.wire == WIRE and (model is None or message.model == model)
    blocks: list[Block] = []
    for part in message.content:
        if isinstance(part, Thinking):
            if signed_here and _is_intact(part, signed=not abilities.unsigned_thinking):
                blocks.append(_encode_thinking(part))
        elif isinstance(part, ToolCall):
            if part.complete:
                blocks.append(_encode_call(part))
        elif not is_blank(part.text):
            blocks.append(_text(scrub(part.text)))
    # A reply must not end in thinking: the provider refuses it whatever stands before.
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()
    return [Encoded({"role": "assistant", "content": blocks})] if blocks else []


def _is_intact(part: Thinking, *, signed: bool) -> bool:
    """Whether thinking can go back as it came: with its signature, or to a host that gives none, without."""
    if not signed:
        return not part.signature and bool(part.text) and is_clean(part.text)
    return bool(part.signature) and is_clean(part.text) and is_clean(part.signature or "")


def _encode_thinking(part: Thinking) -> Block:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    block = {"type": "thinking", "thinking": part.text}
    return {**block, "signature": part.signature} if part.signature else block


def _encode_call(call: ToolCall) -> Block:
    name = sendable_name(call.name)
    return {"type": "tool_use", "id": scrub(call.id), "name": name, "input": arguments_object(call)}


def _encode_step(results: tuple[ToolResult, ...], abilities: Abilities) -> list[Encoded]:
    blocks = [_encode_result(result, abilities) for result in results]
    for result in results:
        if result.is_error:
            for part in result.content:
                if not isinstance(part, Text) and _left_out(part, abilities) is None:
                    blocks += [_text(label_of(part, result)), _encode_part(part, abilities)]
    return [Encoded({"role": "user", "content": blocks})]


def _encode_result(result: ToolResult, abilities: Abilities) -> Block:
    content = []
    for part in result.content:
        if result.is_error and not isinstance(part, Text) and _left_out(part, abilities) is None:
            content.append(_text(follows(part)))  # an error may hold only text (A4)
        elif not is_empty(part):
            content.append(_encode_part(part, abilities))
    block: Block = {
        "type": "tool_result",
        "tool_use_id": scrub(result.call_id),
        "content": content or [_text(NO_OUTPUT)],
    }
    if result.is_error:
        block["is_error"] = True
    return block


def _encode_part(part: UserPart, abilities: Abilities) -> Block:
    if isinstance(part, Text):
        return _text(scrub(part.text))
    instead = _left_out(part, abilities)
    if instead is not None:
        return _text(instead)
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if isinstance(part, Image):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": document_name(part)}


def _left_out(part: Image | Document, abilities: Abilities) -> str | None:
    return left_out(part, abilities, known=part.media_type in MEDIA_TYPES)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def merge(before: Encoded, after: Encoded) -> Encoded:
    """One message of two neighbours, for hosts that demand the roles in turn."""
    return Encoded({"role": after["role"], "content": [*before["content"], *after["content"]]})


def _merge_neighbours(messages: Iterable[Encoded]) -> list[Encoded]:
    merged: list[Encoded] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = merge(merged[-1], message)
        else:
            merged.append(message)
    return merged
