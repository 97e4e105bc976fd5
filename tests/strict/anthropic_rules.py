"""What the Messages API refuses, in its own words; from its documentation and from refusals that people reported."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from .anthropic_message import BLOCKS, NAME, bad, check_block, check_message, check_pictures
from .anthropic_thinking import Produced, Read, check_thinking, digest_of
from .claude import Claude
from .compacted import begins_compacted, check_blocks
from .refusal import Refused, canonical

FIELDS = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "service_tier",
        "cache_control",
        "context_management",
        "compaction",
        "container",
        "mcp_servers",
    ]
)
MOST_BYTES = 32_000_000
BINDING_BETA = "thinking-binding-controls-2026-08-01"
TOOLS_BETA = "inline-tools-2026-09-15"


def read_request(
    body: Mapping[str, Any],
    size: int,
    betas: frozenset[str],
    claude: Claude,
    produced: Mapping[str, Produced],
    compacted: Mapping[str, Mapping[str, Any]],
) -> Read:
    """Raises `Refused`."""
    if size > MOST_BYTES:
        raise Refused(413, "request_too_large", "Request exceeds the maximum size")
    for name in body:
        if name not in FIELDS:
            raise bad(f"{name}: Extra inputs are not permitted")
    _fields(body, betas, claude)
    _tools(body.get("tools"), claude)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad("messages: at least one message is required")
    if len(messages) > 100_000:
        raise bad("messages: at most 100000 messages are allowed")
    _order(messages, body, betas, claude)
    for position, message in enumerate(messages):
        check_message(message, f"messages.{position}")
    last = messages[-1]["content"]
    check_blocks(body, betas, compacted, last if isinstance(last, list) else [])
    _pairs(messages)
    check_pictures(messages, claude)
    read = _blocks(body, messages)
    check_thinking(body, messages, claude, produced, read)
    return read


def _fields(body: Mapping[str, Any], betas: frozenset[str], claude: Claude) -> None:
    most = body.get("max_tokens")
    if not isinstance(most, int) or most < 1:
        raise bad("max_tokens: Input should be greater than or equal to 1")
    thinking = body.get("thinking") or {}
    kind = thinking.get("type")
    if kind not in (None, "adaptive", "enabled", "disabled") or (kind and claude.thinking == "none"):
        raise bad("thinking: Extra inputs are not permitted")
    if kind == "adaptive" and claude.thinking != "adaptive":
        raise bad("adaptive thinking is not supported on this model")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if claude.thinking != "budget":
            raise bad('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"')
        if not isinstance(budget, int) or budget < 1024:
            raise bad("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= most:
            raise bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if thinking.get("block_binding") is not None and (BINDING_BETA not in betas or not claude.gentle):
        raise bad("thinking.adaptive.block_binding: Extra inputs are not permitted")
    effort = (body.get("output_config") or {}).get("effort")
    if effort not in (None, "low", "medium", "high", "xhigh", "max") or (effort and claude.thinking != "adaptive"):
        raise bad("output_config.effort: this model does not support the effort parameter")
    for name in ("temperature", "top_p", "top_k"):
        if name in body and (not claude.sampling or kind in ("enabled", "adaptive")):
            raise bad(f"`{name}` is not supported for this model.")
    choice = (body.get("tool_choice") or {}).get("type")
    if choice in ("any", "tool") and (not claude.forced or kind in ("enabled", "adaptive")):
        raise bad("Thinking may not be enabled when tool_choice forces tool use.")


def _tools(tools: Any, claude: Claude) -> None:
    if tools is None:
        return
    names = [tool.get("name") for tool in tools]
    if not tools or len(set(names)) != len(names):
        raise bad("tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        _tool(tool, f"tools.{index}")
    if all(tool.get("defer_loading") for tool in tools):
        raise bad("tools: At least one tool must not have defer_loading=true")


def _tool(tool: Mapping[str, Any], where: str) -> None:
    if not NAME.fullmatch(str(tool.get("name"))):
        raise bad(f"{where}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise bad(f"{where}.custom.input_schema.type: Input should be 'object'")
    if tool.get("defer_loading") and tool.get("cache_control"):
        raise bad(f"{where}: Tools with defer_loading=true cannot have cache_control set")
    if "description" in tool and not isinstance(tool["description"], str):
        raise bad(f"{where}.custom.description: Input should be a valid string")


def _order(messages: list[Any], body: Mapping[str, Any], betas: frozenset[str], claude: Claude) -> None:
    roles = [message.get("role") for message in messages]
    if roles[0] != "user" and not begins_compacted(body):
        raise bad('messages: first message must use the "user" role')
    known = {tool["name"] for tool in body.get("tools") or ()}
    for position, role in enumerate(roles):
        before = roles[position - 1] if position else None
        if role not in BLOCKS or (role == "system" and not claude.system_inside):
            raise bad(f'messages.{position}: Unexpected role "{role}". Allowed roles are "user" or "assistant".')
        if claude.alternates and role == before:
            raise bad('invalid params, messages: roles must alternate between "user" and "assistant" (2013)')
        if role == "system":
            if before != "user" or (position + 1 < len(roles) and roles[position + 1] != "assistant"):
                raise bad(f"messages.{position}: role 'system' must follow 'user' and be last or precede 'assistant'")
            _changes(messages[position], position, known, betas, claude)
    if roles[-1] == "assistant" and not claude.prefill and not body.get("compaction"):
        raise bad(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _changes(message: Any, position: int, known: set[str], betas: frozenset[str], claude: Claude) -> None:
    for index, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
        if block.get("type") not in ("tool_addition", "tool_removal"):
            continue
        where = f"messages.{position}.content.{index}"
        if TOOLS_BETA not in betas or not claude.inline_tools:
            raise bad(
                f"{where}: Input tag '{block['type']}' found using 'type' does not match any of the expected tags"
            )
        tool = block["tool"]
        if tool["type"] == "tool_definition":
            _tool(tool["definition"], where)
            known.add(tool["definition"]["name"])
        elif tool.get("name") not in known:
            raise bad(f"{where}.tool.name: Tool reference '{tool.get('name')}' not found in available tools")


def _pairs(messages: list[Any]) -> None:
    """Each call is answered in the very next message, and nothing else is."""
    seen: set[str] = set()
    open_calls: list[str] = []
    for position, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if len(results) != len(set(results)):
            raise bad(f"messages.{position}: each tool_use must have a single result")
        for index, result in enumerate(results):
            if result not in open_calls:
                raise bad(
                    f"messages.{position}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{result}. Each must have a corresponding `tool_use` block in the previous message."
                )
        missing = [call for call in open_calls if call not in results]
        if missing:
            raise bad(
                f"messages.{position - 1}: `tool_use` ids were found without `tool_result` blocks after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(open_calls) != len(set(open_calls)) or seen & set(open_calls):
            raise bad(f"messages.{position}: `tool_use` ids must be unique")
        seen |= set(open_calls)
    if open_calls:
        raise bad(
            f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"
        )


def _blocks(body: Mapping[str, Any], messages: list[Any]) -> Read:
    """Every block of the prompt in the order in which it is rendered, and the marks on them."""
    system = body.get("system") or []
    system = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for index, block in enumerate(system):
        check_block(block, f"system.{index}")
    blocks, marks = [], []
    rendered = [("tool", tool) for tool in body.get("tools") or ()] + [("system", block) for block in system]
    for message in messages:
        content = message["content"]
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        rendered += [(message["role"], block) for block in content]
    for role, block in rendered:
        blocks.append(canonical([role, without_marks(block)]))
        if block.get("cache_control"):
            marks.append((len(blocks) - 1, _lasts(block["cache_control"])))
    if len(marks) + bool(body.get("cache_control")) > 4:
        raise bad(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    if any(not before[1] and after[1] for before, after in pairwise(marks)):
        raise bad("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")
    return Read(blocks, marks, digest_of(blocks))


def _lasts(mark: Mapping[str, Any]) -> bool:
    if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
        raise bad("cache_control: Input should be 'ephemeral' with a ttl of '5m' or '1h'")
    return mark.get("ttl") == "1h"


def without_marks(value: Any) -> Any:
    """`value` without `cache_control`, however deep."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value
