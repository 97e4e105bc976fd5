"""A session on the event loop: order, cancellation and closing, on both backends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import Entry, LeafRecord, NoteRecord
from runtime.session.opening import create_log, read_log
from runtime.session.session import Session, create_session, open_session
from runtime.session.tree import Tree
from runtime.session.writing.log import REAL_DISK

from .records import AT, HEADER, chain, file_of, user


def now() -> str:
    return AT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


@pytest.fixture
async def session(path: Path) -> AsyncIterator[Session]:
    made = await create_session(path, HEADER, now)
    yield made
    await made.close()


def agrees(session: Session) -> bool:
    """Whether the tree holds exactly what the file holds."""
    return session.tree.entries == read_log(session.path).entries


async def test_what_append_returns_is_in_the_file(session: Session) -> None:
    """Ids, parents and times are the session's to give."""
    entries = await session.append(user("a"), NoteRecord(text="n"), user("b"))
    assert [(entry.id, entry.parent, entry.at) for entry in entries] == [(1, None, AT), (2, 1, AT), (3, 1, AT)]
    assert read_log(session.path).entries == entries and agrees(session)


async def test_an_empty_batch_is_nothing(session: Session) -> None:
    """Nothing is written for it."""
    before = session.path.read_bytes()
    assert await session.append() == ()
    assert session.path.read_bytes() == before


async def test_concurrent_appends_keep_order_and_parents(session: Session) -> None:
    """Fifty tasks at once make one branch; each batch stays together."""
    batches = []

    async def append(number: int) -> None:
        batches.append(await session.append(user(f"{number} a"), user(f"{number} b")))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(append, number)
    entries = [entry for batch in sorted(batches, key=lambda batch: batch[0].id) for entry in batch]
    assert entries == list(session.branch())
    assert [entry.id for entry in entries] == list(range(1, 101))
    assert all(second.parent == first.id for first, second in batches)
    assert agrees(session)


async def test_a_session_goes_on_after_reopening(session: Session) -> None:
    """With the same leaf and the next id."""
    await session.append(user("a"), user("b"), LeafRecord(leaf=1))
    await session.close()
    again = await open_session(session.path, now)
    (entry,) = await again.append(user("c"))
    assert (entry.id, entry.parent) == (4, 1)
    assert (again.id, again.agent, again.findings) == (HEADER.id, HEADER.agent, ())
    await again.close()


async def test_opening_tells_what_was_wrong(path: Path) -> None:
    """Broken lines and a torn tail are the findings."""
    path.write_bytes(file_of(chain(1, 2)) + b"broken\n{half")
    session = await open_session(path, now)
    assert [finding.line for finding in session.findings] == [4, 5]
    await session.append(user("c"))
    assert agrees(session)
    await session.close()


async def test_a_closed_session_refuses(session: Session) -> None:
    """With a sentence; closing twice does nothing, the lock is free."""
    await session.append(user("a"))
    await session.close()
    await session.close()
    with pytest.raises(SessionError, match=f"the session {HEADER.id} is closed"):
        await session.append(user("b"))
    assert len(session.branch()) == 1
    await (await open_session(session.path, now)).close()


async def test_a_session_in_which_nothing_was_said_leaves_no_file(session: Session, path: Path) -> None:
    """Unless the file holds something that could not be read: that is nobody's to throw away."""
    await session.close()
    assert not path.exists()
    path.write_bytes(file_of() + b"broken\n")
    await (await open_session(path, now)).close()
    assert path.exists()


async def test_a_session_that_is_open_is_locked(session: Session) -> None:
    """Until it is closed."""
    with pytest.raises(SessionLocked):
        await open_session(session.path, now)


class Gate:
    """A disk whose writes wait until they are let through; it may refuse them."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.open = threading.Event()
        self.error: OSError | None = None

    def write(self, descriptor: int, data: bytes, /) -> int:
        self.arrived.set()
        assert self.open.wait(10), "nobody opened the gate"
        if self.error is not None:
            raise self.error
        return REAL_DISK.write(descriptor, data)

    def sync(self, descriptor: int, /) -> None:
        REAL_DISK.sync(descriptor)

    def cut(self, descriptor: int, length: int, /) -> None:
        REAL_DISK.cut(descriptor, length)


@pytest.fixture
async def gated(path: Path) -> AsyncIterator[tuple[Session, Gate]]:
    log, gate = create_log(path, HEADER), Gate()
    log.disk = gate
    made = Session(HEADER, log, Tree(), now)
    yield made, gate
    await made.close()


async def arrived(gate: Gate) -> None:
    await anyio.to_thread.run_sync(gate.arrived.wait, 10)


async def test_the_tree_does_not_lead_the_disk(gated: tuple[Session, Gate]) -> None:
    """An entry is in the tree once it is on disk, not while it is written."""
    session, gate = gated
    async with anyio.create_task_group() as group:
        group.start_soon(session.append, user("a"))
        await arrived(gate)
        assert len(session.tree) == 0
        gate.open.set()
    assert len(session.tree) == 1


async def test_cancellation_does_not_interrupt_an_append_that_was_begun(gated: tuple[Session, Gate]) -> None:
    """It is finished, in the file and in the tree; one that waited for its turn is not begun."""
    session, gate = gated
    async with anyio.create_task_group() as group:
        group.start_soon(session.append, user("a"))
        await arrived(gate)
        group.start_soon(session.append, user("never"))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        gate.open.set()
    assert [entry.record for entry in session.branch()] == [user("a")] and agrees(session)
    await session.append(user("b"))
    assert agrees(session)


async def test_cancelling_at_any_moment_keeps_tree_and_file_equal(session: Session) -> None:
    """Appends that are cancelled right away, a little later, or not at all."""
    for number in range(20):
        async with anyio.create_task_group() as group:
            for each in range(3):
                group.start_soon(session.append, user(f"{number} {each}"), user("more"))
            for _ in range(number % 5):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert agrees(session)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncios_own_cancellation_keeps_tree_and_file_equal(gated: tuple[Session, Gate]) -> None:
    """`task.cancel()` and `asyncio.wait_for` reach through shields; the entry that is written is not forgotten.

    It would be written over by the next append's ids, and lost at the next opening.
    """
    session, gate = gated
    task = asyncio.create_task(session.append(user("a")))
    await arrived(gate)
    waiting = asyncio.create_task(session.append(user("b")))
    await anyio.lowlevel.checkpoint()
    threading.Timer(0.05, gate.open.set).start()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (entry,) = await waiting
    assert (entry.id, entry.parent) == (2, 1)
    assert [entry.record for entry in session.branch()] == [user("a"), user("b")] and agrees(session)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncios_own_cancellation_before_the_write_prevents_it(session: Session) -> None:
    """Tasks that are cancelled at every moment of their start leave whole batches or nothing."""
    for number in range(30):
        tasks = [asyncio.create_task(session.append(user(f"{number} {each}"))) for each in range(3)]
        for _ in range(number % 6):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert agrees(session)
    (entry,) = await session.append(user("last"))
    assert isinstance(entry, Entry) and agrees(session)
