"""What people change of a model's view, entry by entry, and what they put beside it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from runtime import Call, Reply, tool
from runtime.agent.states import State
from runtime.errors import SessionError
from runtime.session.care.erasing import erase_redacted
from runtime.session.care.erasure import ERASED_SUMMARY
from runtime.session.entries import (
    EditRecord,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    NoteRecord,
    OutcomeRecord,
    PinRecord,
)
from runtime.session.format.blobs import FolderBlobs
from runtime.session.moving.forking import fork_session
from runtime.session.moving.turns import said
from runtime.session.view.projection import project
from runtime.session.view.wrapping import SUMMARY
from tests.agent.test_branches import assert_prefix_law_on_branches, words
from tests.agents import Talk, talk


@tool(read_only=True)
def look(where: str) -> str:
    """Look somewhere.

    Args:
        where: At what.
    """
    return f"seen: {where}"


def number(it: Talk, text: str) -> int:
    """The newest entry that says `text`."""
    return next(entry.id for entry in reversed(it.agent.session.tree.entries) if said(entry) == text)


async def test_omit_and_restore(tmp_path: Path) -> None:
    """The next request leaves it out and says why its prefix moved; restored, it is there again as it was."""
    async with talk(tmp_path, ["One.", "Two.", "Three.", "Four."]) as it:
        await it.say("a")
        await it.say("b")
        assert await it.agent.marks.omit(number(it, "a")) == number(it, "a")
        await it.say("c")
        assert words(it.bodies[-1]) == ["[left out]", "One.", "b", "Two.", "c"]
        await it.agent.marks.restore(number(it, "a"))
        await it.say("d")
        assert words(it.bodies[-1])[:2] == ["a", "One."]
        assert [record.cause for record in it.records(OutcomeRecord)] == [None, None, "edit", "edit"]
        assert {record.cause for record in it.records(EditRecord)} == {"user"}
        assert_prefix_law_on_branches(it)
        with pytest.raises(SessionError, match="nothing to restore"):
            await it.agent.marks.restore(number(it, "a"))
        with pytest.raises(SessionError, match="is a system"):
            await it.agent.marks.omit(2)


async def test_an_edit_holds_on_its_branch_alone(tmp_path: Path) -> None:
    """An undo to before it shows the entry again; one on another branch cannot be edited from here."""
    async with talk(tmp_path, ["One.", "Two.", "Other."]) as it:
        await it.say("a")
        await it.say("b")
        b = number(it, "b")
        await it.agent.marks.omit(number(it, "a"))
        await it.agent.branches.undo()
        await it.say("other b")
        assert words(it.bodies[-1]) == ["a", "One.", "other b"]
        with pytest.raises(SessionError, match=f"another branch; /tree {b} goes there"):
            await it.agent.marks.omit(b)


async def test_redact_hides_a_message_with_the_input_that_brought_it(tmp_path: Path) -> None:
    """From the next request on, on every branch; and it cannot be left out or restored any more."""
    reached, going = anyio.Event(), anyio.Event()

    async def hold() -> None:
        reached.set()
        await going.wait()

    async with talk(tmp_path, [Reply("One.", hold=hold), "Two.", "Three."]) as it, anyio.create_task_group() as group:
        group.start_soon(it.say, "a")
        await reached.wait()
        await anext(it.agent.send("the password is hunter2", queue=True))
        going.set()
        await it.agent.rest()
        entry = number(it, "the password is hunter2")
        done = await it.agent.marks.redact(entry)
        (item,) = (e.id for e in it.on_disk() if isinstance(e.record, InboxRecord) and e.record.item is None)
        assert done.entries == (item, entry)
        await it.say("b")
        assert "hunter2" not in str(it.bodies[-1])
        assert_prefix_law_on_branches(it)
        with pytest.raises(SessionError, match="redacted already"):
            await it.agent.marks.redact(entry)
        for again in (it.agent.marks.omit, it.agent.marks.restore):
            with pytest.raises(SessionError, match="is redacted"):
                await again(entry)
        moved = await it.agent.branches.undo(2)
        assert moved.text == ""  # what was redacted is not put back


async def test_redact_stops_the_turn_that_would_send_it_again(tmp_path: Path) -> None:
    """And tells which results of the reply's calls are not hidden with it."""
    reached = anyio.Event()

    async def hold() -> None:
        reached.set()
        await anyio.sleep_forever()

    script = [Reply("I look.", [Call("look", {"where": "hunter2"})]), Reply("So", hold=hold)]
    async with talk(tmp_path, script, tools=[look]) as it, anyio.create_task_group() as group:
        group.start_soon(it.say, "a")
        await reached.wait()
        done = await it.agent.marks.redact(number(it, "I look."))
        assert it.agent.state is State.IDLE
        assert done.results == (number(it, "seen: hunter2"),)
        with pytest.raises(SessionError, match="holds nothing"):
            await it.agent.marks.redact(2)


async def test_a_summary_of_what_was_redacted_is_told(tmp_path: Path) -> None:
    """A person has to look at it: nobody else knows what it says."""
    async with talk(tmp_path, ["One.", "Two."]) as it:
        await it.say("the password is hunter2")
        await it.say("b")
        head = await a_head(it, number(it, "b"), "They told the password.")
        done = await it.agent.marks.redact(number(it, "the password is hunter2"))
        assert done.stale == (head,)


async def test_marks_may_come_at_any_time_and_move_nothing(tmp_path: Path) -> None:
    """Also while a turn runs, which goes on."""
    reached, going = anyio.Event(), anyio.Event()

    async def hold() -> None:
        reached.set()
        await going.wait()

    async with talk(tmp_path, ["One.", Reply("Two.", hold=hold)]) as it, anyio.create_task_group() as group:
        await it.say("a")
        group.start_soon(it.say, "b")
        await reached.wait()
        leaf = it.agent.session.tree.leaf
        marks = it.agent.marks
        assert await marks.pin() == number(it, "b")
        assert await marks.pin(number(it, "b"), on=False) == number(it, "b")
        assert await marks.label("here", number(it, "One.")) == number(it, "One.")
        await marks.note("look")
        assert (it.agent.state, it.agent.session.tree.leaf) == (State.RUN, leaf)
        assert await marks.unlabel(number(it, "One.")) == ("here",)
        with pytest.raises(SessionError, match="only messages and results"):
            await marks.pin(2)
        going.set()
        await it.agent.rest()
        assert [len(it.records(kind)) for kind in (PinRecord, LabelRecord, NoteRecord)] == [2, 2, 1]
        assert_prefix_law_on_branches(it)


async def a_head(it: Talk, start: int, summary: str) -> int:
    """A head as a compaction by hand makes it."""
    projection = project(it.agent.session.branch())
    record = HeadRecord(
        start=start,
        baseline=projection.state.baseline,
        cause="by hand",
        generation=projection.generation + 1,
        summary=summary,
        settings=dict(projection.settings),
        open_calls=projection.open_calls(start),
    )
    (entry,) = await it.agent.session.append(record)
    return entry.id


async def test_undo_takes_back_a_head_that_was_made_by_hand(tmp_path: Path) -> None:
    """Then a turn; each request says why its prefix moved."""
    async with talk(tmp_path, ["One.", "Two.", "Three.", "Four."]) as it:
        await it.say("a")
        await it.say("b")
        await a_head(it, number(it, "b"), "They said a.")
        await it.say("c")
        assert words(it.bodies[-1]) == [SUMMARY, "They said a.", "b", "Two.", "c"]
        await it.agent.branches.undo()
        moved = await it.agent.branches.undo()
        assert (moved.unheaded, moved.turns, moved.text) == (True, 0, "")
        await it.say("d")
        assert words(it.bodies[-1]) == ["a", "One.", "b", "Two.", "d"]
        assert_prefix_law_on_branches(it)


@pytest.mark.parametrize("fork", [False, True])
async def test_a_request_after_erasing_says_why_its_prefix_moved(tmp_path: Path, fork: bool) -> None:
    """A stale summary stood in view, and is erased: in the session itself, or in a fork of it."""
    async with talk(tmp_path, ["One.", "Two.", "Three."], session="s") as it:
        await it.say("a secret")
        await it.say("b")
        await a_head(it, number(it, "b"), "They told a secret.")
        await it.agent.marks.redact(number(it, "a secret"))
        await it.say("c")
        assert words(it.bodies[-1])[:2] == [SUMMARY, "They told a secret."]
        log, store = it.log, it.runtime.supervisor.store
    session = await fork_session(store, "assistant", "s") if fork else "s"
    if not fork:
        erase_redacted(log, FolderBlobs(store.folder.parent / "blobs"), now=1e9)
        assert not erase_redacted(log, FolderBlobs(store.folder.parent / "blobs"), now=1e9).derived, "once is enough"
    async with talk(tmp_path, ["Four.", "Five."], session=session) as it:
        await it.say("d")
        await it.say("e")
        assert words(it.bodies[-1])[:2] == [SUMMARY, ERASED_SUMMARY]
        assert [record.cause for record in it.records(OutcomeRecord)][-2:] == ["redact", None]


@pytest.mark.parametrize("act", ["undo", "switch", "edit", "undo head", "pin", "label", "redact", "retry", "omit"])
async def test_going_about_in_a_session_that_was_read_from_its_tail(tmp_path: Path, act: str) -> None:
    """What is older than the newest head's beginning is read when somebody goes there."""
    long = "word " * 40_000  # more than is read at once
    async with talk(tmp_path, ["ok", long, *["ok"] * 5], session="s") as it:
        for question in "abcdef":
            await it.say(question)
        await a_head(it, number(it, "e"), "They said a to d.")
        await it.say("g")
        a = number(it, "a")
    async with talk(tmp_path, otherwise="ok", session="s") as it:
        assert it.agent.session.tree.get(a) is None, "only the tail was read"
        match act:
            case "undo":
                moved = await it.agent.branches.undo(6)
                assert moved.text == "b"
                await it.say("other b")
                assert words(it.bodies[-1]) == ["a", "ok", "other b"]
            case "switch":
                await it.agent.branches.switch(a)
                await it.say("other b")
                assert words(it.bodies[-1]) == ["a", "ok", "other b"]
                await it.agent.branches.switch(number(it, "g"))
                await it.say("h")
                assert words(it.bodies[-1])[:2] == [SUMMARY, "They said a to d."]
            case "edit":
                assert (await it.agent.branches.switch(a, edit=True)).text == "a"
                await it.say("other a")
                assert words(it.bodies[-1]) == ["other a"]
            case "undo head":
                assert (await it.agent.branches.undo_head()).unheaded
                await it.say("h")
                assert words(it.bodies[-1])[:2] == ["a", "ok"]
            case "pin":
                assert await it.agent.marks.pin(a) == a
            case "label":
                assert await it.agent.marks.label("first", a) == a
            case "redact":
                assert len((await it.agent.marks.redact(a)).stale) == 1
            case "omit":
                await it.agent.marks.omit(a)
            case _:
                assert [event async for event in it.agent.branches.retry()]
                assert words(it.bodies[-1]) == [SUMMARY, "They said a to d.", "e", "ok", "f", "ok", "g"]
        assert not it.agent.session.findings
