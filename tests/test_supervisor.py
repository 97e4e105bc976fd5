"""Sessions as the supervisor opens, continues and leaves them."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from runtime import Runtime, Scripted
from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import ArchiveRecord, Header, LabelRecord
from runtime.session.opening import create_log, open_log
from runtime.session.writing.locking import _sign
from runtime.supervisor import NothingToContinue
from tests.agents import talk


def files(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / ".moonwake").rglob("*.jsonl*"))


async def test_a_session_in_which_nobody_spoke_leaves_no_file(tmp_path: Path) -> None:
    async with talk(tmp_path, session="quiet"):
        assert files(tmp_path) == ["quiet.jsonl", "quiet.jsonl.lock"]
    assert files(tmp_path) == []


async def test_the_newest_session_is_one_in_which_somebody_spoke(tmp_path: Path) -> None:
    async with talk(tmp_path, ["hi"], session="spoken") as it:
        await it.say("hello")
    async with talk(tmp_path, session="quiet") as it:
        newest = await it.runtime.supervisor.newest("assistant")
        assert newest.session.id == "spoken"


async def test_nothing_to_continue_is_said(tmp_path: Path) -> None:
    async with talk(tmp_path, session="quiet") as it:
        with pytest.raises(NothingToContinue, match="no session of assistant to continue"):
            await it.runtime.supervisor.newest("assistant")


async def test_a_session_that_is_put_away_is_not_continued(tmp_path: Path) -> None:
    """Nor does naming or pinning an older one make it the newest."""
    for name in ("older", "newer", "away"):
        async with talk(tmp_path, ["hi"], session=name) as it:
            await it.say("hello")
    for name, record in (("away", ArchiveRecord()), ("older", LabelRecord(text="t"))):
        async with talk(tmp_path, session=name) as it:
            await it.agent.session.append(record)
    async with talk(tmp_path) as it:
        assert (await it.runtime.supervisor.newest("assistant")).session.id == "newer"


async def test_what_was_said_is_in_the_index_soon_and_at_the_end(tmp_path: Path) -> None:
    """Also what was there before; no list is asked for here, as that would look into the folder itself."""
    async with talk(tmp_path, ["hi"], session="before") as it:
        await it.say("hello")
    (tmp_path / ".moonwake" / "index.sqlite").unlink()
    async with talk(tmp_path, ["hi"], session="now") as it:
        await it.say("hello")
        it.runtime.supervisor.index_every = 0.01
        with anyio.fail_after(20):
            while True:
                await anyio.sleep(0.01)
                if indexed(tmp_path) == [("before", 2), ("now", 2)]:
                    break
    async with talk(tmp_path, ["hi"], session="last") as it:
        await it.say("hello")
    assert indexed(tmp_path) == [("before", 2), ("last", 2), ("now", 2)]


async def test_a_session_knows_the_channel_it_was_begun_on(tmp_path: Path) -> None:
    async with talk(tmp_path, ["hi"], session="s") as it:
        await it.say("hello")
        assert it.agent.session.header.channel == "library"


def indexed(workspace: Path) -> list[tuple[str, int]]:
    try:
        with closing(sqlite3.connect(f"file:{workspace}/.moonwake/index.sqlite?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT id, messages FROM sessions ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # not there yet
        return []


async def test_one_session_has_one_agent(tmp_path: Path) -> None:
    async with talk(tmp_path, session="one") as it:
        assert await it.runtime.supervisor.agent("assistant", "one") is it.agent
        await it.runtime.supervisor.leave(it.agent)
        assert await it.runtime.supervisor.agent("assistant", "one") is not it.agent


def test_a_lock_on_a_file_that_was_removed_is_no_lock(tmp_path: Path) -> None:
    """Who opened the file just before its owner removed it would hold a lock that nobody else can see."""
    path, header = tmp_path / "s.jsonl", Header(id="s", agent="a", created="2026-01-01T00:00:00.000Z")
    lock = path.with_name("s.jsonl.lock")
    log = create_log(path, header)
    late = os.open(lock, os.O_RDWR)  # opened by another, which did not lock it yet
    log.close(discard=True)
    assert list(tmp_path.iterdir()) == []
    assert not _sign(late, lock)
    again = create_log(path, header)
    assert not _sign(late, lock)
    assert lock.read_text() == f"{os.getpid()}\n"
    os.close(late)
    with pytest.raises(SessionLocked):
        open_log(path)
    again.close()
    assert [each.name for each in tmp_path.iterdir()] == ["s.jsonl"]


def test_many_who_begin_and_leave_the_same_session_are_never_in_it_together(tmp_path: Path) -> None:
    """Each finds it free or locked, and nothing is left of it."""
    path, header = tmp_path / "s.jsonl", Header(id="s", agent="a", created="2026-01-01T00:00:00.000Z")
    inside: list[int] = []
    crowds: list[int] = []

    def begin_and_leave(number: int) -> int:
        try:
            log = create_log(path, header)
        except SessionLocked:
            return 0
        inside.append(number)
        crowds.append(len(inside))
        inside.remove(number)
        log.close(discard=True)
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(begin_and_leave, range(400))) > 0
    assert set(crowds) == {1}
    assert list(tmp_path.iterdir()) == []


async def test_a_script_is_a_model_without_more_words(tmp_path: Path) -> None:
    model = Scripted(["Hello."])
    async with Runtime.open(tmp_path, model=model, settings={"tools.exec": "off"}, environ={}) as runtime:
        assert await runtime.agent().ask("hi") == "Hello."
    assert model.closed


async def test_what_is_no_model_is_refused_by_its_type(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="model is a int: give 'provider/model', a ChosenModel, or a Scripted"):
        async with Runtime.open(tmp_path, model=7):  # type: ignore[arg-type]  # the mistake that is tested
            pass


async def test_a_function_that_is_no_tool_is_named_with_its_decorator(tmp_path: Path) -> None:
    def temperature(city: str) -> str:
        return city

    with pytest.raises(TypeError, match="temperature is not a tool: put @tool"):
        async with Runtime.open(tmp_path, model=Scripted(), tools=[temperature]):  # type: ignore[list-item]  # as above
            pass


async def test_a_closed_runtime_opens_no_session(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        runtime = it.runtime
    with pytest.raises(SessionError, match="the runtime is closed"):
        await runtime.agent(session="late").ask("hi")
    assert files(tmp_path) == []
