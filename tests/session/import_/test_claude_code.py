"""Claude Code's session files."""

from __future__ import annotations

from pathlib import Path

from governors.messages import Image, Text, Thinking, ToolCall, Usage
from runtime.session.entries import (
    ExtensionRecord,
    HeadRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    ResultRecord,
    SettingRecord,
)
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.wrapping import SUMMARY

from .prefixes import wrong
from .samples import (
    CLAUDE,
    DATA,
    claude,
    claude_reply,
    claude_user,
    read,
    read_path,
    tool_result,
    tool_use,
)


def test_one_reply_is_made_of_its_lines(tmp_path: Path) -> None:
    """Its usage counts once: that of the line which tells most of the output."""
    result = read(tmp_path, CLAUDE)
    entry = result.of_line(4)
    assert {result.of_line(line).id for line in (4, 5, 6, 8)} == {entry.id}
    assert isinstance(entry.record, MessageRecord)
    assert entry.record.content == (
        Thinking("Beans.", "c2ln"),
        Text("I look."),
        ToolCall("t-1", "Bash", '{"command": "ls"}'),
        ToolCall("t-2", "Bash", '{"command": "pwd"}'),
    )
    assert entry.record.usage == Usage(plain=3, cache_read=100, cache_write_5m=10, cache_write_1h=40, output=90)
    assert (entry.record.stop, entry.record.wire) == ("tool_use", "claude-code/anthropic")


def test_calls_made_at_once_make_no_branches(tmp_path: Path) -> None:
    """Their results follow the reply one after another, whichever of its lines they hang on."""
    result = read(tmp_path, CLAUDE)
    reply = result.of_line(4).id
    second, first = result.of_line(9), result.of_line(10)
    assert (second.parent, first.parent) == (reply, second.id)
    assert isinstance(second.record, ResultRecord)
    assert isinstance(first.record, ResultRecord)
    assert (second.record.call, first.record.call) == ((reply, 1), (reply, 0))
    assert (second.record.is_error, first.record.is_error) == (False, True)


def test_a_result_that_comes_late_goes_behind_its_reply(tmp_path: Path) -> None:
    """What was said since hangs on it."""
    lines = [
        claude_user(1, None, "go"),
        claude_reply(2, 1, "m-1", tool_use("t-1")),
        claude_reply(3, 2, "m-1", tool_use("t-2")),
        claude_user(4, 3, [tool_result("t-2", "two")]),
        claude_reply(5, 4, "m-2", "done"),
        claude_user(6, 2, [tool_result("t-1", "one")]),
    ]
    result = read(tmp_path, lines)
    assert result.of_line(5).parent == result.of_line(6).id
    assert len(project(Tree(result.entries).branch()).stand_ins) == 0


def test_an_edited_message_is_a_branch_of_its_own(tmp_path: Path) -> None:
    """Peas were taken back for maize, which is where it goes on."""
    result = read(tmp_path, CLAUDE)
    assert result.of_line(14).parent == result.of_line(16).parent == result.of_line(12).id
    shown = repr(project(Tree(result.entries).branch_to(result.of_line(24).id)).messages)
    assert "maize" in shown
    assert "peas" not in shown


def test_a_sub_agent_is_a_tree_beside_the_conversation(tmp_path: Path) -> None:
    """In the same file; a file of its own is a conversation."""
    result = read(tmp_path, CLAUDE)
    assert result.of_line(18).parent is None
    assert result.of_line(19).parent == result.of_line(18).id
    own = read(tmp_path, [line for line in CLAUDE if line.get("isSidechain")])
    assert Tree(own.entries).leaf == own.of_line(2).id


def test_a_compaction_is_a_head_with_its_summary(tmp_path: Path) -> None:
    """The newest message that a person wrote stays, the summary follows it."""
    result = read(tmp_path, CLAUDE)
    (head,) = result.records(HeadRecord)
    entry = result.of_line(26)
    assert result.of_line(27).id == entry.id, "the boundary and the summary are one head"
    assert (head.summary, head.before, head.placement) == ("Maize is in.", 9000, "last")
    assert (head.start, head.resume) == (result.of_line(23).id, entry.id)
    messages = project(Tree(result.entries).branch_to(entry.id)).messages
    assert [message.text for message in messages] == ["", f"{SUMMARY}\n\nMaize is in."]


def test_what_a_compaction_kept_stays_in_view(tmp_path: Path) -> None:
    """What follows names the end of the kept part as its parent, and hangs on the head."""
    segment = {"headUuid": "u-3", "anchorUuid": "u-6", "tailUuid": "u-4"}
    lines = [
        claude_user(1, None, "first"),
        claude_reply(2, 1, "m-1", "one"),
        claude_user(3, 2, "second"),
        claude_reply(4, 3, "m-2", "two"),
        claude(
            5,
            None,
            "system",
            subtype="compact_boundary",
            logicalParentUuid="u-4",
            compactMetadata={"preTokens": 5, "preservedSegment": segment},
        ),
        claude_user(6, 5, "Once there was a first.", isCompactSummary=True),
        claude_user(7, 4, "third"),
    ]
    result = read(tmp_path, lines)
    messages = project(Tree(result.entries).branch()).messages
    assert [message.text for message in messages] == [f"{SUMMARY}\n\nOnce there was a first.", "second", "two", "third"]


def test_a_compaction_without_its_summary_changes_nothing(tmp_path: Path) -> None:
    """It is named."""
    result = read(tmp_path, [line for line in CLAUDE if not line.get("isCompactSummary")])
    assert not result.records(HeadRecord)
    assert "summary is not in the file" in result.report.left[26]


def test_what_was_typed_meanwhile_and_what_was_attached_is_in_view(tmp_path: Path) -> None:
    """A queued message joined the turn; a file is what an extension says; a picture is a picture."""
    result = read(tmp_path, CLAUDE)
    queued = result.of_line(11).record
    assert isinstance(queued, MessageRecord)
    assert (queued.steered, queued.content) == (True, (Text("Be quick."),))
    (file,) = result.records(ExtensionRecord)
    assert (file.name, file.content) == ("claude-code.file", (Text("a.txt:\nA"),))
    picture = result.of_line(23).record
    assert isinstance(picture, MessageRecord)
    assert isinstance(picture.content[0], Image)


def test_what_no_model_saw_is_beside_the_conversation(tmp_path: Path) -> None:
    """Errors of the provider and commands become notes; the rest is named."""
    result = read(tmp_path, CLAUDE)
    assert [note.text for note in result.records(NoteRecord)] == [
        "Claude Code reported: API Error: overloaded",
        "<command-name>/cost</command-name>",
    ]
    assert [(each.name, each.value) for each in result.records(SettingRecord)] == [
        ("thinking", "high"),
        ("model", "anthropic/claude-a"),
    ]
    assert [label.text for label in result.records(LabelRecord)] == ["The garden"]
    assert sorted(result.report.left) == [1, 7, 13, 25, 32]
    assert result.report.left[32] == "unknown type 'new-thing'"


def test_a_repeated_line_is_left(tmp_path: Path) -> None:
    """With the line that it repeats."""
    result = read(tmp_path, [*CLAUDE[:4], CLAUDE[1], *CLAUDE[4:]])
    assert result.report.left[5] == "it repeats line 2: their ids are the same"
    assert len(result.entries) == len(read(tmp_path, CLAUDE).entries)


def test_a_reply_that_stands_on_two_branches_has_its_usage_once(tmp_path: Path) -> None:
    """A thread that was copied tells the same usage again."""
    lines = [
        claude_user(1, None, "go"),
        claude_reply(2, 1, "m-1", "done"),
        claude_user(3, None, "go"),
        claude_reply(4, 3, "m-1", "done"),
    ]
    usages = [record.usage for record in read(tmp_path, lines).records(MessageRecord) if record.role == "assistant"]
    assert [usage is not None for usage in usages] == [True, False]


def test_real_sessions_count_each_reply_once() -> None:
    """As many replies as message ids, and the prompt of each once."""
    result = read_path(DATA / "claude-code-compacted.jsonl.gz")
    replies = [record for record in result.records(MessageRecord) if record.role == "assistant"]
    assert len(replies) == 51
    assert sum(reply.usage.total for reply in replies if reply.usage is not None) == 4_595_896
    assert len(result.records(ResultRecord)) == 85
    assert list(wrong(result.entries, every=20)) == []
