"""Sessions as the supervisor opens, continues and leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import SessionError
from tests.agents import talk


def files(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / ".moonwake").rglob("*.jsonl"))


async def test_a_session_in_which_nobody_spoke_leaves_no_file(tmp_path: Path) -> None:
    async with talk(tmp_path, session="quiet"):
        assert files(tmp_path) == ["quiet.jsonl"]
    assert files(tmp_path) == []


async def test_the_newest_session_is_one_in_which_somebody_spoke(tmp_path: Path) -> None:
    async with talk(tmp_path, ["hi"], session="spoken") as it:
        await it.say("hello")
    async with talk(tmp_path, session="quiet") as it:
        newest = await it.runtime.supervisor.newest("assistant")
        assert newest.session.id == "spoken"


async def test_nothing_to_continue_is_said(tmp_path: Path) -> None:
    async with talk(tmp_path, session="quiet") as it:
        with pytest.raises(SessionError, match="no session of assistant to continue"):
            await it.runtime.supervisor.newest("assistant")


async def test_one_session_has_one_agent(tmp_path: Path) -> None:
    async with talk(tmp_path, session="one") as it:
        assert await it.runtime.supervisor.agent("assistant", "one") is it.agent
        await it.runtime.supervisor.leave(it.agent)
        assert await it.runtime.supervisor.agent("assistant", "one") is not it.agent
