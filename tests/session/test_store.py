"""Where sessions lie: names that never collide or leave the folder, lists that show sessions only."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import SessionError, SessionLocked
from runtime.session.store import SessionStore, file_name

from .records import AT, patient, user

names = st.text(min_size=1, max_size=16) | st.text("aA._-%/\\ \0:~", min_size=1, max_size=8)
wild = st.text(st.characters(categories=["Cs", "Lu", "Ll", "So"]), min_size=1, max_size=6)


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    numbers = count(1)
    return SessionStore(tmp_path / "sessions", lambda: f"id-{next(numbers)}", lambda: AT)


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
    assert Path(encoded).name == encoded and not encoded.startswith(".")
    assert set(encoded) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_%")
    assert encoded.encode()


@pytest.mark.parametrize("name", ["", "x" * 201, "é" * 40, "A" * 67])
def test_names_that_no_file_can_have_are_refused(name: str) -> None:
    """The error counts what the file name would take."""
    with pytest.raises(SessionError, match="1 to 200 bytes"):
        file_name(name)


async def test_sessions_lie_under_their_agent(store: SessionStore) -> None:
    """Named, or with an id of their own."""
    named, other = await store.create("My Agent", "chat/1"), await store.create("My Agent")
    assert named.path == store.folder / "%4dy%20%41gent" / "chat%2f1.jsonl"
    assert (other.id, other.agent, other.header.created) == ("id-1", "My Agent", AT)
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


async def test_a_folder_that_cannot_be_made_is_named(store: SessionStore) -> None:
    """Where a file stands in its place, for one."""
    store.folder.write_text("")
    with pytest.raises(SessionError, match=f"cannot create the folder {store.folder}"):
        await store.create("a")


async def test_the_list_shows_sessions_only_newest_first(store: SessionStore) -> None:
    """Side files, copies, folders, pipes and other people's files are left out; so is an agent without sessions."""
    for number, name in enumerate(["old", "new", "middle"]):
        session = await store.create("a", name)
        await session.append(user("hi"))
        await session.close()
        changed = 1_000_000 + [0, 200, 100][number]
        os.utime(session.path, (changed, changed))
    folder = store.folder / "a"
    for name in ["old.jsonl.torn-12", "old.jsonl.broken-12", "old.jsonl.new", "x.jsonl", "notes.txt"]:
        (folder / name).write_bytes(b"text\n")
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    shutil.copy(folder / "old.jsonl", folder / "copy.jsonl")
    assert [(info.id, info.agent) for info in store.list("a")] == [("new", "a"), ("middle", "a"), ("old", "a")]
    assert store.list("a")[0].changed == 1_000_200
    assert store.list("nobody") == []


async def test_every_listed_session_can_be_opened(store: SessionStore) -> None:
    """By the agent and id that the list shows, whatever letters they are made of."""
    for name in ["A b", "é", "..", "a%2fb"]:
        session = await store.create("Ä", name)
        await session.append(user("hi"))
        await session.close()
    listed = store.list("Ä")
    assert {info.id for info in listed} == {"A b", "é", "..", "a%2fb"}
    for info in listed:
        await (await store.open(info.agent, info.id)).close()
