"""Reading recorded sessions: each program's lines, in small."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from governors.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from governors.tokens import ByteCounter
from runtime.errors import MoonwakeError
from runtime.replay import Trace, read_traces
from runtime.session.entries import Baseline, Entry, HeadRecord, LeafRecord, MessageRecord, ResultRecord, SystemRecord
from tests.session.records import file_of, user

from .traces import SEGMENTS

LONG = "line\n" * 200


def read(folder: Path, lines: Sequence[Any] | bytes, *, packed: bool = False) -> list[Trace]:
    data = lines if isinstance(lines, bytes) else "\n".join(json.dumps(line) for line in lines).encode()
    path = folder / ("session.jsonl.gz" if packed else "session.jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    return read_traces([path], ByteCounter())


def messages(trace: Trace) -> list[Any]:
    return [item.message for call in trace.calls for item in call.items]


def test_coding_segments_have_sizes_and_times_only() -> None:
    """A line each; long results can become stubs, users open boundaries, and rest follows a reply without calls."""
    traces = read_traces([SEGMENTS], ByteCounter())
    assert [len(trace.calls) for trace in traces] == [26, 22, 32]
    assert not any(trace.has_text for trace in traces)
    first = traces[0].calls[0]
    assert first.items[0].boundary
    assert any(item.stub is not None for call in traces[0].calls for item in call.items)
    assert {call.rests for call in traces[0].calls} == {True, False}
    assert traces[0].model is not None


PI = [
    {"type": "session", "id": "x", "cwd": "/srv/demo", "timestamp": "2026-01-01T10:00:00Z"},
    {"type": "model_change", "modelId": "m"},
    {"type": "message", "timestamp": "2026-01-01T10:00:01Z", "message": {"role": "user", "content": "hello"}},
    {
        "type": "message",
        "timestamp": "2026-01-01T10:00:05Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "reading"},
                {"type": "toolCall", "id": "a", "name": "read", "arguments": {"path": "x"}},
            ],
            "model": "claude-opus-4-5",
            "usage": {"input": 10, "cacheRead": 2_000, "cacheWrite": 30, "output": 5},
            "stopReason": "toolUse",
        },
    },
    {
        "type": "message",
        "timestamp": "2026-01-01T10:00:06Z",
        "message": {
            "role": "toolResult",
            "toolCallId": "a",
            "toolName": "read",
            "content": [{"type": "text", "text": LONG}, {"type": "image", "data": ""}],
        },
    },
    {
        "type": "message",
        "timestamp": "2026-01-01T10:10:06Z",
        "message": {"role": "assistant", "content": [], "stopReason": "aborted"},
    },
    {"type": "compaction", "timestamp": "2026-01-01T10:11:00Z", "summary": "They said hello."},
    {"type": "message", "timestamp": "2026-01-01T10:12:00Z", "message": {"role": "assistant", "content": []}},
]


def test_pi_sessions(tmp_path: Path) -> None:
    """Times, usage and results; a compaction begins another trace; an aborted reply is a call and not in view."""
    before, after = read(tmp_path, PI, packed=True)
    assert [call.at for call in before.calls] == [4, 605]
    assert before.base > 1_900
    assert before.model == "claude-opus-4-5"
    assert [call.rests for call in before.calls] == [False, True]
    assert before.calls[1].items[1].stub is not None
    assert isinstance(after.calls[0].items[0].message, UserMessage)
    assert after.name == "session/1"


CLAUDE = [
    {"type": "file-history-snapshot", "messageId": "m"},
    {
        "type": "user",
        "sessionId": "s",
        "timestamp": "2026-01-01T10:00:00Z",
        "message": {"role": "user", "content": "go"},
    },
    *(
        {
            "type": "assistant",
            "sessionId": "s",
            "timestamp": f"2026-01-01T10:00:0{second}Z",
            "message": {
                "id": "msg_1",
                "model": "claude-opus-4-6",
                "content": [block],
                "usage": {
                    "input_tokens": 3,
                    "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 50,
                    "cache_creation": {"ephemeral_1h_input_tokens": 40},
                },
            },
        }
        for second, block in enumerate(
            [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file": "x"}},
            ],
            start=2,
        )
    ),
    {"type": "assistant", "isSidechain": True, "sessionId": "s", "message": {"id": "other", "content": []}},
    {
        "type": "user",
        "sessionId": "s",
        "timestamp": "2026-01-01T10:00:09Z",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": LONG},
                {"type": "text", "text": "and be quick"},
            ],
        },
    },
    {"type": "assistant", "sessionId": "s", "timestamp": "bad", "message": {"id": "msg_2", "content": []}},
    {"type": "system", "subtype": "compact_boundary", "sessionId": "s"},
]


def test_claude_code_sessions(tmp_path: Path) -> None:
    """A reply over three lines is one call; side chains are none; results know their tool."""
    (trace,) = read(tmp_path, CLAUDE)
    assert len(trace.calls) == 2
    reply, answer, more = (item.message for item in trace.calls[1].items)
    assert isinstance(reply, AssistantMessage)
    assert [type(part).__name__ for part in reply.content] == ["Thinking", "Text", "ToolCall"]
    assert reply.usage is not None
    assert (reply.usage.cache_write_5m, reply.usage.cache_write_1h) == (10, 40)
    assert isinstance(answer, ToolResult)
    assert answer.tool == "Read"
    assert isinstance(more, UserMessage)


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "timestamp": "2026-01-01T10:00:00Z", "payload": {"type": kind, **payload}}


CODEX = [
    {"type": "session_meta", "payload": {"id": "x"}},
    item("message", role="developer", content=[{"type": "input_text", "text": "rules"}]),
    item("message", role="user", content=[{"type": "input_text", "text": "go"}]),
    item("function_call", name="exec", arguments="{}", call_id="a"),
    item("function_call", name="exec", arguments="{}", call_id="b"),
    {"type": "token_usage_record", "payload": {"usage": {"input_tokens": 900, "cached_input_tokens": 300}}},
    item("function_call_output", call_id="a", output=LONG),
    item("function_call_output", call_id="b", output="short"),
    item("message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    item("reasoning", content=[]),
    {"type": "compacted", "payload": {"message": "summary"}},
    {"type": "token_usage_record", "payload": {"usage": {"input_tokens": 5}}},
    item("message", role="assistant", content=[{"type": "output_text", "text": "more"}]),
]


def test_codex_rollouts(tmp_path: Path) -> None:
    """Calls before one usage belong to one reply; a compaction begins another trace."""
    before, after = read(tmp_path, CODEX)
    assert [call.rests for call in before.calls] == [False, True]
    assert [type(message).__name__ for message in messages(before)] == [
        "SystemPatch",
        "UserMessage",
        "AssistantMessage",
        "ToolResult",
        "ToolResult",
    ]
    assert before.base > 800
    assert len(after.calls) == 1


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": LONG},
    {"role": "assistant", "content": "Hello."},
    {"role": "function", "content": "?"},
]


def test_chat_dialogs_and_nanobot_sessions(tmp_path: Path) -> None:
    """A dialog a line without times; or a message a line after a line of metadata, with times."""
    dialogs = read(tmp_path, [{"id": "d-1", "messages": CHAT}, {"id": "d-2", "messages": CHAT[:2]}])
    assert [(trace.name, len(trace.calls), trace.timed) for trace in dialogs] == [("d-1", 2, False)]
    assert ToolCall("c", "look", '{"at": 1}') in messages(dialogs[0])[2].content
    timed = [{**line, "timestamp": 1_767_000_000 + number} for number, line in enumerate(CHAT)]
    (nanobot,) = read(tmp_path, [{"_type": "metadata"}, *timed])
    assert [call.at for call in nanobot.calls] == [2, 4]
    millis = [{**line, "timestamp": (1_767_000_000 + number) * 1_000} for number, line in enumerate(CHAT)]
    assert [call.at for call in read(tmp_path, millis)[0].calls] == [2, 4]
    assert not read(tmp_path, [{**line, "timestamp": True} for line in CHAT])[0].timed


def test_two_replies_in_a_row_are_one_call(tmp_path: Path) -> None:
    """What was asked between them is not in the record, and no request ends with a reply."""
    (trace,) = read(tmp_path, [{"role": "user", "content": "hi"}, *[{"role": "assistant", "content": "yes"}] * 2])
    assert len(trace.calls) == 1


def test_the_usage_tells_what_a_token_is_worth(tmp_path: Path) -> None:
    """Two prompts that grew by 20 % more than was counted; a fit that cannot be is not used."""

    def session(second: int) -> list[dict[str, Any]]:
        def reply(prompt: int) -> dict[str, Any]:
            message = {"role": "assistant", "content": [], "usage": {"input": prompt}}
            return {"type": "message", "message": message}

        says = [{"type": "message", "message": {"role": "user", "content": "x" * size}} for size in (994, 9_993)]
        return [PI[0], says[0], reply(2_200), says[1], reply(second), says[0], reply(0)]

    (fair,) = read(tmp_path, session(14_200))
    assert fair.calls[1].items[-1].tokens == pytest.approx(12_000, rel=0.01)
    assert fair.base == pytest.approx(1_000, rel=0.05)
    (foul,) = read(tmp_path, session(140_000))
    assert foul.calls[1].items[-1].tokens == pytest.approx(10_000, rel=0.01)


def own() -> bytes:
    call = ToolCall("c", "read_file", "{}")
    records = [
        SystemRecord(sections={"identity": "You are an agent. " * 20}),
        user("hello"),
        MessageRecord(role="assistant", content=(call,), stop="tool_use"),
        ResultRecord(call=(3, 0), tool="read_file", content=(Text(LONG),)),
        MessageRecord(role="assistant", content=(Text("done"),), stop="stop", model="m"),
        user("a branch that was left"),
        MessageRecord(role="assistant", content=(Text("well"),), stop="stop"),
    ]
    chain = [Entry(n, n - 1 or None, f"2026-01-01T10:00:{10 * n:02}Z", each) for n, each in enumerate(records[:5], 1)]
    left = [Entry(n, n - 1, "2026-01-01T10:02:00Z", each) for n, each in enumerate(records[5:], 6)]
    head = HeadRecord(start=2, baseline=Baseline(sections={}), cause="size", generation=1, summary="once")
    back = [
        Entry(8, None, "2026-01-01T10:03:00Z", LeafRecord(leaf=5)),
        Entry(9, 5, "2026-01-01T10:03:01Z", head),
        Entry(10, 9, "2026-01-01T10:03:02Z", user("go on")),
        Entry(11, 10, "2026-01-01T10:03:12Z", MessageRecord(role="assistant", content=(Text("fine"),), stop="stop")),
    ]
    return file_of(*((entry,) for entry in (*chain, *left, *back)))


def test_our_own_sessions(tmp_path: Path) -> None:
    """Along the current branch, without its heads, led by the system prompt."""
    (trace,) = read(tmp_path, own())
    assert [call.at for call in trace.calls] == [10, 30, 172]
    assert [call.rests for call in trace.calls] == [False, True, True]
    assert trace.base > 200
    assert "once" not in repr(messages(trace))
    assert "left" not in repr(messages(trace))


def test_a_session_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """With the reason."""
    header, _, rest = own().partition(b"\n")
    newer = json.loads(header) | {"version": 99}
    with pytest.raises(MoonwakeError, match="not a session this Moonwake can read"):
        read(tmp_path, json.dumps(newer).encode() + b"\n" + rest)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "is empty"),
        (b"\xff\xfe\n[1]\n", "no JSON lines"),
        ([{"what": "else"}], "a format that is not known here"),
        ([{"base_tokens": 1, "tokens_per_char": 1, "events": [{"k": "user"}]}], "KeyError"),
        ([{"type": "session", "cwd": "/"}, {"type": "message", "message": []}], "cannot be replayed|no model call"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_the_file(tmp_path: Path, lines: Any, problem: str) -> None:
    """A person learns what to give instead."""
    if problem.startswith("cannot"):
        assert read(tmp_path, lines) == []
        return
    with pytest.raises(MoonwakeError, match=problem):
        read(tmp_path, lines)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """Missing, or packed and cut off."""
    with pytest.raises(MoonwakeError, match="cannot read"):
        read_traces([tmp_path / "nothing.jsonl"], ByteCounter())
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b'{"role": "user"}' * 50)[:-12])
    with pytest.raises(MoonwakeError, match="cannot read"):
        read_traces([tmp_path / "cut.gz"], ByteCounter())
