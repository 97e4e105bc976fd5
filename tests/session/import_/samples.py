"""Small files of other programs, with everything that their formats know."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from runtime.session.entries import Entry
from runtime.session.import_ import Read, Report, look_at, read_file
from tests.session.import_.prefixes import as_on_disk

DATA = Path(__file__).parents[2] / "data" / "import"
FILES = sorted(DATA.glob("*.jsonl.gz"))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Kind = TypeVar("Kind")


@dataclass
class Result:
    """What was read of a file with one conversation."""

    read: Read
    report: Report
    entries: tuple[Entry, ...]

    def records(self, kind: type[Kind]) -> list[Kind]:
        return [entry.record for entry in self.entries if isinstance(entry.record, kind)]

    def of_line(self, line: int) -> Entry:
        """The entry that a line became."""
        return self.entries[self.report.carried[line][1] - 1]


def write(folder: Path, lines: Sequence[Any] | bytes, name: str = "session.jsonl") -> Path:
    data = lines if isinstance(lines, bytes) else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(folder: Path, lines: Sequence[Any] | bytes, **options: Any) -> Result:
    return read_path(write(folder, lines), **options)


def read_path(path: Path, **options: Any) -> Result:
    found, report = read_file(look_at(path), **options)
    assert not report.unexplained
    return Result(found[0], report, as_on_disk(found[0].entries))


def _at(second: int) -> str:
    return f"2026-05-01T10:{second // 60:02}:{second % 60:02}.000Z"


def pi(number: int, parent: int | None, kind: str, **fields: Any) -> dict[str, Any]:
    """An entry of pi's, format 3."""
    above = None if parent is None else f"{parent:08x}"
    return {"type": kind, "id": f"{number:08x}", "parentId": above, "timestamp": _at(number), **fields}


def pi_user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def pi_reply(*content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": each} if isinstance(each, str) else each for each in content],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-a",
        "usage": {"input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 20, "totalTokens": 135},
        "stopReason": "stop",
        **fields,
    }


def pi_call(identity: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": identity, "name": "bash", "arguments": arguments}


def pi_result(identity: str, text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "toolCallId": identity, "toolName": "bash", "content": content, **fields}


PI: list[dict[str, Any]] = [
    {"type": "session", "version": 3, "id": "0aa1", "timestamp": _at(0), "cwd": "/srv/garden"},
    pi(1, None, "model_change", provider="anthropic", modelId="claude-a"),
    pi(2, 1, "thinking_level_change", thinkingLevel="minimal"),
    pi(3, 2, "message", message={"role": "system", "content": "", "sections": {"who": "You are pi."}}),
    pi(4, 3, "message", message=pi_user("Plant beans.")),
    pi(
        5,
        4,
        "message",
        message=pi_reply(
            {"type": "thinking", "thinking": "Beans.", "thinkingSignature": "c2ln"},
            "I look.",
            pi_call("c|1", command="ls"),
            pi_call("c|2", command="pwd"),
            stopReason="toolUse",
        ),
    ),
    pi(6, 5, "message", message=pi_result("c|2", "/srv/garden", durationMs=1500)),
    pi(7, 6, "message", message=pi_result("c|1", "denied", isError=True)),
    pi(8, 7, "message", message=pi_reply("Planted beans.")),
    pi(9, 4, "branch_summary", fromId="00000004", summary="Beans were planted."),
    pi(10, 9, "message", message=pi_user("Plant peas.")),
    pi(11, 10, "message", message=pi_reply("", stopReason="error", errorMessage="overloaded", usage={})),
    pi(12, 11, "message", message=pi_reply("Planted peas.")),
    pi(13, 12, "label", targetId="0000000c", label="peas"),
    pi(14, 12, "custom", customType="bed", data={"beds": 3}),
    pi(15, 14, "custom_message", customType="weather", content="It rains.", display=True, details={"mm": 4}),
    pi(16, 15, "session_info", name="The garden"),
    pi(17, 16, "message", message={"role": "bashExecution", "command": "date", "output": "May\n", "exitCode": 0}),
    pi(
        18,
        17,
        "message",
        message={"role": "bashExecution", "command": "id", "output": "root", "exitCode": 0, "excludeFromContext": True},
    ),
    pi(
        19,
        18,
        "message",
        message={"role": "user", "content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    ),
    pi(20, 19, "message", message=pi_reply(pi_call("c|3", command="dig"), stopReason="toolUse")),
    pi(21, 20, "message", message=pi_result("c|3", "dug")),
    pi(22, 21, "message", message=pi_reply("Dug.")),
    pi(23, 22, "compaction", summary="Peas are in.", firstKeptEntryId="00000016", tokensBefore=9000),
    pi(24, 23, "message", message=pi_user("And now?")),
    pi(25, 24, "message", message=pi_reply("Now we wait.")),
    pi(26, 25, "new_thing", what="?"),
]


def claude(number: int, parent: int | None, kind: str, **fields: Any) -> dict[str, Any]:
    """A line of Claude Code's."""
    return {
        "parentUuid": None if parent is None else f"u-{parent}",
        "isSidechain": False,
        "sessionId": "0bb2",
        "version": "2.1.36",
        "cwd": "/srv/garden",
        "type": kind,
        "uuid": f"u-{number}",
        "timestamp": _at(number),
        **fields,
    }


def claude_user(number: int, parent: int | None, content: Any, **fields: Any) -> dict[str, Any]:
    return claude(number, parent, "user", message={"role": "user", "content": content}, **fields)


def claude_reply(number: int, parent: int | None, message: str, block: Any, **fields: Any) -> dict[str, Any]:
    told = {
        "id": message,
        "model": "claude-a",
        "role": "assistant",
        "content": [block] if isinstance(block, dict) else [{"type": "text", "text": block}],
        "stop_reason": None,
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 50,
            "cache_creation": {"ephemeral_1h_input_tokens": 40},
            "output_tokens": fields.pop("output", 1),
        },
    }
    return claude(number, parent, "assistant", message=told, **fields)


def tool_use(identity: str, **told: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "Bash", "input": told}


def tool_result(identity: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **fields}


CLAUDE: list[dict[str, Any]] = [
    {"type": "file-history-snapshot", "messageId": "u-1", "snapshot": {}},
    claude_user(1, None, "Plant beans.", thinkingMetadata={"level": "high", "disabled": False}),
    claude_user(2, 1, [{"type": "text", "text": "The skill says: dig."}], isMeta=True),
    claude_reply(3, 2, "m-1", {"type": "thinking", "thinking": "Beans.", "signature": "c2ln"}),
    claude_reply(4, 3, "m-1", "I look."),
    claude_reply(5, 4, "m-1", tool_use("t-1", command="ls")),
    claude(6, 5, "progress", toolUseID="t-1"),
    claude_reply(7, 5, "m-1", tool_use("t-2", command="pwd"), output=90),
    claude_user(8, 7, [tool_result("t-2", "/srv/garden")], toolUseResult={"stdout": "/srv/garden"}),
    claude_user(9, 5, [tool_result("t-1", [{"type": "text", "text": "denied"}], is_error=True)]),
    claude(10, 9, "attachment", attachment={"type": "queued_command", "prompt": "Be quick.", "commandMode": "prompt"}),
    claude_reply(11, 10, "m-2", "Planted beans.", output=7),
    claude(12, 11, "system", subtype="turn_duration", durationMs=5),
    claude_user(13, 12, "Plant peas."),
    claude_reply(14, 13, "m-3", "Planted peas."),
    claude_user(15, 12, "No: plant maize."),
    claude_reply(16, 15, "m-4", tool_use("t-3", prompt="dig")),
    claude_user(17, None, "Dig.", isSidechain=True, agentId="a1"),
    claude_reply(18, 17, "m-5", "Dug.", isSidechain=True, agentId="a1"),
    claude_user(19, 16, [tool_result("t-3", "dug"), {"type": "text", "text": "[Request interrupted by user]"}]),
    claude_reply(20, 19, "m-6", "API Error: overloaded", isApiErrorMessage=True, error="overloaded_error"),
    claude(21, 20, "system", subtype="local_command", content="<command-name>/cost</command-name>"),
    claude_user(22, 21, [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]),
    claude_reply(23, 22, "m-7", "A bean."),
    {"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": "0bb2", "timestamp": _at(23)},
    claude(
        24,
        None,
        "system",
        subtype="compact_boundary",
        logicalParentUuid="u-23",
        compactMetadata={"trigger": "auto", "preTokens": 9000},
    ),
    claude_user(25, 24, "Maize is in.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    claude(
        26, 25, "attachment", attachment={"type": "file", "filename": "a.txt", "content": {"file": {"content": "A"}}}
    ),
    claude_user(27, 26, "And now?"),
    claude_reply(28, 27, "m-8", "Now we wait."),
    {"type": "custom-title", "customTitle": "The garden", "sessionId": "0bb2"},
    {"type": "new-thing", "sessionId": "0bb2"},
]


def codex(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _at(second), "type": kind, "payload": payload}


def codex_item(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex(second, "response_item", type=kind, **payload)


def codex_said(second: int, role: str, text: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item(second, "message", role=role, content=[{"type": kind, "text": text}], **fields)


def codex_count(second: int, total: int, prompt: int) -> dict[str, Any]:
    info = {
        "total_token_usage": {"input_tokens": total, "output_tokens": 5},
        "last_token_usage": {"input_tokens": prompt, "cached_input_tokens": 40, "output_tokens": 5},
    }
    return codex(second, "event_msg", type="token_count", info=info)


CODEX: list[dict[str, Any]] = [
    codex(0, "session_meta", id="0cc3", cwd="/srv/garden", instructions="You are Codex.", model_provider="openai"),
    codex_said(1, "developer", "Ask first."),
    codex_said(2, "user", "# AGENTS.md instructions for /srv\n\nBe kind."),
    codex_said(3, "user", "<environment_context>\n  <cwd>/srv/garden</cwd>\n</environment_context>"),
    codex(4, "turn_context", cwd="/srv/garden", model="gpt-a", effort="high"),
    codex_said(5, "user", "Plant beans.", id="msg_1"),
    codex(5, "event_msg", type="user_message", message="Plant beans."),
    codex_item(
        6, "reasoning", summary=[{"type": "summary_text", "text": "Beans."}], encrypted_content="gAAA", content=None
    ),
    codex_said(7, "assistant", "I look."),
    codex_item(8, "function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c-1"),
    codex_item(9, "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c-2", status="completed"),
    codex_item(10, "local_shell_call", call_id="c-3", status="completed", action={"type": "exec", "command": ["pwd"]}),
    codex_count(11, 100, 100),
    codex_item(12, "function_call_output", call_id="c-1", output="beans"),
    codex_item(13, "custom_tool_call_output", call_id="c-2", output={"content": "no", "success": False}),
    codex_item(
        14,
        "function_call_output",
        call_id="c-3",
        output=[
            {"type": "input_text", "text": "/srv"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        ],
    ),
    codex_count(14, 100, 100),
    codex_item(15, "web_search_call", status="completed", action={"type": "search", "query": "beans"}),
    codex_said(16, "assistant", "Planted beans."),
    codex_count(17, 300, 200),
    codex_said(18, "user", "Plant peas.", id="msg_2"),
    codex_said(19, "assistant", "Planted peas."),
    codex(20, "event_msg", type="thread_rolled_back", num_turns=1),
    codex_said(21, "user", "Plant maize.", id="msg_3"),
    codex_item(22, "function_call", name="exec_command", arguments="not json", call_id="c-1"),
    codex(23, "event_msg", type="turn_aborted", reason="interrupted"),
    codex_said(24, "user", "<turn_aborted>\nIt was stopped.\n</turn_aborted>"),
    codex(
        25,
        "compacted",
        message="Maize is in.",
        replacement_history=[
            {
                "type": "message",
                "role": "user",
                "id": "msg_3",
                "content": [{"type": "input_text", "text": "Plant maize."}],
            },
            {
                "type": "message",
                "role": "user",
                "id": "msg_9",
                "content": [{"type": "input_text", "text": "Maize is in."}],
            },
        ],
    ),
    codex(25, "world_state", full=True, state={}),
    codex(26, "session_meta", id="0cc3", cwd="/srv/garden"),
    codex_said(27, "user", "And now?", id="msg_4"),
    codex_said(28, "assistant", "Now we wait."),
    codex(29, "compacted", message="", replacement_history=[{"type": "compaction", "encrypted_content": "gBBB"}]),
    codex(30, "event_msg", type="new_event"),
    codex(31, "new_line"),
]

NANOBOT: list[dict[str, Any]] = [
    {
        "_type": "metadata",
        "key": "telegram:5",
        "created_at": _at(0),
        "updated_at": _at(50),
        "metadata": {"_last_summary": {"text": "Beans are in.", "last_active": _at(40)}, "title": "The garden"},
        "last_consolidated": 4,
    },
    {"role": "user", "content": "Plant beans.", "timestamp": "2026-05-01T10:00:01"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Beans.",
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "exec", "arguments": '{"command": "ls"}'}}
        ],
        "timestamp": "2026-05-01T10:00:02",
    },
    {"role": "tool", "tool_call_id": "c0", "name": "exec", "content": "beans", "timestamp": "2026-05-01T10:00:03"},
    {"role": "assistant", "content": "Planted beans.", "timestamp": "2026-05-01T10:00:04"},
    {"role": "user", "content": "Go on.", "_hidden_history": True, "timestamp": "2026-05-01T10:00:05"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ],
        "timestamp": "2026-05-01T10:00:06",
    },
    {"role": "assistant", "content": "A bean.", "timestamp": "2026-05-01T10:00:07"},
    {"role": "tool", "tool_call_id": "gone", "name": "exec", "content": "?", "timestamp": "2026-05-01T10:00:08"},
]

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "seen"},
    {"role": "assistant", "content": "Hello."},
    {"role": "critic", "content": "?"},
]
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "pi": PI,
    "claude-code": CLAUDE,
    "codex": CODEX,
    "nanobot": NANOBOT,
    "chat": CHAT,
}
