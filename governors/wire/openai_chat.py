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

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..content import EMPTY_MESSAGE, NO_OUTPUT
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
from .base import Abilities, Payload
from .common import (
    arguments_text,
    effort_for,
    file_data,
    follows,
    is_blank,
    is_clean,
    is_empty,
    joined_text,
    label_of,
    left_out,
    media_memo,
    patch_text,
    remember_step,
    schema,
    sendable_name,
    steps,
)
from .encoded import Encoded
from .openai_chat_order import alternate, apart, wants_reply

WIRE = "openai_chat"

#: Stands for a call's signature where there is none, as the call came from elsewhere (G2). The provider's own word.
UNSIGNED = "skip_thought_signature_validator"

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
    encoded: list[Encoded] = []
    for item in steps(messages):
        encoded += encode_unit(item, abilities, model)
    if abilities.strict_alternation:
        encoded = alternate(encoded)
    encoded = apart(encoded, abilities)
    if not is_blank(system):
        encoded.insert(0, Encoded({"role": _system_role(abilities), "content": scrub(system)}))
    offered = {"tools": [_encode_tool(tool, abilities) for tool in tools]} if tools else {}  # an empty list is refused
    return {**offered, "messages": encoded}


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
    if thinking is not None:
        request.update(_thinking_fields(thinking, abilities, bool(parts.get("tools"))))
    if parts.get("tools"):  # an empty list is refused
        request["tools"] = parts["tools"]
    request["messages"] = parts["messages"]
    return request


def _thinking_fields(level: str, abilities: Abilities, with_tools: bool) -> dict[str, Any]:
    word = effort_for(level, abilities)
    if abilities.thinking == "none":
        return {}
    fields: dict[str, Any] = {}
    if abilities.thinking_field:
        fields["thinking"] = {"type": "disabled" if level == "off" else "enabled"}
        if level == "off":
            return fields
        if abilities.keeps_thinking:
            fields["thinking"]["clear_thinking"] = False
    if word is not None and (abilities.thinking_with_tools or not with_tools):
        fields["reasoning_effort"] = word
    return fields


def mark_cache(body: Payload, ttl: str | None = None, key: str | None = None) -> Payload:
    """`body` with `key` as its `prompt_cache_key`; itself without, or when it has one. Hosts of this protocol cache by
    themselves and take no marks."""
    if key is None or "prompt_cache_key" in body:
        return body
    rest = {name: value for name, value in body.items() if name != "messages"}
    return {**rest, "prompt_cache_key": key, **({"messages": body["messages"]} if "messages" in body else {})}


def takes_changes(abilities: Abilities) -> bool:
    """False: on this wire tools stand in the request's array and nowhere else."""
    return False


def _system_role(abilities: Abilities) -> str:
    return "developer" if abilities.developer_role else "system"


def encode_unit(item: Message | tuple[ToolResult, ...], abilities: Abilities, model: str | None) -> list[Encoded]:
    """The encoded form of a message or of all results of a step, kept with it."""
    if isinstance(item, tuple):
        key = f"{WIRE}/{media_memo(abilities)}/name={abilities.tool_name_in_result}/{wants_reply(abilities)}"
        return remember_step(item, key, partial(_encode_step, item, abilities))
    if isinstance(item, AssistantMessage):
        reasoning = f"{abilities.replay_reasoning}/{abilities.empty_reasoning}"
        shape = f"null={abilities.null_content}/reasoning={reasoning}/{abilities.call_signatures}"
        return remember(item, f"{WIRE}/{shape}/model={model!r}", partial(_encode_reply, item, abilities, model))
    if isinstance(item, SystemPatch) and abilities.folds_patches:
        return []
    anywhere = abilities.system_anywhere and not abilities.strict_alternation  # there it would part two of one role
    role = _system_role(abilities) if anywhere else "user"
    key = f"{WIRE}/{media_memo(abilities)}/patch={role}"
    return remember(item, key, partial(_encode_user, item, abilities, role))


def _encode_patch(patch: SystemPatch, role: str) -> Encoded:
    text = patch_text(patch.text) if role == "user" or is_blank(patch.text) else scrub(patch.text)
    return Encoded({"role": role, "content": text})


def _encode_user(message: Message, abilities: Abilities, patch_role: str) -> list[Encoded]:
    if isinstance(message, SystemPatch):
        return [_encode_patch(message, patch_role)]
    assert isinstance(message, UserMessage)
    parts = [_encode_part(part, abilities) for part in message.content if not is_empty(part)]
    if all(part["type"] == "text" for part in parts):
        text = "\n\n".join(part["text"] for part in parts)
        return [Encoded({"role": "user", "content": text or EMPTY_MESSAGE})]
    return [Encoded({"role": "user", "content": parts})]


def _encode_reply(message: AssistantMessage, abilities: Abilities, model: str | None) -> list[Encoded]:
    """A reply; none when nothing of it can be sent: it was only reasoning (C5), or empty."""
    text = joined_text(message.content)
    ours = message.wire == WIRE and (model is None or message.model == model)
    calls = [_encode_call(call) for call in message.calls if call.complete]
    if not calls:
        return [Encoded({"role": "assistant", "content": text})] if text else []
    fields: dict[str, Any] = {"role": "assistant", "content": text or (None if abilities.null_content else "")}
    if abilities.replay_reasoning:
        fields["reasoning_content"] = (_reasoning(message) if ours else "") or abilities.empty_reasoning
    if abilities.call_signatures:
        _sign(calls, [call for call in message.calls if call.complete], ours)
    fields["tool_calls"] = calls
    return [Encoded(fields)]


def _encode_call(call: ToolCall) -> Part:
    function = {"name": sendable_name(call.name), "arguments": arguments_text(call)}
    return {"id": scrub(call.id), "type": "function", "function": function}


def _sign(encoded: list[Part], calls: list[ToolCall], ours: bool) -> None:
    """Give calls their signatures back; the first of a reply must have one (G2)."""
    for index, (part, call) in enumerate(zip(encoded, calls, strict=True)):
        signature = call.signature if ours and call.signature and is_clean(call.signature) else None
        if signature or index == 0:
            part["extra_content"] = {"google": {"thought_signature": signature or UNSIGNED}}


def _reasoning(message: AssistantMessage) -> str:
    return "".join(scrub(part.text) for part in message.content if isinstance(part, Thinking))


def _encode_step(results: tuple[ToolResult, ...], abilities: Abilities) -> list[Encoded]:
    encoded = [_encode_result(result, abilities) for result in results]
    shown: list[Part] = []
    for result in results:
        for part in result.content:
            if not isinstance(part, Text) and _left_out(part, abilities) is None:
                shown += [_text(label_of(part, result)), _encode_part(part, abilities)]
    return apart([*encoded, Encoded({"role": "user", "content": shown})], abilities) if shown else encoded


def _encode_result(result: ToolResult, abilities: Abilities) -> Encoded:
    texts = [_result_text(part, abilities) for part in result.content if not is_empty(part)]
    text = "\n\n".join(texts) or NO_OUTPUT
    # The protocol has no flag for errors, so the text says it, unless it does so already.
    if result.is_error and not result.stand_in and not text.lstrip().casefold().startswith("error"):
        text = f"error: {text}"
    fields: dict[str, Any] = {"role": "tool", "tool_call_id": scrub(result.call_id)}
    if abilities.tool_name_in_result:
        fields["name"] = sendable_name(result.tool) or "unknown"
    fields["content"] = text
    return Encoded(fields)


def _result_text(part: UserPart, abilities: Abilities) -> str:
    if isinstance(part, Text):
        return scrub(part.text)
    return _left_out(part, abilities) or follows(part)


def _encode_part(part: UserPart, abilities: Abilities) -> Part:
    if isinstance(part, Text):
        return _text(scrub(part.text))
    instead = _left_out(part, abilities)
    if instead is not None:
        return _text(instead)
    if isinstance(part, Document):
        return {"type": "file", "file": file_data(part)}
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}


def _left_out(part: Image | Document, abilities: Abilities) -> str | None:
    return left_out(part, abilities, known=is_clean(part.media_type) and part.media_type.startswith("image/"))


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _encode_tool(tool: ToolSpec, abilities: Abilities) -> Part:
    function: Part = {"name": scrub(tool.name)}
    if not is_blank(tool.description):
        function["description"] = scrub(tool.description)
    function["parameters"] = schema(tool.parameters, references=abilities.schema_references)
    return {"type": "function", "function": function}
