"""Which lines of a Codex rollout are no part of the conversation, and how its items read.

What is known of them comes from the program's own source (`codex-rs/protocol/src/{protocol,models}.rs`,
`codex-rs/history/src/lib.rs`).
"""

from __future__ import annotations

import json
from typing import Any, Literal

from governors.messages import Text, Thinking, ToolCall, Usage, UserPart

from .parts import Lose, Object, a_text, an_object, call, count, objects, said, text_of

_TWICE = "an event that tells again what an item of the conversation says"
_STATE = "the state of a turn, as it was shown while it ran"
#: Events that are left, with the reason.
LEFT_EVENTS = {
    **dict.fromkeys(
        (
            "user_message",
            "agent_message",
            "agent_reasoning",
            "agent_reasoning_raw_content",
            "agent_reasoning_section_break",
            "item_started",
            "item_completed",
            "raw_response_item",
            "exec_command_begin",
            "exec_command_end",
            "exec_command_output_delta",
            "mcp_tool_call_begin",
            "mcp_tool_call_end",
            "patch_apply_begin",
            "patch_apply_end",
            "web_search_begin",
            "web_search_end",
            "image_generation_begin",
            "image_generation_end",
            "view_image_tool_call",
            "dynamic_tool_call_request",
            "dynamic_tool_call_response",
            "context_compacted",
        ),
        _TWICE,
    ),
    **dict.fromkeys(
        (
            "task_started",
            "turn_started",
            "task_complete",
            "turn_complete",
            "turn_diff",
            "plan_update",
            "plan_delta",
            "session_configured",
            "thread_settings_applied",
            "thread_goal_updated",
            "undo_started",
            "undo_completed",
            "shutdown_complete",
            "mcp_startup_update",
            "mcp_startup_complete",
            "entered_review_mode",
            "exited_review_mode",
            "background_event",
            "collab_agent_spawn_begin",
            "collab_agent_spawn_end",
            "request_user_input",
            "exec_approval_request",
            "apply_patch_approval_request",
            "elicitation_request",
            "hook_started",
            "hook_completed",
            "skills_update_available",
        ),
        _STATE,
    ),
}
#: Lines of other types that are left.
LEFT = {
    "world_state": "the state of the surroundings, which Codex tells its models itself",
    "retained_context": "what Codex keeps of messages across compactions; the messages stand on their own lines",
    "security_risk_score": "how risky Codex held a step to be",
    "realtime_item": "what was shown of a spoken conversation",
    "inter_agent_communication": "a message between agents; what came in stands as an item",
    "inter_agent_communication_metadata": "a message between agents; what came in stands as an item",
}
#: Items that are left.
LEFT_ITEMS = {
    "ghost_snapshot": "a snapshot of the repository, for taking edits back",
    "additional_tools": "tools that Codex offered",
    "compaction_trigger": "the request for a compaction",
    **dict.fromkeys(
        ("compaction", "compaction_summary", "context_compaction"),
        "a summary that only its provider can read: what stands before it stays in view",
    ),
}
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output", "mcp_tool_call_output")
_SURROUNDINGS = "<environment_context>"
_INSTRUCTIONS = (
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<skills_instructions>",
)
_META = ("<turn_aborted>", "<user_shell_command>", "<subagent_notification>", "<hook_")


def user_kind(item: Object, text: str) -> Literal["surroundings", "instructions", "meta", "said"]:
    """What a message in the user's role is: Codex says a few things there itself, which newer versions mark."""
    told = an_object(item.get("internal_chat_message_metadata_passthrough"))
    kinds = [a_text(kind) for kind in _list(told.get("content_item_kinds"))]
    text = text.lstrip()
    if text.startswith(_SURROUNDINGS) or (kinds and all("environment" in kind for kind in kinds)):
        return "surroundings"
    if text.startswith(_INSTRUCTIONS) or (kinds and all("instructions" in kind for kind in kinds)):
        return "instructions"
    provenance = [an_object(each.get("provenance")).get("type") for each in objects(told.get("content_item_metadata"))]
    by_harness = bool(provenance) and all(each == "harness" for each in provenance)
    return "meta" if by_harness or text.startswith(_META) else "said"


def reply_part(item: Object, lose: Lose) -> ToolCall | Thinking | Text | None:
    """What an item adds to a reply, other than a message; None for what is no part of one."""
    match item.get("type"):
        case "reasoning":
            return _reasoning(item)
        case "function_call":
            return call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
        case "custom_tool_call":
            return call(item.get("call_id") or item.get("id"), item.get("name"), {"input": item.get("input")})
        case "local_shell_call":
            return call(item.get("call_id") or item.get("id"), "local_shell", dict(an_object(item.get("action"))))
        case "tool_search_call":
            return call(item.get("call_id") or item.get("id"), "tool_search", item.get("arguments"))
        case "web_search_call":
            action = an_object(item.get("action"))
            told = a_text(action.get("query")) or a_text(action.get("url")) or a_text(action.get("type"))
            lose("what a search at the provider found")
            return Text(f"[searched the web: {told}]")
        case "image_generation_call":
            lose("a picture that the model made")
            return Text(f"[made a picture: {a_text(item.get('revised_prompt'))}]")
        case _:
            return None


def _reasoning(item: Object) -> Thinking:
    told = text_of([*objects(item.get("summary")), *objects(item.get("content"))])
    return Thinking(told, a_text(item.get("encrypted_content")) or None)


def output(item: Object, lose: Lose) -> tuple[tuple[UserPart, ...], bool]:
    """The content of an output, and whether it is an error."""
    told: Any = item.get("output", item.get("result", item.get("tools")))
    failed = item.get("status") in ("failed", "incomplete")
    if isinstance(told, dict):
        failed = failed or told.get("success") is False or told.get("isError") is True
        told = told.get("content", told.get("body", told))
    if isinstance(told, dict) or (isinstance(told, list) and item.get("type") == "tool_search_output"):
        told = json.dumps(told, ensure_ascii=False)
    return said(told, lose), failed


def usage_of(told: Any) -> Usage | None:
    told = an_object(told)
    cached, written = count(told.get("cached_input_tokens")), count(told.get("cache_write_input_tokens"))
    found = Usage(
        plain=max(count(told.get("input_tokens")) - cached - written, 0),
        cache_read=cached,
        cache_write_5m=written,
        output=count(told.get("output_tokens")),
        reasoning=count(told.get("reasoning_output_tokens")),
    )
    return found if found.total else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
