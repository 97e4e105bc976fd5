"""The prefix law, where `talk` holds every scenario to it: that it can fail, and what must not move a prefix."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runtime.prompt.builder import PromptBuilder
from runtime.prompt.context import runtime_context
from runtime.providers.base import Request
from runtime.session.entries import OutcomeRecord, SystemRecord
from runtime.workspace import open_workspace
from tests.agents import Talk, assert_prefix_law, talk


async def test_a_clock_moved_between_two_builds_changes_nothing(tmp_path: Path) -> None:
    """Years later, on another channel's clock: the prompt is the same, and the request extends the one before."""
    async with talk(tmp_path, otherwise="yes") as it:
        moment = [datetime(2026, 11, 30, 18, 0, tzinfo=UTC)]
        it.agent.equipment = replace(
            it.agent.equipment,
            context=lambda sender: runtime_context(moment[0], "terminal", sender),
            now=lambda: moment[0].timestamp(),
        )
        for days in (0, 1, 400):
            moment[0] += timedelta(days=days, hours=7)
            await it.say("what day is it?")
        assert len({str(body["system"]) + str(body["tools"]) for body in it.bodies}) == 1
        assert len(it.records(SystemRecord)) == 1
        assert [record.cause for record in it.records(OutcomeRecord)] == [None] * 3
        said = [str(message) for message in it.bodies[-1]["messages"] if message["role"] == "user"]
        assert [any(year in each for year in ("2026", "2028")) for each in said] == [True] * 3


def test_two_builders_at_different_times_build_the_same(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    first = PromptBuilder(workspace).build("terminal", ["read_file"])
    assert PromptBuilder(workspace).build("terminal", ["read_file"]).sections == first.sections


async def test_the_law_sees_a_prefix_that_moved_without_a_reason(tmp_path: Path) -> None:
    """Neither the bytes alone nor the log alone can be wrong."""
    async with talk(tmp_path, otherwise="yes", prefix_law=False) as it:
        for text in ("one", "two", "three"):
            await it.say(text)
        assert_prefix_law(it)
        sent = it.model.requests[1]
        it.model.requests[1] = Request.of(sent.model, _with_other_beginning(sent))
        with pytest.raises(AssertionError, match="not in the log"):
            assert_prefix_law(it)
        it.model.requests[1] = sent
        with pytest.raises(AssertionError, match="nothing says why"):
            assert_prefix_law(_with_cause(it, "unexplained"))
        with pytest.raises(AssertionError, match="cause edit, extends True"):
            assert_prefix_law(_with_cause(it, "edit"))


def _with_other_beginning(request: Request) -> dict[str, Any]:
    first, *rest = request.body["messages"]
    return {**request.body, "messages": [{**first, "content": [{"type": "text", "text": "another"}]}, *rest]}


def _with_cause(it: Talk, cause: str) -> Talk:
    """`it`, where the newest outcome names a cause."""
    *entries, newest = [entry for entry in it.on_disk() if entry.record.type != "message"]
    assert isinstance(newest.record, OutcomeRecord)
    told = (*entries, replace(newest, record=replace(newest.record, cause=cause)))

    class Told(Talk):
        def on_disk(self) -> tuple[Any, ...]:
            whole = {entry.id: entry for entry in it.on_disk()} | {entry.id: entry for entry in told}
            return tuple(whole.values())

    return Told(it.runtime, it.agent, it.model)
