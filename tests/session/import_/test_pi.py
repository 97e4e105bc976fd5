"""pi's session files."""

from __future__ import annotations

from pathlib import Path

from governors.messages import Image, Text, Thinking, ToolCall, Usage
from runtime.session.entries import (
    BranchSummaryRecord,
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
from .samples import DATA, PI, pi, pi_call, pi_reply, pi_result, pi_user, read, read_path


def test_a_reply_keeps_its_calls_its_reasoning_and_who_gave_it(tmp_path: Path) -> None:
    """Arguments become JSON text; the wire is the program's own, so that nobody is sent its signatures."""
    reply = read(tmp_path, PI).of_line(6).record
    assert isinstance(reply, MessageRecord)
    assert reply.content == (
        Thinking("Beans.", "c2ln"),
        Text("I look."),
        ToolCall("c|1", "bash", '{"command": "ls"}'),
        ToolCall("c|2", "bash", '{"command": "pwd"}'),
    )
    assert (reply.stop, reply.model, reply.wire) == ("tool_use", "claude-a", "pi/anthropic")
    assert reply.usage == Usage(plain=10, cache_read=100, cache_write_5m=20, output=5)


def test_results_find_their_calls_by_id(tmp_path: Path) -> None:
    """Whatever order they came in."""
    result = read(tmp_path, PI)
    reply = result.of_line(6).id
    second, first = (result.of_line(line).record for line in (7, 8))
    assert isinstance(second, ResultRecord)
    assert isinstance(first, ResultRecord)
    assert (second.call, second.is_error, second.seconds) == ((reply, 1), False, 1.5)
    assert (first.call, first.is_error, first.tool) == ((reply, 0), True, "bash")


def test_branches_stay_branches_and_the_last_line_is_where_it_goes_on(tmp_path: Path) -> None:
    """Peas were planted in the end; beans are on the branch that was left, which its summary names."""
    result = read(tmp_path, PI)
    tree = Tree(result.entries)
    (summary,) = result.records(BranchSummaryRecord)
    assert summary.tip == result.of_line(9).id
    assert summary.fork == result.of_line(5).id
    assert tree.leaf == result.of_line(26).id
    shown = repr(project(tree.branch()).messages)
    assert "Planted beans" not in shown
    assert tree.branch_to(summary.tip)[-1] == result.of_line(9)


def test_a_compaction_is_a_head_where_pi_kept_from(tmp_path: Path) -> None:
    """It kept from a reply in the middle of a turn: the turn's message stays, the steps between are out of view."""
    result = read(tmp_path, PI)
    (head,) = result.records(HeadRecord)
    assert (head.summary, head.before, head.placement) == ("Peas are in.", 9000, "first")
    assert head.start == result.of_line(20).id
    assert head.resume == result.of_line(23).id
    assert head.settings == {"model": "anthropic/claude-a", "thinking": "low"}
    texts = [message.text for message in project(Tree(result.entries).branch()).messages]
    assert texts == [f"{SUMMARY}\n\nPeas are in.", "", "Dug.", "And now?", "Now we wait."]


def test_settings_shell_commands_labels_and_extensions_have_their_places(tmp_path: Path) -> None:
    """What a model saw is in view; what it did not is beside the conversation."""
    result = read(tmp_path, PI)
    assert [(each.name, each.value) for each in result.records(SettingRecord)] == [
        ("model", "anthropic/claude-a"),
        ("thinking", "low"),
    ]
    peas, name = result.records(LabelRecord)
    assert (peas.text, peas.target) == ("peas", result.of_line(13).id)
    assert (name.text, name.target) == ("The garden", None)
    bed, weather, shell = sorted(result.records(ExtensionRecord), key=lambda record: record.name)
    assert (bed.name, bed.data, bed.content) == ("pi.bed", {"beds": 3}, ())
    assert (weather.name, weather.data, weather.content) == ("pi.weather", {"mm": 4}, (Text("It rains."),))
    assert (shell.name, shell.data, shell.content) == ("shell", {"command": "date"}, (Text("May\n[exit code 0]"),))
    hidden = result.of_line(19).record
    assert isinstance(hidden, NoteRecord)
    assert hidden.text == "$ id\nroot\n[exit code 0]"
    picture = result.of_line(20).record
    assert isinstance(picture, MessageRecord)
    assert isinstance(picture.content[0], Image)
    assert "You are pi." in [note.text for note in result.records(NoteRecord)]
    assert result.report.left == {27: "unknown type 'new_thing'"}


def test_a_failed_reply_says_why_and_is_not_sent_again(tmp_path: Path) -> None:
    """Its error is a note."""
    result = read(tmp_path, PI)
    failed = result.of_line(12).record
    assert isinstance(failed, MessageRecord)
    assert (failed.stop, failed.usage) == ("error", None)
    assert any("overloaded" in note.text for note in result.records(NoteRecord))


def test_times_are_kept(tmp_path: Path) -> None:
    """In UTC, as our logs write them."""
    assert read(tmp_path, PI).of_line(5).at == "2026-05-01T10:00:04.000Z"


def test_format_1_is_a_line_after_another() -> None:
    """A compaction names what it kept by its index in the file, the header's being 0."""
    result = read_path(DATA / "pi-v1.jsonl.gz")
    first, second = (entry for entry in result.entries if isinstance(entry.record, HeadRecord))
    assert (first.id, second.id) == (result.of_line(360).id, result.of_line(629).id)
    assert isinstance(first.record, HeadRecord)
    assert isinstance(second.record, HeadRecord)
    assert first.record.start == result.of_line(294).id
    assert second.record.start == result.of_line(552).id
    assert [first.record.generation, second.record.generation] == [1, 2]
    assert result.report.left == {10: "it sets the thinking that is in force already"}
    assert len(result.records(ResultRecord)) == 448


def test_lines_may_come_before_their_parents(tmp_path: Path) -> None:
    """They wait; the tree is the same but for ids."""
    forwards, backwards = read(tmp_path, PI), read(tmp_path, [PI[0], *reversed(PI[1:-1]), PI[-1]])
    assert not backwards.report.losses
    shown = [project(Tree(result.entries).branch()).messages for result in (forwards, backwards)]
    assert [message.text for message in shown[0]] == [message.text for message in shown[1]] != []
    assert list(wrong(backwards.entries)) == []


def test_a_line_whose_parent_is_lost_hangs_on_the_one_before_it(tmp_path: Path) -> None:
    """And that is said."""
    result = read(tmp_path, [line for line in PI if line.get("id") != "00000008"])
    assert not result.report.losses, "a branch that nothing hung on is missed by nobody"
    result = read(tmp_path, [line for line in PI if line.get("id") != "0000000a"])
    assert list(result.report.losses) == ["the line it hangs on is missing: it hangs on the one before it"]
    assert Tree(result.entries).leaf == result.of_line(25).id


def test_ids_that_return_each_turn_are_paired_by_place(tmp_path: Path) -> None:
    """`call_0` of the second turn gets the second result; a result without a call is named."""
    lines = [PI[0], pi(1, None, "message", message=pi_user("go"))]
    for turn in (0, 1):
        lines.append(pi(3 * turn + 2, 3 * turn + 1, "message", message=pi_reply(pi_call("call_0", n=turn))))
        lines.append(pi(3 * turn + 3, 3 * turn + 2, "message", message=pi_result("call_0", f"result {turn}")))
        lines.append(pi(3 * turn + 4, 3 * turn + 3, "message", message=pi_user("more")))
    lines.append(pi(8, 7, "message", message=pi_result("gone", "?")))
    result = read(tmp_path, lines)
    for turn in (0, 1):
        record = result.of_line(3 * turn + 4).record
        assert isinstance(record, ResultRecord)
        assert record.call == (result.of_line(3 * turn + 3).id, 0)
    assert result.report.left == {9: "the result of a call that is not in the file"}
