"""The disk refuses in the middle of a conversation: people are told, nothing unsafe runs, nothing is lost."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runtime import Call, Reply, tool
from runtime.errors import SessionError
from runtime.events import Event, MessageRecorded, Notice, ReplyRecorded, ToolFinished, ToolStarted, TurnFinished
from runtime.session.session import Session
from tests.agents import Talk, assert_prefix_law, of, talk
from tests.session.disks import BROKEN, FULL, FakeDisk


def watched(session: Session) -> FakeDisk:
    """The disk of an open session, from here on one that can be told to refuse."""
    log = session._writer._log
    assert log is not None
    log.disk = FakeDisk()
    return log.disk


@pytest.fixture
async def made() -> list[str]:
    return []


@pytest.fixture
async def it(tmp_path: Path, made: list[str]) -> AsyncIterator[Talk]:
    @tool
    def plant(what: str) -> str:
        """Plant something."""
        made.append(what)
        return f"planted {what}"

    (tmp_path / "notes.md").write_text("beans\n")
    async with talk(tmp_path, tools=[plant]) as it:
        it.model.add("Hello.")
        await it.say("hello")
        yield it


def saved(events: list[Event]) -> dict[str, bool]:
    kinds = (MessageRecorded, ReplyRecorded, ToolStarted, ToolFinished, TurnFinished)
    return {event.type: event.saved for event in events if isinstance(event, kinds)}


def notices(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.level, event.text) for event in of(Notice, events)]


async def test_while_the_disk_works_everything_is_said_to_be_saved(it: Talk) -> None:
    """The field is true, and no notice comes."""
    it.model.add(Call("plant", {"what": "beans"}), "Done.")
    events = await it.say("plant beans")
    assert set(saved(events).values()) == {True} and len(saved(events)) == 5
    assert notices(events) == []


async def test_a_conversation_goes_on_in_memory_and_is_saved_later(it: Talk) -> None:
    """One warning, answers as before, and all of it in the file once the disk takes it."""
    disk = watched(it.agent.session)
    before = it.log.read_bytes()
    disk.refuse = {"write": FULL}
    it.model.add("Fine.", "Still fine.", "Saved.")
    events = await it.say("how are you?")
    assert of(TurnFinished, events)[0].text == "Fine." and of(TurnFinished, events)[0].error is None
    assert set(saved(events).values()) == {False}
    ((level, text),) = notices(events)
    assert level == "warning" and "No space left on device" in text and str(it.log) in text
    assert notices(await it.say("and now?")) == []
    assert it.log.read_bytes() == before and it.agent.session.unsaved > 4
    disk.heal()
    events = await it.say("and now?")
    assert set(saved(events).values()) == {True}
    assert [level for level, _ in notices(events)] == ["info"] and "saved again" in notices(events)[0][1]
    assert it.on_disk() == it.agent.session.tree.entries
    assert_prefix_law(it)


async def test_it_is_saved_as_soon_as_the_disk_takes_it(it: Talk) -> None:
    """Nobody has to say anything for it; the next turn tells."""
    disk = watched(it.agent.session)
    disk.refuse = {"sync": BROKEN}
    it.model.add("Fine.", "Good.")
    await it.say("how are you?")
    disk.heal()
    await it.agent.session.wait_settled()
    assert it.agent.session.unsaved == 0 and it.on_disk() == it.agent.session.tree.entries
    assert [level for level, _ in notices(await it.say("and now?"))] == ["info"]


async def test_calls_that_change_something_are_refused_while_nothing_can_be_recorded(it: Talk, made: list[str]) -> None:
    """Those that only read run; the model hears why, and the call works once the disk does."""
    disk = watched(it.agent.session)
    disk.refuse = {"write": FULL}
    both = Reply(calls=[Call("plant", {"what": "beans"}), Call("read_file", {"path": "notes.md"})])
    it.model.add(both, "I cannot plant now.", Call("plant", {"what": "peas"}), "Planted.")
    events = await it.say("plant beans")
    results = {event.tool: event for event in of(ToolFinished, events)}
    assert made == [] and results["plant"].is_error and "nothing was done" in results["plant"].text
    assert "No space left on device" in results["plant"].text
    assert not results["read_file"].is_error and "beans" in results["read_file"].text
    disk.heal()
    await it.say("plant peas")
    assert made == ["peas"] and it.on_disk() == it.agent.session.tree.entries


async def test_the_disk_that_fails_between_a_call_and_its_result(it: Talk, made: list[str]) -> None:
    """It ran with its intent on disk; its result waits in memory, and says so."""
    disk = watched(it.agent.session)
    it.model.add(Call("plant", {"what": "beans"}), lambda request: str(disk.heal() or "Done."))
    async for event in it.agent.send("plant beans"):
        if isinstance(event, ToolStarted):
            assert event.saved
            disk.refuse = {"write": FULL}
        if isinstance(event, ToolFinished):
            assert not event.saved and not event.is_error
    assert made == ["beans"]
    assert isinstance(event, TurnFinished) and event.saved
    assert it.on_disk() == it.agent.session.tree.entries


async def test_a_message_that_waits_says_that_it_is_not_saved(it: Talk) -> None:
    """Also one that joins a running turn."""
    disk = watched(it.agent.session)
    told: list[bool] = []
    it.model.add("Fine.", "Both.")
    async for event in it.agent.send("the beans"):
        if isinstance(event, MessageRecorded) and not event.steered and not told:
            disk.refuse = {"write": FULL}
            async for joined in it.agent.send("and the peas"):
                assert isinstance(joined, MessageRecorded | Notice)
                if isinstance(joined, MessageRecorded):
                    told.append(joined.saved)
                    break
    assert told == [False]
    disk.heal()


async def test_leaving_with_unsaved_entries_tells_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every session is closed, and the error names the file that holds what could not be saved."""
    rescued = tmp_path / "rescued"
    rescued.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescued))
    with pytest.raises(SessionError, match=r"entries of the session .* could not be saved") as told:
        async with talk(tmp_path / "workspace", ["Hello.", "Hello."]) as it:
            other = await it.runtime.supervisor.agent("assistant", "other")
            watched(it.agent.session).refuse = {"write": FULL}
            await it.say("hello")
    (file,) = rescued.iterdir()
    assert str(file) in str(told.value)
    assert it.model.closed and other.session.closed
