"""The formats for programs: a session file again, and ATIF as its own package validates it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory
from hypothesis import given, settings

from governors.messages import Image, Text, Thinking, ToolCall, Usage
from runtime.errors import MoonwakeError
from runtime.exports import to_atif, to_jsonl
from runtime.session.entries import LabelRecord, LeafRecord, MessageRecord, OutcomeRecord, PinRecord, ResultRecord
from runtime.session.format.blobs import FolderBlobs
from runtime.session.format.reading import read_session
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from tests.session.logs import Log

from .growing_logs import HEADER, Growing, growing_logs

quick = settings(deadline=None, max_examples=60)


@quick
@given(growing_logs())
def test_a_branch_stands_alone(growing: Growing) -> None:
    """It reads back without a finding, and shows a model what it showed before."""
    reading = read_session(to_jsonl(HEADER, growing.entries, branch=True))
    assert reading.header == HEADER and not reading.broken and reading.torn is None
    tree = Tree(reading.entries)
    assert [entry.id for entry in tree.branch()] == [entry.id for entry in growing.log.branch]
    if not growing.redacted:
        assert project(tree.branch()).messages == growing.log.projection.messages


@quick
@given(growing_logs())
def test_a_whole_session_comes_back(growing: Growing) -> None:
    """Without redactions, entry by entry."""
    reading = read_session(to_jsonl(HEADER, growing.entries))
    assert Tree(reading.entries).leaf == growing.log.tree.leaf
    if not growing.redacted:
        assert reading.entries == growing.entries


def test_large_content_is_inline(tmp_path: Path) -> None:
    """A whole output that lies in a blob stands in the file; one that is missing is left out."""
    blobs = FolderBlobs(tmp_path / "blobs")
    log = Log()
    log.user("hi")
    blob = blobs.put("a long output\n" * 2_000)
    log.add(ResultRecord(call=(log.calls("exec"), 0), tool="exec", content=(Text("a lo…"),), whole=blob))
    record = read_session(to_jsonl(HEADER, log.tree.entries, blobs=blobs)).entries[-1].record
    assert isinstance(record, ResultRecord) and record.whole == "a long output\n" * 2_000
    record = read_session(to_jsonl(HEADER, log.tree.entries)).entries[-1].record
    assert isinstance(record, ResultRecord) and record.whole is None


def test_marks_of_other_branches_stay_behind() -> None:
    """A pin or a label goes with its entry."""
    log = Log()
    first = log.user("one")
    other = log.reply("left")
    log.add(LeafRecord(leaf=first))
    log.add(PinRecord(target=other))
    log.add(LabelRecord(text="mine", target=first))
    log.reply("right")
    kept = read_session(to_jsonl(HEADER, log.tree.entries, branch=True)).entries
    assert [entry.record.type for entry in kept] == ["message", "label", "message"]


@quick
@given(growing_logs())
def test_a_trajectory_is_valid(growing: Growing) -> None:
    """For the package that the format's models come from."""
    found = to_atif(HEADER, growing.entries)
    Trajectory.model_validate(found)
    said = [step for step in found["steps"] if step["source"] in ("user", "agent")]
    assert len(said) == sum(isinstance(entry.record, MessageRecord) for entry in growing.log.branch)


def a_turn() -> Log:
    log = Log()
    log.system({"identity": "Be kind."})
    log.add(MessageRecord(role="user", content=(Text("see"), Image("image/png", "aGk="))))
    log.request()
    log.add(OutcomeRecord(request=3, stop="tool_use", usage=Usage(plain=100, cache_read=900, output=5), cost=0.01))
    parts = (Thinking("hm"), Text("I look."), ToolCall("c", "read_file", '{"path": "a"}'), ToolCall("c", "x", "oops"))
    usage = Usage(plain=100, cache_read=900, output=5)
    reply = log.add(MessageRecord(role="assistant", content=parts, stop="tool_use", model="claude-a", usage=usage))
    log.result(reply, 1, text="second", tool="x")
    log.result(reply, 0, text="first", tool="read_file")
    return log


def test_a_turn_becomes_three_steps() -> None:
    """System, user, agent with its calls, what they gave, and what it cost."""
    found = to_atif(HEADER, a_turn().tree.entries)
    system, user, agent = found["steps"]
    assert (system["source"], "Be kind." in system["message"]) == ("system", True)
    assert user["message"][1]["source"] == {"media_type": "image/png", "path": "data:image/png;base64,aGk="}
    assert agent["reasoning_content"] == "hm" and agent["model_name"] == "claude-a"
    calls = agent["tool_calls"]
    assert [call["arguments"] for call in calls] == [{"path": "a"}, {}]
    assert calls[1]["extra"] == {"raw_arguments": "oops"}
    results = {each["source_call_id"]: each["content"] for each in agent["observation"]["results"]}
    assert results == {calls[0]["tool_call_id"]: "first", calls[1]["tool_call_id"]: "second"}
    assert agent["metrics"] == {
        "prompt_tokens": 1000,
        "completion_tokens": 5,
        "cached_tokens": 900,
        "cost_usd": 0.01,
    }
    assert found["final_metrics"]["total_cost_usd"] == 0.01


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that has it not."""
    missing: Any = None
    monkeypatch.setitem(sys.modules, "atif", missing)
    with pytest.raises(MoonwakeError, match=r"pip install 'moonwake\[atif\]'"):
        to_atif(HEADER, a_turn().tree.entries)
