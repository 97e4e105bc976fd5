"""Codex rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from governors.messages import Image, Text, Thinking, ToolCall, Usage
from runtime.session.entries import HeadRecord, LeafRecord, MessageRecord, NoteRecord, ResultRecord, SettingRecord
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.wrapping import SUMMARY

from .samples import CODEX, DATA, codex, codex_count, codex_item, codex_said, read, read_path


def test_the_items_of_one_response_are_one_reply(tmp_path: Path) -> None:
    """Reasoning with its encrypted form, text, and calls of every kind, as calls with JSON arguments."""
    result = read(tmp_path, CODEX)
    reply = result.of_line(8).record
    assert isinstance(reply, MessageRecord)
    assert reply.content == (
        Thinking("Beans.", "gAAA"),
        Text("I look."),
        ToolCall("c-1", "exec_command", '{"cmd": "ls"}'),
        ToolCall("c-2", "apply_patch", '{"input": "*** Begin Patch"}'),
        ToolCall("c-3", "local_shell", '{"type": "exec", "command": ["pwd"]}'),
    )
    assert (reply.stop, reply.model, reply.wire) == ("tool_use", "gpt-a", "codex/openai_responses")


def test_usage_counts_once(tmp_path: Path) -> None:
    """An event that tells the same sum again counts for nothing; where lines of usage are, events do not count."""
    result = read(tmp_path, CODEX)
    replies = [record for record in result.records(MessageRecord) if record.role == "assistant"]
    assert [reply.usage and reply.usage.total for reply in replies] == [105, 205, None, None, None]
    assert replies[0].usage == Usage(plain=60, cache_read=40, output=5)
    assert result.report.left[17] == "usage that did not change, and the limits of the account"
    rollout = read_path(DATA / "codex.jsonl.gz")
    total = sum(r.usage.total for r in rollout.records(MessageRecord) if r.usage is not None)
    assert total == 281_636


def test_results_find_their_calls(tmp_path: Path) -> None:
    """Failures are errors, pictures are pictures, an id that returns belongs to the nearest reply."""
    result = read(tmp_path, CODEX)
    reply = result.of_line(8).id
    records = [result.of_line(line).record for line in (14, 15, 16)]
    assert all(isinstance(record, ResultRecord) for record in records)
    told: Any = records
    assert [record.call for record in told] == [(reply, 0), (reply, 1), (reply, 2)]
    assert [record.is_error for record in told] == [False, True, False]
    assert isinstance(told[2].content[1], Image)
    last = result.of_line(25).record
    assert isinstance(last, MessageRecord)
    assert last.content == (ToolCall("c-1", "exec_command", '{"input": "not json"}'),)


def test_turns_that_were_taken_back_are_a_branch(tmp_path: Path) -> None:
    """It goes on from before them."""
    result = read(tmp_path, CODEX)
    (leaf,) = result.records(LeafRecord)
    before = result.of_line(21).parent
    assert leaf.leaf == before
    assert result.of_line(24).parent == before
    assert "peas" not in repr(project(Tree(result.entries).branch_to(result.of_line(31).id)).messages)


def test_a_compaction_keeps_the_messages_of_users_and_puts_the_summary_after_them(tmp_path: Path) -> None:
    """As Codex sends it: the head begins at the first message that it kept."""
    result = read(tmp_path, CODEX)
    (head,) = result.records(HeadRecord)
    assert (head.start, head.placement, head.summary) == (result.of_line(24).id, "last", "Maize is in.")
    texts = [message.text for message in project(Tree(result.entries).branch()).messages]
    assert texts[:2] == ["Plant maize.", "<turn_aborted>\nIt was stopped.\n</turn_aborted>"]
    assert texts[2:] == [f"{SUMMARY}\n\nMaize is in.", "And now?", "Now we wait."]


def test_older_compactions_keep_all_messages_of_users(tmp_path: Path) -> None:
    """They do not say which."""
    lines = [
        codex(0, "session_meta", id="x", cwd="/srv"),
        codex_said(1, "user", "one"),
        codex_said(2, "assistant", "first"),
        codex_said(3, "user", "two"),
        codex_said(4, "assistant", "second"),
        codex(5, "compacted", message="Two things."),
    ]
    result = read(tmp_path, lines)
    messages = project(Tree(result.entries).branch()).messages
    assert [message.text for message in messages] == ["one", "two", f"{SUMMARY}\n\nTwo things."]


def test_a_summary_that_only_the_provider_can_read_takes_nothing_out_of_view(tmp_path: Path) -> None:
    """A note says so."""
    result = read(tmp_path, CODEX)
    note = result.of_line(33).record
    assert isinstance(note, NoteRecord)
    assert "Only its provider" in note.text
    assert len(result.records(HeadRecord)) == 1


def test_what_codex_itself_says_is_no_message(tmp_path: Path) -> None:
    """Instructions are notes; the surroundings are the context of the message that came with them."""
    result = read(tmp_path, CODEX)
    notes = [note.text for note in result.records(NoteRecord)]
    assert {"You are Codex.", "Ask first.", "# AGENTS.md instructions for /srv\n\nBe kind."} <= set(notes)
    first = result.of_line(6).record
    assert isinstance(first, MessageRecord)
    assert first.content == (Text("Plant beans."),)
    assert first.context is not None
    assert first.context.startswith("<environment_context>")
    assert result.of_line(4).id == result.of_line(6).id
    assert [(each.name, each.value) for each in result.records(SettingRecord)] == [
        ("model", "openai/gpt-a"),
        ("thinking", "high"),
    ]


def test_the_rest_is_named(tmp_path: Path) -> None:
    """Duplicates, resumes, states, and what is not known by its type."""
    left = read(tmp_path, CODEX).report.left
    assert sorted(left) == [7, 17, 29, 30, 34, 35]
    assert (left[34], left[35]) == ("unknown event 'new_event'", "unknown type 'new_line'")


def test_rollouts_without_envelopes_are_read_too(tmp_path: Path) -> None:
    """As Codex wrote them before September 2025."""
    items = [line["payload"] for line in (codex_said(1, "user", "go"), codex_said(2, "assistant", "done"))]
    lines = [{"id": "x", "timestamp": "2025-07-01T10:00:00Z", "instructions": "Be quick."}, {"record_type": "state"}]
    result = read(tmp_path, [*lines, *items])
    assert result.report.format == "codex"
    assert [message.text for message in project(Tree(result.entries).branch()).messages] == ["go", "done"]


def test_a_resumed_session_tells_its_sum_again(tmp_path: Path) -> None:
    """The first event after a resume repeats the last one before it."""
    lines = [
        codex(0, "session_meta", id="x", cwd="/srv"),
        codex_said(1, "user", "go"),
        codex_said(2, "assistant", "one"),
        codex_count(3, 100, 100),
        codex(4, "session_meta", id="x", cwd="/srv"),
        codex_count(5, 100, 100),
        codex_said(6, "user", "on"),
        codex_item(7, "function_call", name="f", arguments="{}", call_id="a"),
        codex_count(8, 300, 200),
    ]
    usages = [r.usage.total for r in read(tmp_path, lines).records(MessageRecord) if r.usage is not None]
    assert usages == [105, 205]


def test_newer_rollouts_say_what_the_program_itself_said(tmp_path: Path) -> None:
    """By the kind and the provenance of an item, whatever its text."""

    def marked(second: int, text: str, kind: str, provenance: str) -> dict[str, Any]:
        told = {"content_item_kinds": [kind], "content_item_metadata": [{"provenance": {"type": provenance}}]}
        return codex_said(second, "user", text, internal_chat_message_metadata_passthrough=told)

    lines = [
        codex(0, "session_meta", id="x", cwd="/srv"),
        marked(1, "alpha", "agents_md.instructions", "harness"),
        marked(2, "beta", "environments.environment_context", "harness"),
        marked(3, "gamma", "user.text", "user"),
        marked(4, "delta", "reminder", "harness"),
    ]
    result = read(tmp_path, lines)
    said, reminder = result.records(MessageRecord)
    assert (said.content, said.context) == ((Text("gamma"),), "beta")
    assert reminder.content == (Text("delta"),)
    assert "alpha" in [note.text for note in result.records(NoteRecord)]
    assert result.read.title == "gamma"
