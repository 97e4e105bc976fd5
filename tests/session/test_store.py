"""Where sessions lie: names that never collide or leave the folder, lists that show sessions only."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import ArchiveRecord
from runtime.session.names import name_in
from runtime.session.store import Filter, SessionStore, file_name

from .records import patient, user

names = st.text(min_size=1, max_size=16) | st.text("aA._-%/\\ \0:~conul1", min_size=1, max_size=8)
wild = st.text(st.characters(categories=["Cs", "Lu", "Ll", "So"]), min_size=1, max_size=6)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    """One with a clock that ticks."""
    numbers, minutes = count(1), count(10)
    made = SessionStore(
        tmp_path / "sessions", lambda: f"id-{next(numbers)}", lambda: f"2026-11-30T18:{next(minutes)}:00Z"
    )
    yield made
    made.index.close()


@patient
@given(names | wild, names | wild)
def test_no_two_names_share_a_file(one: str, other: str) -> None:
    """Not even where the file system takes `A` for `a`."""
    assert (file_name(one).casefold() == file_name(other).casefold()) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [("a:b", "a_b"), ("a/b", "a_b"), ("A", "a"), ("%2e", "."), ("\u00e9", "e\u0301")]
)
def test_names_that_others_have_mapped_to_one_file(one: str, other: str) -> None:
    """Cleaning a name by replacing letters is not injective."""
    assert file_name(one) != file_name(other)


@patient
@given(names | wild)
def test_no_name_leaves_the_folder(name: str) -> None:
    """Nothing in a file name means anything to a file system."""
    encoded = file_name(name)
    assert name_in(encoded) == name
    assert Path(encoded).name == encoded and not encoded.startswith(".")
    assert set(encoded) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_%")
    assert encoded.encode()


@pytest.mark.parametrize("name", ["con", "nul", "aux", "prn", "com1", "lpt9", "CON", "nul.txt", "a.", "a ", ".", "..."])
def test_no_name_means_something_to_windows(name: str) -> None:
    """No device, no dot or space at the end; the name of a device is still no other's."""
    encoded = file_name(name)
    assert encoded.partition(".")[0] not in {"con", "nul", "aux", "prn", "com1", "lpt9"}
    assert encoded[-1] not in ". " and file_name(encoded) != encoded


@pytest.mark.parametrize("name", ["", "x" * 201, "é" * 40, "A" * 67])
def test_names_that_no_file_can_have_are_refused(name: str) -> None:
    """The error counts what the file name would take."""
    with pytest.raises(SessionError, match="1 to 200 bytes"):
        file_name(name)


async def test_sessions_lie_under_their_agent(store: SessionStore) -> None:
    """Named, or with an id of their own."""
    named, other = await store.create("My Agent", "chat/1"), await store.create("My Agent")
    assert named.path == store.folder / "%4dy%20%41gent" / "chat%2f1.jsonl"
    assert (other.id, other.agent, other.header.created) == ("id-1", "My Agent", "2026-11-30T18:11:00Z")
    for session in (named, other):
        await session.append(user("hi"))
        await session.close()
    assert store.exists("My Agent", "chat/1") and not store.exists("My Agent", "chat_1")


async def test_a_session_is_opened_by_its_name(store: SessionStore) -> None:
    """And locked while it is open."""
    made = await store.create("a", "n")
    await made.append(user("hi"))
    with pytest.raises(SessionLocked):
        await store.open("a", "n")
    await made.close()
    again = await store.open("a", "n")
    assert len(again.branch()) == 1
    await again.close()
    with pytest.raises(SessionError, match="does not exist"):
        await store.open("a", "other")
    with pytest.raises(SessionError, match="exists already"):
        await store.create("a", "n")


async def test_whoever_is_refused_reads_the_name_that_was_given(store: SessionStore) -> None:
    """And not the file's, which is spelt in percent signs."""
    session = await store.create("a", "Täx/2026")
    try:
        with pytest.raises(SessionLocked, match="the session Täx/2026 is open in this process already"):
            await store.open("a", "Täx/2026")
    finally:
        await session.close()


async def test_a_folder_that_cannot_be_made_is_named(store: SessionStore) -> None:
    """Where a file stands in its place, for one."""
    store.folder.write_text("")
    with pytest.raises(SessionError, match=f"cannot create the folder {store.folder}"):
        await store.create("a")


async def test_the_list_shows_sessions_only_newest_first(store: SessionStore) -> None:
    """Side files, copies, folders, pipes and other people's files are left out; so is an agent without sessions."""
    for name in ["old", "middle", "new"]:
        session = await store.create("a", name)
        await session.append(user("hi"))
        await session.close()
    folder = store.folder / "a"
    os.utime(folder / "old.jsonl", (2_000_000_000, 2_000_000_000))
    for name in ["old.jsonl.torn-12", "old.jsonl.broken-12", "old.jsonl.new", "x.jsonl", "notes.txt"]:
        (folder / name).write_bytes(b"text\n")
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    shutil.copy(folder / "old.jsonl", folder / "copy.jsonl")
    listing = await store.ask(lambda: store.list("a"))
    assert [(info.id, info.agent) for info in listing] == [("new", "a"), ("middle", "a"), ("old", "a")]
    assert listing[2].changed == 2_000_000_000 and sum(listing.skipped.values()) == 6
    assert len(store.list("nobody")) == 0 and len(store.list()) == 3


async def test_every_listed_session_can_be_opened(store: SessionStore) -> None:
    """By the agent and id that the list shows, whatever letters they are made of."""
    for name in ["A b", "é", "..", "a%2fb", "con"]:
        session = await store.create("Ä", name)
        await session.append(user("hi"))
        await session.close()
    listed = store.list("Ä")
    assert {info.id for info in listed} == {"A b", "é", "..", "a%2fb", "con"}
    for info in listed:
        await (await store.open(info.agent, info.id)).close()


async def test_the_newest_session_is_the_one_spoken_in_last(store: SessionStore) -> None:
    """Not an empty one, one that was put away, or one of another agent."""
    assert store.newest("a") is None
    for agent, name, records in (
        ("a", "spoken", [user("hi")]),
        ("a", "away", [user("hi"), ArchiveRecord()]),
        ("b", "theirs", [user("hi")]),
    ):
        session = await store.create(agent, name)
        await session.append(*records)
        await session.close()
    empty = await store.create("a", "empty")
    newest = store.newest("a")
    assert newest is not None and newest.id == "spoken"
    await empty.close()


async def test_an_id_is_found_by_what_a_screen_shows_of_it(store: SessionStore) -> None:
    """Its beginning or end, the one written last first; never a name, a copy, or what is no session."""
    ids = ["019ad5e0-5c1e-7b6e-9a51-3f0c8f4f2a10", "019ad5e0-5c1e-7b6e-9a51-3f0c8f4f2b10", "019ad5"]
    for number, name in enumerate(ids):
        session = await store.create("a", name)
        await session.append(user("hi"))
        await session.close()
        os.utime(session.path, (1_000 + number, 1_000 + number))
    other = "019ad5e0-5c1e-7b6e-9a51-3f0c8f4f2c10"
    shutil.copy(store.path("a", ids[0]), store.path("a", other))
    store.path("a", other.replace("2c10", "2d10")).mkdir()
    store.path("a", other.replace("2c10", "2e10")).symlink_to(store.path("a", ids[0]))
    assert store.matching("a", "019ad5") == (ids[1], ids[0])
    assert store.matching("a", "4f2b10") == (ids[1],) and store.matching("a", "ad5e0-") == ()
    assert store.matching("a", "2b10") == () and store.matching("nobody", "019ad5e0") == ()


async def test_the_nearest_names_are_told_to_whoever_mistyped_one(store: SessionStore) -> None:
    for name in ("taxes 2026", "holidays"):
        session = await store.create("a", name)
        await session.append(user("hi"))
        await session.close()
    assert store.near("a", "taxes 206") == ("taxes 2026",) and store.near("a", "zzz") == ()


async def test_what_was_said_is_searched(store: SessionStore) -> None:
    session = await store.create("a", "n", channel="terminal")
    await session.append(user("Where is Müller?"))
    (find,) = await store.ask(lambda: store.search("muller", Filter(channel="terminal")))
    assert (find.session, find.entry, find.passage, store.searched.behind) == ("n", 1, "Where is Müller?", 0)
    assert store.search("muller", Filter(channel="telegram")) == ()
    await session.close()


async def test_a_text_that_lies_in_a_blob_is_searched_too(store: SessionStore) -> None:
    """Appended or read anew; when its blob is gone, nothing is found of it, nor of what stands in its place."""
    session = await store.create("a", "n")
    await session.append(user("hi"))
    assert store.search("needle") == ()
    await session.append(user("straw " * 20_000 + "needle"))
    assert [find.entry for find in store.search("needle")] == [2]
    store.index.rebuild()
    assert [find.entry for find in store.search("needle")] == [2]
    shutil.rmtree(store.folder.parent / "blobs")
    store.index.rebuild()
    assert store.search("needle") == () and store.search("longer there") == () and store.list("a")[0].messages == 2
    await session.close()


async def test_the_index_takes_in_what_it_is_told_has_changed(store: SessionStore) -> None:
    """And, in the background, whatever else there is."""
    session = await store.create("a", "n")
    await session.append(user("hi"))
    store.changed(session.path)
    await store.update_index()
    await store.update_index()
    assert indexed(store) == [("n", 1)]
    other = await store.create("a", "o")
    await store.keep_index()
    assert indexed(store) == [("n", 1), ("o", 0)]
    await session.close()
    await other.close()


def indexed(store: SessionStore) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(store.index.path)) as connection:
        return connection.execute("SELECT id, messages FROM sessions ORDER BY id").fetchall()
