"""What the Responses API refuses of a request that stores nothing, in its own words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .compacted import check_items
from .refusal import Refused, canonical, picture_problem, read_json

FIELDS = frozenset(
    [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "reasoning",
        "include",
        "store",
        "stream",
        "prompt_cache_key",
        "prompt_cache_options",
        "text",
        "truncation",
        "previous_response_id",
        "conversation",
        "metadata",
        "service_tier",
        "context_management",
    ]
)
KINDS = frozenset(
    [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "additional_tools",
        "configuration_update",
        "compaction",
        "compaction_trigger",
    ]
)
PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "function_call_output": "fc_"}


@dataclass(frozen=True, slots=True)
class Sealed:
    """Reasoning that the host encrypted: whose it is, what stood before it, and what followed it."""

    model: str
    before: str
    follower: str


@dataclass(slots=True)
class Read:
    blocks: list[bytes]
    digest: str
    dropped: list[str] = field(default_factory=list)


def bad(text: str, param: str | None = None, code: str | None = None) -> Refused:
    return Refused(400, "invalid_request_error", text, param=param, code=code)


def read_request(
    body: Mapping[str, Any], sealed: Mapping[str, Sealed], compacted: Mapping[str, str], *, binds: bool
) -> Read:
    """Raises `Refused`."""
    for name in body:
        if name not in FIELDS:
            raise bad(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    _fields(body)
    items = body.get("input")
    if not isinstance(items, list) or not items:
        raise bad("One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided.")
    for index, item in enumerate(items):
        _item(item, f"input[{index}]")
    check_items(items, compacted)
    _pairs(items)
    return _reasoning(body, items, sealed, binds)


def _fields(body: Mapping[str, Any]) -> None:
    if body.get("store") is not False:
        raise bad("This organization keeps nothing: 'store' must be false.", "store")
    most = body.get("max_output_tokens")
    if not isinstance(most, int) or most < 16:
        raise bad(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.", "max_output_tokens"
        )
    for name in ("temperature", "top_p", "max_tokens"):
        if name in body:
            raise bad(f"Unsupported parameter: '{name}' is not supported with this model.", name)
    if body.get("previous_response_id") and body.get("conversation"):
        raise bad("Mutually exclusive parameters: 'previous_response_id', 'conversation'.")
    for value in body.get("include") or ():
        if value != "reasoning.encrypted_content":
            raise bad(f"Invalid value: '{value}'.", "include")
    effort = (body.get("reasoning") or {}).get("effort")
    if effort not in (None, "none", "minimal", "low", "medium", "high", "xhigh", "max"):
        raise bad(f"Invalid value: '{effort}'.", "reasoning.effort")
    if "tools" in body:
        _tools(body["tools"], "tools")


def _tools(tools: Any, where: str) -> None:
    names = [tool.get("name") for tool in tools]
    if not tools or len(set(names)) != len(names):
        raise bad(f"Invalid '{where}': tool names must be unique and at least one is needed.", where)
    for index, tool in enumerate(tools):
        if tool.get("type") != "function" or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(tool.get("name"))):
            raise bad(f"Invalid '{where}[{index}].name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
        schema = tool.get("parameters")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise bad(f"Invalid schema for function '{tool['name']}': schema must be of 'type: \"object\"'")


def _item(item: Any, where: str) -> None:
    kind = item.get("type", "message")
    if kind not in KINDS:
        raise bad(f"Invalid value: '{kind}'.", f"{where}.type")
    identity = item.get("id")
    if identity is not None and (len(identity) > 64 or not identity.startswith(PREFIXES.get(kind, ""))):
        raise bad(f"Invalid '{where}.id': '{identity}'. Expected an ID that begins with '{PREFIXES.get(kind)}'.")
    match kind:
        case "message":
            _message(item, where)
        case "function_call":
            _call(item, where)
        case "function_call_output":
            _output(item, where)
        case "reasoning":
            if not isinstance(item.get("summary"), list) or not item.get("encrypted_content"):
                raise bad(f"Missing required parameter: '{where}.summary'.")
        case "additional_tools":
            if item.get("role") != "developer":
                raise bad(f"Invalid value for '{where}.role'.")
            _tools(item["tools"], f"{where}.tools")


def _message(item: Mapping[str, Any], where: str) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        raise bad(f"Invalid value: '{role}'.", f"{where}.role")
    if not content:
        raise bad(f"Invalid '{where}.content': must not be empty.")
    known = {"output_text", "refusal"} if role == "assistant" else {"input_text", "input_image", "input_file"}
    for index, part in enumerate(content if isinstance(content, list) else ()):
        place = f"{where}.content[{index}]"
        if part.get("type") not in known:
            raise bad(f"Invalid value: '{part.get('type')}'. Supported values are: {sorted(known)}.", place)
        _part(part, place)


def _part(part: Mapping[str, Any], place: str) -> None:
    if part["type"] in ("input_text", "output_text") and not str(part.get("text")).strip():
        raise bad(f"Invalid '{place}.text': must not be empty.")
    if part["type"] == "input_image":
        media, _, data = part["image_url"].removeprefix("data:").partition(";base64,")
        if problem := picture_problem(data, media):
            raise bad(f"Invalid '{place}.image_url': {problem}", code="invalid_base64")


def _call(item: Mapping[str, Any], where: str) -> None:
    if not re.fullmatch(r"[^\ud800-\udfff]{1,64}", str(item.get("call_id") or "")):
        raise bad(f"Invalid '{where}.call_id': empty string or too long.")
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(item.get("name"))):
        raise bad(f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
    arguments = item.get("arguments")
    try:
        value = read_json(arguments.encode()) if isinstance(arguments, str) else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise bad(f"Invalid '{where}.arguments': expected a string with the JSON of an object.")


def _output(item: Mapping[str, Any], where: str) -> None:
    output = item.get("output")
    if not output or not isinstance(output, str | list):
        raise bad(f"Missing required parameter: '{where}.output'.")
    for index, part in enumerate(output if isinstance(output, list) else ()):
        if part.get("type") not in ("input_text", "input_image", "input_file"):
            raise bad(f"Invalid value: '{part.get('type')}'.", f"{where}.output[{index}]")
        _part(part, f"{where}.output[{index}]")


def _pairs(items: list[Any]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    if len(set(calls)) != len(calls) or len(set(outputs)) != len(outputs):
        raise bad("Duplicate item found with the same call_id. Remove duplicate items from your input and try again.")
    seen: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            seen.add(item["call_id"])
        elif item.get("type") == "function_call_output" and item["call_id"] not in seen:
            raise bad(f"No tool call found for function call output with call_id {item['call_id']}.", "input")
    for call in calls:
        if call not in outputs:
            raise bad(f"No tool output found for function call {call}.", "input")


def _reasoning(body: Mapping[str, Any], items: list[Any], sealed: Mapping[str, Sealed], binds: bool) -> Read:
    front = [canonical([name, body.get(name)]) for name in ("instructions", "tools", "text")]
    read = Read(front, "")
    for index, item in enumerate(items):
        if item.get("type") == "reasoning":
            where = f"input[{index}]"
            origin = sealed.get(item["encrypted_content"])
            if origin is None or origin.model != body["model"]:
                raise bad(
                    f"The encrypted content for item {where} could not be verified. Reason: it could not be parsed.",
                    code="invalid_encrypted_content",
                )
            after = next((each for each in items[index + 1 :] if each.get("type") != "reasoning"), {})
            if after.get("type", "message") != origin.follower or after.get("role", "assistant") != "assistant":
                raise bad(f"Item '{where}' of type 'reasoning' was provided without its required following item.")
            first = index == 0 or items[index - 1].get("type") != "reasoning"
            compacted = any(each.get("type") == "compaction" for each in items[:index])
            if (
                binds
                and first
                and not compacted
                and origin.before != digest_of(read.blocks)
                and not _inside_reply(items, index)
            ):
                read.dropped.append(where)
        read.blocks.append(canonical(item))
    read.digest = digest_of(read.blocks)
    return read


def _inside_reply(items: list[Any], index: int) -> bool:
    """Whether more of the same reply stands before: what it is bound to is then further up."""
    before = items[index - 1] if index else {}
    return before.get("type") in ("function_call", "reasoning") or before.get("role") == "assistant"


def digest_of(blocks: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(blocks)).hexdigest()
