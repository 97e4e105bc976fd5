"""Which lines of a Claude Code file are no part of the conversation, and how its messages read.

The program documents none of this; what is known comes from files of versions 1.0 to 2.1 and from public readers of
them.
"""

from __future__ import annotations

from typing import Any

from governors.messages import StopReason, Text, Thinking, ToolCall, Usage, UserPart

from ..entries import Part
from .parts import Lose, Object, a_text, an_object, call, count, objects, said

#: Lines that are left, by their type, with the reason.
LEFT = {
    "file-history-snapshot": "a snapshot of files, for taking edits back",
    "file-history-delta": "a snapshot of files, for taking edits back",
    "attribution-snapshot": "which lines of which files were written by whom",
    "content-replacement": "what the program showed instead of long outputs",
    "progress": "the progress of a tool or a hook while it ran",
    "hook-progress": "the progress of a hook while it ran",
    "bash-progress": "the progress of a tool while it ran",
    "queue-operation": "the queue of typed input: what was sent from it stands as a message",
    "last-prompt": "the newest input, which stands as a message too",
    "pr-link": "a pull request that belongs to the session",
    "mode": "the program's mode",
    "permission-mode": "what was allowed without asking",
    "agent-name": "the name of the agent",
    "agent-color": "the colour of the agent",
    "agent-setting": "which agent was chosen",
    "worktree-state": "in which work tree the program ran",
    "bridge-session": "a connection to another device",
    "speculation-accept": "an answer that was prepared before it was asked for",
    "task-summary": "the state of a background task",
    "started": "the journal of a sub-agent",
    "result": "the journal of a sub-agent",
}
#: Lines of the type `system` that are left, by their subtype. Others with a text become notes.
LEFT_SYSTEM = {
    "turn_duration": "how long a turn took",
    "stop_hook_summary": "which hooks ran after a turn",
    "api_metrics": "how quickly the provider answered",
    "api_error": "an error of the provider, after which the request was made again",
    "microcompact_boundary": "from here on the program sent older outputs shortened; they are whole here",
    "file_snapshot": "a snapshot of files, for taking edits back",
    "permission_retry": "a tool that was allowed after all",
    "bridge_status": "a connection to another device",
}
_STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
    "tool_use": "tool_use",
}
_SERVER_TOOLS = ("server_tool_use", "mcp_tool_use")


def reply_parts(message: Object, lose: Lose) -> list[Part]:
    """What one line adds to a reply."""
    content = message.get("content")
    if isinstance(content, str):
        return [Text(content)] if content else []
    parts: list[Part] = []
    for block in objects(content):
        kind = a_text(block.get("type"))
        if kind == "tool_use":
            parts.append(call(block.get("id"), block.get("name"), block.get("input")))
        elif kind == "thinking":
            parts.append(Thinking(a_text(block.get("thinking")), a_text(block.get("signature")) or None))
        elif kind == "redacted_thinking":
            parts.append(Thinking("", a_text(block.get("data")) or None, redacted=True))
        elif kind in _SERVER_TOOLS or kind.endswith("_tool_result"):
            lose("a tool that ran at the provider")
            parts.append(Text(f"[{a_text(block.get('name')) or kind}: ran at the provider, not imported]"))
        elif kind == "fallback" or (kind == "text" and not a_text(block.get("text"))):
            continue
        else:
            parts += [part for part in said([block], lose) if isinstance(part, Text)]
    return parts


def stop_of(message: Object, content: tuple[Part, ...]) -> StopReason:
    """Why a reply ended; the lines before the last one of a reply do not tell."""
    calls = any(isinstance(part, ToolCall) for part in content)
    return _STOPS.get(a_text(message.get("stop_reason")), "tool_use" if calls else "stop")


def usage_of(told: Any) -> Usage | None:
    told = an_object(told)
    written = an_object(told.get("cache_creation"))
    whole, hour = count(told.get("cache_creation_input_tokens")), count(written.get("ephemeral_1h_input_tokens"))
    found = Usage(
        plain=count(told.get("input_tokens")),
        cache_read=count(told.get("cache_read_input_tokens")),
        cache_write_5m=max(whole - hour, 0),
        cache_write_1h=hour,
        output=count(told.get("output_tokens")),
    )
    return found if found.total else None


def attachment(told: Object, lose: Lose) -> tuple[str, tuple[UserPart, ...]]:
    """The kind of an attachment, and what the model could read of it."""
    kind = a_text(told.get("type")) or "unknown"
    content = told.get("content")
    file = an_object(an_object(content).get("file"))
    name = a_text(told.get("filename")) or a_text(told.get("displayPath")) or a_text(file.get("filePath"))
    if an_object(content).get("type") == "image" and a_text(file.get("base64")):
        picture = {"type": "image", "data": file["base64"], "mimeType": a_text(file.get("type"))}
        return kind, said([picture], lose)
    text = a_text(file.get("content")) or a_text(told.get("snippet")) or a_text(told.get("stdout"))
    if not text and isinstance(content, str):
        text = content
    if not text and isinstance(content, dict):
        text = a_text(content.get("content")) or a_text(content.get("text"))
    if not text:
        return kind, ()
    return kind, (Text(f"{name}:\n{text}" if name else text),)
