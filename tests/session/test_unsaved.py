"""A session whose disk refuses: nothing is lost, nothing is said to be saved that is not, and it heals by itself."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from governors.messages import Text
from runtime.errors import SessionError
from runtime.session.entries import Blob, MessageRecord, NoteRecord, ResultRecord
from runtime.session.format.blobs import FolderBlobs
from runtime.session.opening import create_log, open_log, read_log
from runtime.session.session import Session
from runtime.session.tree import Tree
from runtime.session.writing.commit import COMMITTER

from .disks import BROKEN, FULL, READ_ONLY, FakeDisk, GatedDisk
from .records import AT, HEADER, user

BEFORE = 8  # entries that the session has; the tests append from id 9 on


def now() -> str:
    return AT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture(params=["thread", "here"])
async def session(
    request: pytest.FixtureRequest, path: Path, disk: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Session]:
    """Its commits are made by the thread, or where the session stands, as on a disk that is quick."""
    monkeypatch.setattr(COMMITTER, "quick", 0.0 if request.param == "thread" else 60.0)
    made = Session(HEADER, create_log(path, HEADER, disk), Tree(), now)
    for number in range(BEFORE):
        await made.append(user(f"before {number}"))
    assert (threading.get_ident() in disk.threads[1:]) == (request.param == "here")
    yield made
    disk.heal()
    await made.close()


def ids(path: Path) -> list[int]:
    return [entry.id for entry in read_log(path).entries]


@pytest.mark.parametrize(
    ("what", "error"), [("write", FULL), ("write", READ_ONLY), ("sync", BROKEN), ("short", FULL), ("cut", BROKEN)]
)
async def test_what_the_disk_refuses_lives_on_and_is_written_first(
    session: Session, disk: FakeDisk, path: Path, what: str, error: OSError
) -> None:
    """Appends go on and are counted; the first that works writes everything, in order, as one write."""
    before = path.read_bytes()
    if what in ("short", "cut"):
        disk.room = 5
    if what != "short":
        disk.refuse = {what: error}
    first = await session.append(user("a"), user("b"))
    second = await session.append(user("c"))
    assert [entry.id for entry in (*first, *second)] == [9, 10, 11]
    assert session.unsaved == 3 and session.outage
    assert [session.is_saved(number) for number in (8, 9, 10, 11)] == [True, False, False, False]
    if what != "cut":
        assert path.read_bytes() == before
    disk.heal()
    disk.asked.clear()
    (entry,) = await session.append(user("d"))
    assert [each for each in disk.asked if each != "cut"] == ["write", "sync"]
    assert session.unsaved == 0 and session.outage is None and session.is_saved(entry.id)
    assert read_log(path).entries == session.tree.entries and ids(path) == list(range(1, 13))


async def test_saving_can_be_tried_at_any_time(session: Session, disk: FakeDisk, path: Path) -> None:
    """It says whether it worked; when there is nothing to save it asks nothing of the disk."""
    disk.refuse = {"write": FULL}
    await session.append(user("a"))
    assert not await session.save()
    disk.heal()
    assert await session.save()
    assert ids(path) == list(range(1, 10))
    disk.asked.clear()
    assert await session.save() and disk.asked == []


async def test_an_outage_is_told_once_when_it_begins_and_once_when_it_ends(session: Session, disk: FakeDisk) -> None:
    """However many appends it lasts."""
    told: list[str | None] = []
    session.when_saving_changes(lambda: told.append(session.outage))
    for _ in range(2):
        disk.refuse = {"sync": BROKEN}
        for _ in range(3):
            await session.append(user("a"))
        disk.heal()
        for _ in range(3):
            await session.append(user("a"))
    assert told == ["Input/output error", None] * 2


async def test_one_waits_until_all_is_saved(session: Session, disk: FakeDisk) -> None:
    """Or until the session is closed."""
    await session.wait_settled()
    disk.refuse = {"write": FULL}
    await session.append(user("a"))
    async with anyio.create_task_group() as group:
        group.start_soon(session.wait_settled)
        await anyio.wait_all_tasks_blocked()
        disk.heal()
        await session.save()


async def test_closing_tries_once_more(session: Session, disk: FakeDisk, path: Path) -> None:
    """Nothing is lost when the disk has healed by then."""
    disk.refuse = {"write": FULL}
    await session.append(user("a"))
    disk.heal()
    await session.close()
    assert ids(path) == list(range(1, 10))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_what_cannot_be_saved_at_the_end_is_rescued(
    session: Session, disk: FakeDisk, path: Path, temporary: Path
) -> None:
    """In the temporary folder, for its owner alone; its lines behind the header are what the session lacks."""
    disk.refuse = {"write": FULL}
    await session.append(user("a"), user("b"))
    await session.append(user("c"))
    with pytest.raises(
        SessionError, match=r"3 entries .* could not be saved there \(No space left on device\)"
    ) as told:
        await session.close()
    (rescued,) = temporary.iterdir()
    assert str(rescued) in str(told.value) and str(path) in str(told.value)
    assert rescued.stat().st_mode & 0o777 == 0o600
    assert [entry.id for entry in read_log(rescued).entries] == [9, 10, 11] and read_log(rescued).header == HEADER
    with path.open("ab") as file:
        file.write(b"".join(rescued.read_bytes().splitlines(keepends=True)[1:]))
    log, reading = open_log(path)
    log.close()
    assert reading.entries == session.tree.entries and not reading.broken
    await session.close()


async def test_what_cannot_even_be_rescued_is_counted(
    session: Session, disk: FakeDisk, temporary: Path, path: Path
) -> None:
    """The lock is free all the same."""
    disk.refuse = {"write": FULL}
    await session.append(user("a"))
    temporary.rmdir()
    with pytest.raises(SessionError, match=r"1 entry of the session .* lost"):
        await session.close()
    open_log(path)[0].close()


async def test_a_bad_record_harms_nobody_else(path: Path) -> None:
    """Its append raises and takes no place; those that were written with it are there."""
    disk = GatedDisk(path.name)
    disk.open.set()
    session = Session(HEADER, create_log(path, HEADER, disk), Tree(), now)
    disk.open.clear()
    raised: list[type[Exception]] = []

    async def append(record: MessageRecord | NoteRecord) -> None:
        try:
            await session.append(record)
        except (ValueError, TypeError) as error:
            raised.append(type(error))

    async with anyio.create_task_group() as group:
        group.start_soon(append, user("first"))
        await anyio.to_thread.run_sync(disk.arrived.wait, 10)
        for record in (user("a"), NoteRecord(text=5), user("b"), NoteRecord(text="x", data={"x": object()})):  # type: ignore[arg-type]  # wrong on purpose
            group.start_soon(append, record)
            await anyio.wait_all_tasks_blocked()
        disk.asked.clear()
        disk.open.set()
    assert len(raised) == 2
    assert [entry.record for entry in session.branch()] == [user("first"), user("a"), user("b")]
    assert disk.asked == ["sync", "write", "sync"], "what waits for one session is one write"
    assert read_log(path).entries == session.tree.entries
    await session.close()


class Blobs:
    """Keeps large content in memory; refuses it while `full`."""

    def __init__(self) -> None:
        self.full = True
        self.kept: dict[str, str] = {}

    def put(self, text: str) -> Blob:
        if self.full:
            raise FULL
        self.kept[str(len(self.kept)).zfill(64)] = text
        return Blob(str(len(self.kept) - 1).zfill(64), len(text.encode()))

    def get(self, blob: Blob) -> str | None:
        return self.kept.get(blob.name)


async def test_large_content_that_is_refused_is_unsaved_with_its_entry(path: Path) -> None:
    """Its line may not be there before it is; later both are written, and order is kept."""
    blobs = Blobs()
    session = Session(HEADER, create_log(path, HEADER, blobs=blobs), Tree(), now)
    large = MessageRecord(role="user", content=(Text("é" * 70_000),))
    await session.append(user("a"))
    (entry,) = await session.append(large)
    await session.append(user("b"))
    assert entry.record == large and session.unsaved == 2 and session.outage == "No space left on device"
    blobs.full = False
    await session.append(user("c"))
    assert session.unsaved == 0
    assert [entry.record for entry in read_log(path, blobs).entries] == [user("a"), large, user("b"), user("c")]
    assert b"blob" in path.read_bytes()
    await session.close()


async def test_blobs_that_were_collected_in_a_long_outage_are_put_again(path: Path, tmp_path: Path) -> None:
    """Nothing on the disk named them: whoever writes their names puts them first."""
    disk, blobs = FakeDisk(), FolderBlobs(tmp_path / "blobs")
    session = Session(HEADER, create_log(path, HEADER, disk, blobs), Tree(), now)
    large = MessageRecord(role="user", content=(Text("é" * 70_000),))
    output = ResultRecord(call=(1, 0), tool="exec", content=(Text("cut"),), whole="long output " * 2_000)
    disk.refuse = {"sync": BROKEN}
    await session.append(large, output)
    assert len(list(blobs.stored())) == 2
    for stored in blobs.stored():
        assert blobs.remove(stored)
    disk.heal()
    assert await session.save()
    first, second = read_log(path, FolderBlobs(blobs.folder)).entries
    assert first.record == large
    assert isinstance(second.record, ResultRecord) and isinstance(second.record.whole, Blob)
    assert blobs.get(second.record.whole) == output.whole
    await session.close()


async def test_what_is_rescued_holds_its_large_content(path: Path, tmp_path: Path, temporary: Path) -> None:
    """Where it lies nobody looks for the names of blobs that are still needed."""
    disk, blobs = FakeDisk(), FolderBlobs(tmp_path / "blobs")
    session = Session(HEADER, create_log(path, HEADER, disk, blobs), Tree(), now)
    output = ResultRecord(call=(1, 0), tool="exec", content=(Text("cut"),), whole="long output " * 2_000)
    disk.refuse = {"write": FULL}
    await session.append(output)
    with pytest.raises(SessionError):
        await session.close()
    (rescued,) = temporary.iterdir()
    assert [entry.record for entry in read_log(rescued).entries] == [output]


async def test_cancelling_while_the_disk_refuses_keeps_memory_in_order(session: Session, disk: FakeDisk) -> None:
    """What was begun is in memory; what was not is nowhere; nothing is there twice."""
    disk.refuse = {"write": FULL}
    for number in range(10):
        async with anyio.create_task_group() as group:
            for each in range(3):
                group.start_soon(session.append, user(f"{number} {each}"))
            for _ in range(number % 4):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    disk.heal()
    await session.append(user("last"))
    assert read_log(session.path).entries == session.tree.entries
    assert [entry.id for entry in session.tree.entries] == list(range(1, len(session.tree) + 1))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncios_own_cancellation_while_the_disk_refuses(session: Session, disk: FakeDisk) -> None:
    """The same, where no shield helps."""
    disk.refuse = {"sync": BROKEN}
    for number in range(20):
        tasks = [asyncio.create_task(session.append(user(f"{number} {each}"))) for each in range(3)]
        for _ in range(number % 6):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    disk.heal()
    await session.append(user("last"))
    assert session.unsaved == 0 and read_log(session.path).entries == session.tree.entries


async def test_appends_that_wait_when_it_closes_are_refused(path: Path) -> None:
    """The one that was begun is finished."""
    disk = GatedDisk(path.name)
    disk.open.set()
    session = Session(HEADER, create_log(path, HEADER, disk), Tree(), now)
    disk.open.clear()
    refused: list[str] = []

    async def append(text: str) -> None:
        try:
            await session.append(user(text))
        except SessionError as error:
            refused.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(append, "a")
        await anyio.to_thread.run_sync(disk.arrived.wait, 10)
        group.start_soon(session.close)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(append, "b")
        await anyio.wait_all_tasks_blocked()
        disk.open.set()
    assert refused == [f"the session {HEADER.id} is closed"]
    assert [entry.record for entry in read_log(path).entries] == [user("a")]


async def test_whoever_appends_without_end_lets_others_run(session: Session) -> None:
    """Also where no append waits for anything but the disk."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        for number in range(100):
            await session.append(user(str(number)))
        group.cancel_scope.cancel()
    assert turns >= 5


async def test_a_cancelled_append_is_not_begun(session: Session) -> None:
    """Whichever way it would have gone."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await session.append(user("never"))
    assert scope.cancelled_caught and len(session.tree) == BEFORE
