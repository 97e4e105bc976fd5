"""The OpenAI Responses protocol: messages to a request body.

Laws:
- `encode` of a longer list extends `encode` of a shorter one, item by item, as long as neither ends in the middle of
  a step. A reply becomes several items: reasoning, texts and calls, in its own order.
- Nothing is stored at the provider (`store` is false), so items carry no ids and reasoning travels encrypted (O2).
- Where the model takes cache marks, the system prompt is the first item of the input, as `instructions` can carry none.
  Its mark stands beside the one that the provider sets at the end by itself, and is no part of the prefix.
- A reasoning item goes back with the item that followed it, to the model that gave it, and to no other (O2, C7).

A `Thinking` part is a reasoning item: `signature` its `encrypted_content`, `text` its summary. An item whose summary
has several parts is several `Thinking` parts, of which only the last is signed.

Field names and shapes: https://platform.openai.com/docs/api-reference/responses and the types of the official SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..content import EMPTY_MESSAGE, NO_OUTPUT
from ..messages import (
    AssistantMessage,
    Document,
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
from .base import EFFORTS, Abilities, Payload
from .common import (
    arguments_text,
    dump,
    effort_for,
    file_data,
    is_blank,
    is_clean,
    is_empty,
    left_out,
    media_memo,
    patch_text,
    remember_step,
    schema,
    sendable_name,
    steps,
)
from .compaction_items import given_back
from .encoded import Encoded

WIRE = "openai_responses"

#: The least `max_output_tokens` that the provider takes (O5).
LEAST_OUTPUT = 16

#: Tells of a tool whose definition stands earlier in the request, and holds no longer.
CHANGED = "This tool has changed. In place of its earlier definition this one holds:\n{tool}"

ENCRYPTED = "reasoning.encrypted_content"

#: The mark on a part of an item's content up to which the prompt is kept.
BREAKPOINT = "prompt_cache_breakpoint"

Item = dict[str, Any]


def encode(
    messages: Sequence[Message],
    *,
    system: str,
    tools: Sequence[ToolSpec],
    abilities: Abilities,
    model: str | None = None,
) -> Payload:
    """The parts `instructions`, `tools` and `input` of a request.

    `messages` are repaired ones (see `governors.repair`). Reasoning is kept in replies that came over this wire from
    `model`; with `model` None, from any model of this wire.
    """
    encoded: list[Encoded] = []
    leading: Payload = {}
    if not is_blank(system):
        if abilities.cache_marks:
            encoded.append(_front(system, abilities))
        else:
            leading["instructions"] = scrub(system)
    if tools:
        leading["tools"] = [_encode_tool(tool, abilities) for tool in tools]
    for item in steps(messages):
        encoded += encode_unit(item, abilities, model)
    return {**leading, "input": encoded}


def body(
    parts: Mapping[str, Any],
    *,
    model: str,
    max_output: int,
    abilities: Abilities,
    thinking: str | None = None,
) -> Payload:
    """A request body around encoded `parts`. `max_output` is in tokens; `thinking` None leaves it to the model."""
    request: Payload = {"model": model, "max_output_tokens": max(max_output, LEAST_OUTPUT), "store": False}
    effort = _effort(thinking, abilities) if thinking is not None else None
    if abilities.thinking != "none":
        request["include"] = [ENCRYPTED]  # models that do not reason refuse it
        reasoning = {} if effort is None else {"effort": effort}
        if abilities.summaries and effort != "none":
            reasoning["summary"] = "auto"
        if reasoning:
            request["reasoning"] = reasoning
    for part in ("instructions", "tools"):
        if parts.get(part):
            request[part] = parts[part]
    request["input"] = parts["input"]
    return request


def _effort(level: str, abilities: Abilities) -> str | None:
    """The word for a level; `off` is the least effort where the model cannot do without, as its default is not."""
    word = effort_for(level, abilities)
    able = [each for each in EFFORTS if each in abilities.efforts]
    return able[0] if word is None and able else word


def encode_unit(item: Message | tuple[ToolResult, ...], abilities: Abilities, model: str | None) -> list[Encoded]:
    """The items of a message or of all results of a step, kept with it."""
    if isinstance(item, tuple):
        return remember_step(item, f"{WIRE}/{media_memo(abilities)}", partial(_encode_step, item, abilities))
    if isinstance(item, AssistantMessage):
        return remember(item, f"{WIRE}/model={model!r}", partial(_encode_reply, item, model))
    if isinstance(item, SystemPatch):
        key = f"{WIRE}/patch/{patch_role(abilities)}/{abilities.folds_patches}/{abilities.inline_tools}"
        return remember(item, f"{key}/{abilities.schema_references}", partial(_encode_patch, item, abilities))
    compaction = f"/{abilities.compaction}" if isinstance(item, UserMessage) and item.item is not None else ""
    return remember(item, f"{WIRE}/{media_memo(abilities)}{compaction}", partial(_encode_user, item, abilities))


def takes_changes(abilities: Abilities) -> bool:
    """Whether tools may come inside the conversation (O3)."""
    return abilities.inline_tools


def patch_role(abilities: Abilities) -> str:
    """Whose role a system patch has: any may follow any on this wire, but not every compatible host keeps to that."""
    if not abilities.system_anywhere:
        return "user"
    return "developer" if abilities.developer_role else "system"


def opening(abilities: Abilities) -> None:
    """None: on this wire the assistant may speak first."""


def _encode_patch(patch: SystemPatch, abilities: Abilities) -> list[Encoded]:
    """What changed in words, then the tools that are new, where they can stand here.

    What a second definition of a name does is not documented: a tool that changed is told in words, and the first
    definition stays. A tool that is back was defined before; one that is gone is told in words.
    """
    if abilities.folds_patches:
        return []
    change, role = (patch.tools if abilities.inline_tools else None), patch_role(abilities)
    changed = [CHANGED.format(tool=dump(_encode_tool(tool, abilities))) for tool in change.changed] if change else []
    text = "\n\n".join(part for part in (scrub(patch.text), *changed) if part)
    words = _message(role, [_input_text(text if role != "user" and not is_blank(text) else patch_text(text))])
    if not change or not change.added:
        return [words]
    added = [_encode_tool(tool, abilities) for tool in change.added]
    return [words, Encoded({"type": "additional_tools", "role": "developer", "tools": added})]


def _front(system: str, abilities: Abilities) -> Encoded:
    """The system prompt as the first item, marked at its end: what sessions with one front share is kept apart (O6)."""
    part = {**_input_text(scrub(system)), BREAKPOINT: {"mode": "explicit"}}
    return _message("developer" if abilities.developer_role else "system", [part])


def _encode_user(message: Message, abilities: Abilities) -> list[Encoded]:
    assert isinstance(message, UserMessage)
    item = given_back(message, WIRE, abilities)
    if item is not None:
        return [Encoded(item)]
    parts = [_encode_part(part, abilities) for part in message.content if not is_empty(part)]
    return [_message("user", parts or [_input_text(EMPTY_MESSAGE)])]


def _encode_reply(message: AssistantMessage, model: str | None) -> list[Encoded]:
    """A reply's items; none when nothing of it can be sent: it was only reasoning (C5), or empty."""
    ours = message.wire == WIRE and (model is None or message.model == model)
    items: list[Encoded] = []
    summary: list[str] = []
    for part in message.content:
        if isinstance(part, Thinking):
            summary += [part.text] if part.text else []
            if part.signature and ours and is_clean(part.signature) and all(map(is_clean, summary)):
                items.append(_reasoning(summary, part.signature))
            if part.signature:
                summary = []
            continue
        summary = []
        if isinstance(part, ToolCall):
            if part.complete:
                items.append(_encode_call(part))
            else:  # what was reasoned before a call goes with it
                _drop_reasoning(items)
        elif not is_blank(part.text):
            said = _message("assistant", [{"type": "output_text", "text": scrub(part.text)}])
            if part.phase is not None and ours and is_clean(part.phase):
                said["phase"] = part.phase
            items.append(said)
    _drop_reasoning(items)
    return items


def _drop_reasoning(items: list[Encoded]) -> None:
    """Take reasoning off the end: the item that must follow it is not sent (O2)."""
    while items and items[-1]["type"] == "reasoning":
        items.pop()


def _reasoning(summary: list[str], encrypted: str) -> Encoded:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return Encoded({"type": "reasoning", "summary": parts, "encrypted_content": encrypted})


def _encode_call(call: ToolCall) -> Encoded:
    return Encoded(
        {
            "type": "function_call",
            "call_id": scrub(call.id),
            "name": sendable_name(call.name),
            "arguments": arguments_text(call),
        }
    )


def _encode_step(results: tuple[ToolResult, ...], abilities: Abilities) -> list[Encoded]:
    return [
        Encoded(
            {
                "type": "function_call_output",
                "call_id": scrub(result.call_id),
                "output": _encode_output(result, abilities),
            }
        )
        for result in results
    ]


def _encode_output(result: ToolResult, abilities: Abilities) -> str | list[Item]:
    """One text where it can be; a list when there are images or documents."""
    parts = [_encode_part(part, abilities) for part in result.content if not is_empty(part)]
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    # The protocol has no flag for errors, so the text says it, unless it does so already.
    flagged = result.is_error and not result.stand_in
    says_so = bool(texts) and texts[0].lstrip().casefold().startswith("error")
    if len(texts) == len(parts):
        text = "\n\n".join(texts) or NO_OUTPUT
        return f"error: {text}" if flagged and not says_so else text
    return [_input_text("error:"), *parts] if flagged and not says_so else parts


def _encode_part(part: UserPart, abilities: Abilities) -> Item:
    if isinstance(part, Text):
        return _input_text(scrub(part.text))
    known = is_clean(part.media_type) and part.media_type.startswith("image/")
    instead = left_out(part, abilities, known=known)
    if instead is not None:
        return _input_text(instead)
    if isinstance(part, Document):
        return {"type": "input_file", **file_data(part)}
    return {"type": "input_image", "detail": "auto", "image_url": f"data:{part.media_type};base64,{part.data}"}


def _message(role: str, content: list[Item]) -> Encoded:
    return Encoded({"type": "message", "role": role, "content": content})


def _input_text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _encode_tool(tool: ToolSpec, abilities: Abilities) -> Encoded:
    block: Item = {"type": "function", "name": scrub(tool.name)}
    if not is_blank(tool.description):
        block["description"] = scrub(tool.description)
    block["parameters"] = schema(tool.parameters, references=abilities.schema_references)
    block["strict"] = False  # the default here is true, which refuses most schemas
    return Encoded(block)
