"""nanobot's files, and dialogs of chat messages."""

from __future__ import annotations

import json
from pathlib import Path

from governors.messages import Image, Text, Thinking, ToolCall
from runtime.session.entries import HeadRecord, LabelRecord, MessageRecord, NoteRecord, ResultRecord
from runtime.session.import_ import look_at, read_file
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.wrapping import SUMMARY

from .samples import CHAT, DATA, NANOBOT, read, read_path, write


def test_nanobot_messages_become_entries(tmp_path: Path) -> None:
    """Reasoning stands before the call, the result finds it, a picture is a picture."""
    result = read(tmp_path, NANOBOT)
    reply, answer, picture = (result.of_line(line).record for line in (3, 4, 7))
    assert isinstance(reply, MessageRecord)
    assert reply.content == (Thinking("Beans."), ToolCall("c0", "exec", '{"command": "ls"}'))
    assert isinstance(answer, ResultRecord)
    assert answer.call == (result.of_line(3).id, 0)
    assert isinstance(picture, MessageRecord)
    assert isinstance(picture.content[1], Image)
    assert result.of_line(2).at == "2026-05-01T10:00:01.000Z"
    assert [label.text for label in result.records(LabelRecord)] == ["The garden"]
    assert result.report.left == {9: "the result of a call that is not in the file"}


def test_what_nanobot_put_away_is_behind_a_head(tmp_path: Path) -> None:
    """With the summary that stands for it."""
    result = read(tmp_path, NANOBOT)
    (head,) = result.records(HeadRecord)
    assert (head.start, head.summary) == (result.of_line(6).id, "Beans are in.")
    texts = [message.text for message in project(Tree(result.entries).branch()).messages]
    assert texts == [f"{SUMMARY}\n\nBeans are in.", "Go on.", "See", "A bean."]


def test_all_of_it_may_be_put_away(tmp_path: Path) -> None:
    """The newest message that a person wrote stays then."""
    result = read(tmp_path, [NANOBOT[0] | {"last_consolidated": 99}, *NANOBOT[1:]])
    (head,) = result.records(HeadRecord)
    assert (head.start, head.placement) == (result.of_line(7).id, "last")


def test_real_nanobot_sessions() -> None:
    """224 messages were archived in one, none in the other."""
    compacted, tools = (read_path(DATA / f"nanobot-{name}.jsonl.gz") for name in ("compacted", "tools"))
    (head,) = compacted.records(HeadRecord)
    assert head.start == compacted.of_line(226).id
    assert head.summary == "- [ephemeral] summary #3 made at turn 111"
    assert not tools.records(HeadRecord)
    assert len(tools.records(ResultRecord)) == 20


def test_a_system_prompt_is_a_note(tmp_path: Path) -> None:
    """The imported session gets ours."""
    result = read(tmp_path, CHAT)
    (note,) = result.records(NoteRecord)
    assert note.text == "Be kind."
    assert project(Tree(result.entries).branch()).messages[0].origin == result.of_line(2).id
    assert result.report.left == {6: "a message of the unknown role 'critic'"}


def test_each_dialog_is_a_session(tmp_path: Path) -> None:
    """One a line, or one in a whole file of JSON."""
    found, report = read_file(look_at(DATA / "chat.jsonl.gz"))
    assert len(found) == 4
    assert not report.unexplained
    assert {session for session, _ in report.carried.values()} == {0, 1, 2, 3}
    (one,), _ = read_file(look_at(write(tmp_path, json.dumps({"messages": CHAT}, indent=2).encode())))
    (other,), _ = read_file(look_at(write(tmp_path, json.dumps(CHAT, indent=2).encode())))
    kinds = [type(entry.record) for entry in one.entries]
    assert kinds == [type(entry.record) for entry in other.entries]
    assert kinds.count(MessageRecord) == 3


def test_old_function_calls_are_paired_by_name(tmp_path: Path) -> None:
    """They have no ids."""
    lines = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "seen"},
    ]
    result = read(tmp_path, lines)
    (answer,) = result.records(ResultRecord)
    assert (answer.tool, answer.content) == ("look", (Text("seen"),))
