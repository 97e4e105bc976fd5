"""What hosts of Chat Completions refuse, in the words of those that say it best."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .chat_hosts import Host
from .refusal import Refused, picture_problem, read_json

FIELDS = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "response_format",
        "reasoning_effort",
        "prompt_cache_key",
        "user",
        "metadata",
    ]
)
MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
#: Stands for a signature that is not there.
SKIP = "skip_thought_signature_validator"


def bad(text: str, code: str | None = None, status: int = 400) -> Refused:
    return Refused(status, "invalid_request_error", text, code=code)


def check(body: Mapping[str, Any], host: Host, signatures: Mapping[str, str]) -> None:
    """Raises `Refused`. `signatures`: the ids of calls by the signatures that the host gave them."""
    _fields(body, host)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array.")
    thinks = _thinks(body, host)
    for index, message in enumerate(messages):
        _message(message, index, host, thinks)
    _order(messages, host)
    _pairs(messages)
    shown = [part for message in messages for part in _parts(message) if part.get("type") == "image_url"]
    if len(shown) > host.pictures:
        raise bad(f"Too many images in request: {len(shown)}; at most {host.pictures} are supported")
    if host.signs:
        _signatures(messages, signatures)


def _thinks(body: Mapping[str, Any], host: Host) -> bool:
    return host.thinks is not None and (body.get("thinking") or {}).get("type") != "disabled"


def _fields(body: Mapping[str, Any], host: Host) -> None:
    known = FIELDS | ({"thinking"} if host.thinking_field else set())
    for name in body:
        if name not in known and not host.strange_fields:
            raise bad(
                f"Unrecognized request argument supplied: {name}", status=422 if host.errors == "mistral" else 400
            )
    if body.get("stream_options") is not None and not host.stream_options:
        raise bad("body.stream_options.include_usage: Extra inputs are not permitted", "extra_forbidden", 422)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and (name not in host.length or not isinstance(body[name], int) or body[name] < 1):
            raise bad(f"Unsupported parameter: '{name}' is not supported with this model.", "unsupported_parameter")
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in host.efforts:
        raise bad(
            f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model.", "unsupported_value"
        )
    if effort not in (None, "none") and body.get("tools") and not host.effort_with_tools:
        raise bad("Function tools with reasoning_effort are not supported in /v1/chat/completions. Use /v1/responses")
    forced = body.get("tool_choice") not in (None, "auto", "none")
    if forced and not host.forced:
        raise bad("tool_choice 'required' is incompatible with thinking enabled")
    if "tools" in body:
        _tools(body["tools"], host)


def _tools(tools: Any, host: Host) -> None:
    if not isinstance(tools, list) or not tools:
        raise bad("Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array.")
    names = [tool["function"].get("name") for tool in tools]
    if len(set(names)) != len(names):
        raise bad("Tool names must be unique")
    for index, tool in enumerate(tools):
        name, parameters = tool["function"].get("name"), tool["function"].get("parameters")
        if tool.get("type") != "function" or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(name)):
            raise bad(f"Invalid 'tools[{index}].function.name': string does not match pattern.")
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            raise bad(f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'")
        if not host.references and "$ref" in json.dumps(parameters):
            raise bad(f"Invalid schema for function '{name}': $ref is not supported")


def _message(message: Any, index: int, host: Host, thinks: bool) -> None:
    role = message.get("role")
    if role not in MESSAGE_FIELDS or (role in ("system", "developer") and role not in host.roles):
        raise bad(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', and 'tool'.")
    known = MESSAGE_FIELDS[role] | (set() if host.reasoning == "refused" else {"reasoning_content"})
    for name in set(message) - known:
        if not host.strange_fields:
            raise bad(f"'messages.{index}' : for 'role:{role}' ... property '{name}' is unsupported")
    _content(message, index, host)
    if role == "assistant" and message.get("tool_calls") is not None:
        _calls(message, index, host)
        reasoning = message.get("reasoning_content")
        if thinks and host.reasoning == "field" and not isinstance(reasoning, str):
            raise bad("The `reasoning_content` in the thinking mode must be passed back to the API.")
        if thinks and host.reasoning == "text" and not reasoning:
            raise bad(
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
            )
    if role == "tool":
        if not message.get("tool_call_id"):
            raise bad(f"Missing required parameter: 'messages[{index}].tool_call_id'.")
        if host.names_results and not message.get("name"):
            raise bad(f"messages[{index}]: a tool message must have a name")


def _content(message: Mapping[str, Any], index: int, host: Host) -> None:
    role, content = message["role"], message.get("content")
    if content is None:
        if role != "assistant" or not message.get("tool_calls") or not host.null_content:
            raise bad(f"Invalid value for 'content': expected a string, got null. (messages[{index}])")
        return
    if isinstance(content, str):
        empty = not content.strip() and role != "assistant"
        if empty or (role == "assistant" and not content and not message.get("tool_calls")):
            raise bad(f"messages[{index}]: content must not be empty")
        return
    if not isinstance(content, list) or not content:
        raise bad(f"Invalid 'messages[{index}].content': expected a string or a non-empty array.")
    for place, part in enumerate(content):
        where = f"messages[{index}].content[{place}]"
        if part.get("type") == "text":
            if not str(part.get("text")).strip():
                raise bad(f"Invalid '{where}.text': must not be empty")
        elif part.get("type") == "image_url" and role == "user":
            media, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
            if problem := picture_problem(data, media):
                raise bad(f"Invalid '{where}.image_url': {problem}", "invalid_image_url")
        else:
            raise bad(f"Invalid value: '{part.get('type')}' at {where} for role {role}.")


def _parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    yield from content if isinstance(content, list) else ()


def _calls(message: Mapping[str, Any], index: int, host: Host) -> None:
    calls = message["tool_calls"]
    if not isinstance(calls, list) or not calls:
        raise bad(f"Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum length 1.")
    for place, call in enumerate(calls):
        where = f"messages[{index}].tool_calls[{place}]"
        function = call.get("function") or {}
        if call.get("type") != "function" or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(function.get("name"))):
            raise bad(f"Invalid '{where}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
        if not re.fullmatch(host.identity, str(call.get("id"))):
            if host.errors == "mistral":
                raise bad(f"Tool call id was {call.get('id')} but must be a-z, A-Z, 0-9, with a length of 9.", "3280")
            raise bad(f"Invalid '{where}.id': string too long or malformed: {call.get('id')!r}")
        arguments = function.get("arguments")
        try:
            value = read_json(arguments.encode("utf-8")) if isinstance(arguments, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise bad(f"Invalid '{where}.function.arguments': not the JSON of an object")


def _order(messages: list[Any], host: Host) -> None:
    spoken: str | None = None
    roles = [message["role"] for message in messages]
    for index, role in enumerate(roles):
        before = roles[index - 1] if index else None
        if role in ("system", "developer") and index and not host.system_anywhere:
            raise bad("System message must be at the beginning.")
        if role == "user" and before == "tool" and not host.user_after_tool:
            raise bad("Unexpected role 'user' after role 'tool'", "3230")
        if role == "tool" and before not in ("assistant", "tool"):
            raise bad("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
        if host.alternates and role in ("user", "assistant") and not messages[index].get("tool_calls"):
            if role == spoken or (spoken is None and role == "assistant"):
                raise bad(
                    "After the optional system message, conversation roles must alternate "
                    "user/assistant/user/assistant/..."
                )
            spoken = role
    if roles[-1] == "assistant" and host.errors == "mistral":
        raise bad("Expected last role User or Tool for serving but got assistant", "3240")


def _pairs(messages: list[Any]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise bad(
                    f"messages[{index}]: tool_call_id {message['tool_call_id']!r} not found in the tool_calls before"
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise bad(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) != len(waiting) or seen & set(waiting):
            raise bad(f"messages[{index}]: duplicate tool call id")
        seen |= set(waiting)
    if waiting:
        raise bad("An assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'.")


def _signatures(messages: list[Any], known: Mapping[str, str]) -> None:
    for index, message in enumerate(messages):
        for place, call in enumerate(message.get("tool_calls") or ()):
            signature = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
            name = call["function"]["name"]
            if signature is None and place == 0:
                raise bad(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                    f"data, function call `default_api:{name}`, position {index}."
                )
            if signature not in (None, SKIP) and known.get(signature) != name:
                raise bad("Thought signature is not valid.")
