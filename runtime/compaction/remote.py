"""What a provider's own compaction returns, by name: what of it counts, and what does not. Pure.

Kept are what users really said, prompts that hooks keep in the conversation, replies, and compactions. Dropped are
instructions, what poses as a user's message, calls and their results, reasoning, and triggers. Laws:
- Every kind has its name here. One that has not is an error: a default would keep instructions, or lose words.
- What is kept is the very object that came, in its order; filtering twice changes nothing.
- A part of a conversation that the runtime wraps is told by how the wrapping opens, which no user can write: inside
  what a user says such an opening is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import MoonwakeError

Item = Mapping[str, Any]

KEPT_KINDS: Final = frozenset({"compaction"})

#: Blocks that Anthropic's answers hold beside a compaction: text is what the model said.
SAID_KINDS: Final = frozenset({"text"})

DROPPED_KINDS: Final = frozenset(
    {
        "compaction_trigger",
        "reasoning",
        "thinking",
        "redacted_thinking",
        "additional_tools",
        "configuration_update",
        "item_reference",
        "tool_addition",
        "tool_removal",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "tool_use",
        "tool_result",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_list_tools",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "program",
        "program_output",
        "multi_agent_call",
        "multi_agent_call_output",
        "agent_message",
    }
)

DROPPED_ROLES: Final = frozenset({"developer", "system", "tool"})

#: How messages begin that have the user's role and that nobody said, but for what hooks keep there.
POSING: Final = (
    "[A summary of what was said before",
    "[What happened on another branch",
    "[Pinned entries from earlier",
    "[Earlier messages are left out",
    "[Earlier steps of this turn are left out",
    "[late result of ",
    "[What was said before was ",
    "<system-update>",
    "(the assistant speaks first)",
)


class UnknownItem(MoonwakeError):
    """The provider's compaction holds something of a kind that has no name here; the text says which."""


def kept(items: Sequence[Item]) -> tuple[Item, ...]:
    """What of `items` counts. Raises `UnknownItem`."""
    return tuple(item for item in items if _counts(item))


def compaction_in(items: Sequence[Item]) -> Item:
    """The one compaction among `items`. Raises `UnknownItem` for an unknown kind, `ValueError` for none or several, or
    for one that holds nothing; the text says so to a person."""
    found = [item for item in kept(items) if item.get("type") in KEPT_KINDS]
    if len(found) != 1:
        raise ValueError(f"it gave {len(found) or 'no'} compaction{'s' if len(found) > 1 else ''} in place of one")
    (item,) = found
    words = [item.get(name) for name in ("content", "encrypted_content")]
    if not any(isinstance(each, str) and each.strip() for each in words):
        raise ValueError("its compaction is empty")
    return item


def _counts(item: Item) -> bool:
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        return _message_counts(item)
    if kind in KEPT_KINDS or kind in SAID_KINDS:
        return True
    if kind in DROPPED_KINDS:
        return False
    raise UnknownItem(f"the provider's compaction holds an item of the unknown kind {kind!r}")


def _message_counts(item: Item) -> bool:
    role = item.get("role")
    if role == "assistant":
        return True
    if role == "user":
        return not _opening(item.get("content")).lstrip().startswith(POSING)
    if role in DROPPED_ROLES:
        return False
    raise UnknownItem(f"the provider's compaction holds a message of the unknown role {role!r}")


def _opening(content: Any) -> str:
    """The text that a message begins with; empty where it begins with a picture."""
    if isinstance(content, str):
        return content
    first = content[0] if isinstance(content, Sequence) and content else None
    text = first.get("text") if isinstance(first, Mapping) else None
    return text if isinstance(text, str) else ""
