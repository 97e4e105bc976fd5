"""Session files of other programs, as far as a replay needs them: messages, calls and results, times and usage.

pi, Claude Code, Codex and nanobot write one JSON object a line; a chat dialog is one object with OpenAI messages. Each
reader gives the conversations of a file; a file with a compaction holds several, as what came before it was no longer
sent. What a reader does not know is skipped. This is no import: branches, settings and attachments are left aside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from governors.messages import (
    AssistantMessage,
    AssistantPart,
    StopReason,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

from .conversations import Timed

Line: TypeAlias = Mapping[str, Any]
Conversations: TypeAlias = list[list[Timed]]

_STOPS: dict[str, StopReason] = {"aborted": "aborted", "error": "error", "length": "length"}


def seconds(stamp: Any) -> float | None:
    """An ISO time or a number of seconds or milliseconds as seconds; None for anything else."""
    if isinstance(stamp, bool):
        return None
    if isinstance(stamp, int | float):
        return stamp / 1_000 if stamp > 1e11 else float(stamp)
    try:
        moment = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_pi(lines: Sequence[Line]) -> Conversations:
    """pi's session files, v1 to v3: `message` lines with roles user, assistant and toolResult."""
    found: Conversations = [[]]
    for line in lines:
        message = line.get("message") or {}
        at = seconds(line.get("timestamp"))
        match line.get("type"), message.get("role"):
            case "compaction", _:
                found.append([Timed(UserMessage((Text(str(line.get("summary") or "")),)), at)])
            case "message", "user":
                found[-1].append(Timed(UserMessage(_texts(message.get("content"))), at))
            case "message", "assistant":
                found[-1].append(Timed(_pi_reply(message), at))
            case "message", "toolResult":
                result = ToolResult(
                    str(message.get("toolCallId")),
                    str(message.get("toolName")),
                    _texts(message.get("content")),
                    bool(message.get("isError")),
                )
                found[-1].append(Timed(result, at))
            case _:
                pass
    return found


def _pi_reply(message: Line) -> AssistantMessage:
    parts: list[AssistantPart] = []
    for block in message.get("content") or []:
        if block.get("type") == "toolCall":
            parts.append(ToolCall(str(block["id"]), str(block["name"]), json.dumps(block.get("arguments") or {})))
        elif block.get("type") == "thinking":
            parts.append(Thinking(str(block.get("thinking") or "")))
        elif block.get("type") == "text":
            parts.append(Text(str(block.get("text") or "")))
    told = message.get("usage") or {}
    usage = Usage(
        plain=int(told.get("input") or 0),
        cache_read=int(told.get("cacheRead") or 0),
        cache_write_5m=int(told.get("cacheWrite") or 0),
        output=int(told.get("output") or 0),
    )
    stop = _STOPS.get(str(message.get("stopReason")), "stop")
    return AssistantMessage(tuple(parts), stop, model=message.get("model"), usage=usage)


def read_claude_code(lines: Sequence[Line]) -> Conversations:
    """Claude Code's session files. One reply stands on several lines with the same message id; side chains are other
    conversations and are left out."""
    found: Conversations = [[]]
    names: dict[str, str] = {}
    open_reply: str | None = None
    for line in lines:
        message = line.get("message") or {}
        at = seconds(line.get("timestamp"))
        if line.get("subtype") == "compact_boundary":
            found.append([])
        if line.get("isSidechain") or line.get("type") not in ("user", "assistant"):
            continue
        if line["type"] == "user":
            open_reply = None
            found[-1].extend(Timed(each, at) for each in _claude_user(message.get("content"), names))
            continue
        parts = _claude_parts(message.get("content") or [], names)
        if message.get("id") == open_reply and open_reply is not None:
            reply = found[-1][-1]
            assert isinstance(reply.message, AssistantMessage)
            parts = (*reply.message.content, *parts)
            found[-1][-1] = Timed(
                AssistantMessage(parts, model=reply.message.model, usage=reply.message.usage), reply.at
            )
        else:
            open_reply = message.get("id")
            reply_usage = _claude_usage(message.get("usage") or {})
            found[-1].append(Timed(AssistantMessage(parts, model=message.get("model"), usage=reply_usage), at))
    return found


def _claude_user(content: Any, names: Mapping[str, str]) -> Iterator[UserMessage | ToolResult]:
    if isinstance(content, str):
        yield UserMessage((Text(content),))
        return
    for block in content or []:
        if block.get("type") == "tool_result":
            call = str(block.get("tool_use_id"))
            told = block.get("content")
            yield ToolResult(call, names.get(call, "tool"), _texts(told), bool(block.get("is_error")))
    said = _texts([block for block in content or [] if block.get("type") == "text"])
    if said:
        yield UserMessage(said)


def _claude_parts(blocks: Sequence[Line], names: dict[str, str]) -> tuple[AssistantPart, ...]:
    parts: list[AssistantPart] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            names[str(block["id"])] = str(block["name"])
            parts.append(ToolCall(str(block["id"]), str(block["name"]), json.dumps(block.get("input") or {})))
        elif block.get("type") == "thinking":
            parts.append(Thinking(str(block.get("thinking") or "")))
        elif block.get("type") == "text":
            parts.append(Text(str(block.get("text") or "")))
    return tuple(parts)


def _claude_usage(told: Line) -> Usage:
    written = told.get("cache_creation") or {}
    hour = int(written.get("ephemeral_1h_input_tokens") or 0)
    return Usage(
        plain=int(told.get("input_tokens") or 0),
        cache_read=int(told.get("cache_read_input_tokens") or 0),
        cache_write_5m=int(told.get("cache_creation_input_tokens") or 0) - hour,
        cache_write_1h=hour,
        output=int(told.get("output_tokens") or 0),
    )


def read_codex(lines: Sequence[Line]) -> Conversations:
    """Codex rollouts: `response_item` lines; `token_usage_record` has the usage of the reply before it."""
    found: Conversations = [[]]
    names: dict[str, str] = {}
    for line in lines:
        payload = line.get("payload") or {}
        at = seconds(line.get("timestamp"))
        match line.get("type"), payload.get("type"), payload.get("role"):
            case "compacted", _, _:
                found.append([Timed(UserMessage((Text(str(payload.get("message") or "")),)), at)])
            case "token_usage_record", _, _:
                _give_usage(found[-1], payload.get("usage") or {})
            case "response_item", "message", "assistant":
                _add_to_reply(found[-1], _texts(payload.get("content")), at)
            case "response_item", "message", "developer":
                found[-1].append(Timed(SystemPatch("\n\n".join(t.text for t in _texts(payload.get("content")))), at))
            case "response_item", "message", _:
                found[-1].append(Timed(UserMessage(_texts(payload.get("content"))), at))
            case "response_item", "function_call", _:
                names[str(payload["call_id"])] = str(payload["name"])
                call = ToolCall(str(payload["call_id"]), str(payload["name"]), str(payload.get("arguments") or "{}"))
                _add_to_reply(found[-1], (call,), at)
            case "response_item", "function_call_output", _:
                call_id = str(payload.get("call_id"))
                result = ToolResult(call_id, names.get(call_id, "tool"), _texts(payload.get("output")))
                found[-1].append(Timed(result, at))
            case _:
                pass
    return found


def _add_to_reply(said: list[Timed], parts: tuple[AssistantPart, ...], at: float | None) -> None:
    """Parts stand on lines of their own; a usage ends their reply."""
    if said and isinstance(reply := said[-1].message, AssistantMessage) and reply.usage is None:
        said[-1] = Timed(AssistantMessage((*reply.content, *parts)), said[-1].at)
    else:
        said.append(Timed(AssistantMessage(parts), at))


def _give_usage(said: list[Timed], told: Line) -> None:
    if said and isinstance(reply := said[-1].message, AssistantMessage):
        cached = int(told.get("cached_input_tokens") or 0)
        usage = Usage(
            plain=int(told.get("input_tokens") or 0) - cached,
            cache_read=cached,
            output=int(told.get("output_tokens") or 0),
        )
        said[-1] = Timed(AssistantMessage(reply.content, usage=usage), said[-1].at)


def read_chat(lines: Sequence[Line]) -> Conversations:
    """OpenAI chat messages, one a line (nanobot's files, with times); lines of another kind are skipped."""
    return [[Timed(message, seconds(line.get("timestamp"))) for line in lines for message in _chat_message(line)]]


def _chat_message(line: Line) -> Iterator[SystemPatch | UserMessage | AssistantMessage | ToolResult]:
    content = _texts(line.get("content"))
    match line.get("role"):
        case "system":
            yield SystemPatch("\n\n".join(text.text for text in content))
        case "user":
            yield UserMessage(content)
        case "tool":
            yield ToolResult(str(line.get("tool_call_id")), str(line.get("name") or "tool"), content)
        case "assistant":
            calls = [(call["id"], call["function"]) for call in line.get("tool_calls") or []]
            parts = (ToolCall(str(i), str(f.get("name")), str(f.get("arguments") or "{}")) for i, f in calls)
            yield AssistantMessage((*content, *parts))
        case _:
            pass


def _texts(content: Any) -> tuple[Text, ...]:
    """The texts of a content that is a string or a list of blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    blocks = content if isinstance(content, list) else []
    return tuple(Text(str(block["text"])) for block in blocks if isinstance(block, Mapping) and block.get("text"))


READERS: tuple[tuple[Callable[[Line], bool], Callable[[Sequence[Line]], Conversations]], ...] = (
    (lambda line: line.get("type") == "session_meta", read_codex),
    (lambda line: line.get("type") == "session" and "cwd" in line, read_pi),
    (lambda line: line.get("_type") == "metadata" or "role" in line, read_chat),
    (lambda line: "sessionId" in line or line.get("type") == "file-history-snapshot", read_claude_code),
)
