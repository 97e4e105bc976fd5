"""A branch as a session of its own: what comes along, what does not, while the other is open or redacted."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Image, Text, Usage
from runtime.errors import SessionError
from runtime.session.care.erasure import ERASURE
from runtime.session.entries import (
    Baseline,
    BranchSummaryRecord,
    Header,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    PinRecord,
    RedactRecord,
    ResultRecord,
    Waiting,
)
from runtime.session.format.blobs import FolderBlobs
from runtime.session.moving.forking import branch_as_session, fork_session, fork_tree
from runtime.session.moving.rewind import fork_point, undo, undo_head
from runtime.session.opening import read_log
from runtime.session.store import SessionStore
from runtime.session.tree import Tree
from runtime.session.view.live import LiveStanding
from runtime.session.view.projection import project
from runtime.session.view.spending import spent
from runtime.session.view.standing import standing_of

from .logs import Log, call
from .records import AT, patient, user
from .test_rewind import exchange, go, wanderings


def store_in(folder: Path) -> SessionStore:
    numbers = count(1)
    return SessionStore(folder / "sessions", lambda: f"00000000-0000-7000-8000-{next(numbers):012}", lambda: AT)


async def forked(store: SessionStore, session: str, entry: int | None = None) -> Tree:
    return Tree(read_log(store.path("a", await fork_session(store, "a", session, entry))).entries)


async def test_a_fork_of_a_session_that_is_open_and_goes_on(tmp_path: Path) -> None:
    """It is only read; ids and parents stay; the header says where it came from."""
    store = store_in(tmp_path)
    session = await store.create("a", "garden", channel="terminal")
    try:
        await session.append(user("one"), MessageRecord(role="assistant", content=(Text("1"),), stop="stop"))
        await session.append(user("two"), MessageRecord(role="assistant", content=(Text("2"),), stop="stop"))
        before = session.path.read_bytes()
        identity = await fork_session(store, "a", "garden", 1)
        assert session.path.read_bytes() == before
        await session.append(user("three"))
    finally:
        await session.close()
    reading = read_log(store.path("a", identity))
    assert [(entry.id, entry.parent) for entry in reading.entries] == [(1, None), (2, 1)]
    assert reading.header.origin == {"kind": "fork", "session": "garden", "entry": 2}
    assert reading.header.channel == "terminal"
    assert reading.findings == ()
    again = await store.open("a", identity)
    (entry,) = await again.append(user("other two"))
    await again.close()
    assert (entry.id, entry.parent) == (3, 2)


async def test_where_it_goes_on_is_the_default_and_slips_are_told(tmp_path: Path) -> None:
    """No such session, no such entry, nothing said."""
    store = store_in(tmp_path)
    session = await store.create("a", "s")
    await session.append(user("one"), user("two"))
    await session.close()
    tree = await forked(store, "s")
    assert tree.leaf == 2
    with pytest.raises(SessionError, match=r"no entry 9 .*nearest: 2"):
        await fork_session(store, "a", "s", 9)
    with pytest.raises(SessionError, match="does not exist"):
        await fork_session(store, "a", "t")
    with pytest.raises(SessionError, match="nothing to fork"):
        branch_as_session(Tree())
    assert len(list(store.path("a", "s").parent.glob("*.jsonl"))) == 2


async def test_a_fork_at_a_call_shows_stand_ins(tmp_path: Path) -> None:
    """The results are not on the branch."""
    log = Log()
    log.user("a")
    reply = log.calls("x", "y")
    log.result(reply)
    entries, tip = branch_as_session(log.tree, reply)
    assert tip == reply
    shown = Log()
    for entry in entries:
        shown.tree.add(entry)
    assert shown.shown == ["user: a", "reply: [x] [y]", "stand-in: x", "stand-in: y"]


def test_a_message_stands_for_its_turn() -> None:
    """The numbers of /tree are those of messages; any other entry is meant exactly, on whatever branch."""
    log = Log()
    first = exchange(log, "a")
    end = log.tree.leaf
    second = exchange(log, "b")
    tip = log.tree.leaf
    go(log, undo(log.tree))
    exchange(log, "other b")
    assert [branch_as_session(log.tree, each)[1] for each in (first, second, second + 1)] == [end, tip, second + 1]


def test_what_concerns_the_branch_comes_along_and_nothing_else() -> None:
    """Names, pins and notes of it; no input that waits, not even in a head; nothing of other branches."""
    log = Log()
    first = exchange(log, "a")
    exchange(log, "b")
    lost = log.add(NoteRecord(text="on b"))
    go(log, undo(log.tree))
    log.add(InboxRecord(state="held", content=(Text("wait"),)))
    second = exchange(log, "c")
    head = log.head(second, inbox=(Waiting(entry=8, state="held", content=(Text("wait"),)),))
    mine = [
        log.add(LabelRecord(text="x", target=first)),
        log.add(PinRecord(target=second)),
        log.add(NoteRecord(text="n")),
    ]
    log.add(PinRecord())
    log.add(LabelRecord(text="tag"))
    entries, _ = branch_as_session(log.tree)
    numbers = [entry.id for entry in entries]
    assert numbers == sorted(numbers)
    assert set(mine) <= set(numbers)
    assert lost not in numbers
    assert {entry.record.type for entry in entries} == {"message", "request", "head", "label", "pin", "note"}
    assert next(entry.record for entry in entries if entry.id == head).inbox == ()  # type: ignore[union-attr] # a head


async def test_what_was_redacted_is_not_copied(tmp_path: Path) -> None:
    """Neither the words nor what was made of them, also where only the input that brought them was redacted."""
    store, log = store_in(tmp_path), Log()
    item = log.add(InboxRecord(state="queued", content=(Text("my password is hunter2"),)))
    log.user("my password is hunter2", inbox=item)
    reply = log.calls("x")
    log.result(reply, text="hunter2 is a fine one")
    result = log.tree.leaf
    assert result is not None
    third = exchange(log, "c")
    log.head(third, summary="They told hunter2.")
    log.add(RedactRecord(target=item))
    log.add(RedactRecord(target=result))
    identity = await fork_tree(store, _header(), log.tree)
    path = store.path("a", identity)
    assert b"hunter2" not in path.read_bytes()
    tree = Tree(read_log(path).entries)
    causes = [entry.record.cause for entry in tree.entries if isinstance(entry.record, RedactRecord)]
    assert causes == ["user", "user", ERASURE]
    assert "hunter2" not in str(project(tree.branch(), tree.redacted).messages)


async def test_a_fork_was_paid_for_by_the_session_that_it_was_made_of(tmp_path: Path) -> None:
    """What a fork spent, and what a list says of it, begins after what was copied, heads and all."""
    store = store_in(tmp_path)
    session = await store.create("a", "garden")
    await session.append(user("one"), outcome(0.5))
    start = (await session.append(user("two"), outcome(0.25)))[0].id
    await session.append(
        HeadRecord(start=start, baseline=Baseline(sections={}), cause="snip", generation=1, spent=0.75)
    )
    await session.close()
    made = await fork_session(store, "a", "garden")
    fork = await store.open("a", made)
    try:
        assert spent_in(fork.tree) == {0.0}
        await fork.append(user("three"), outcome(0.125))
        assert spent_in(fork.tree) == {0.125}
        await fork.append(undo_head(fork.tree))
        assert spent_in(await fork.whole()) == {0.125}
    finally:
        await fork.close()
    again = await store.open("a", await fork_session(store, "a", made))
    assert spent_in(again.tree) == {0.0}
    await again.close()
    costs = {info.cost for info in store.list("a")}
    assert costs == {0.75, 0.125, 0.0}


def outcome(cost: float) -> OutcomeRecord:
    return OutcomeRecord(request=1, stop="stop", usage=Usage(plain=1), cost=cost)


def spent_in(tree: Tree) -> set[float | None]:
    return {
        spent(tree.entries, tree.copied),
        standing_of(tree.entries, tree.copied).spent,
        LiveStanding().read(tree).spent,
    }


async def test_large_content_stays_where_it_lies(tmp_path: Path) -> None:
    """The fork names the same blobs."""
    store, log = store_in(tmp_path), Log()
    picture = Image("image/png", "aGVs" * 10_000)
    log.add(MessageRecord(role="user", content=(picture, Text("what is it?"))))
    reply = log.reply(call("x"))
    log.add(ResultRecord(call=(reply, 0), tool="x", content=(Text("short"),), whole="w" * 20_000))
    blobs = FolderBlobs(store.folder.parent / "blobs")
    identity = await fork_tree(store, _header(), log.tree, None, blobs)
    twice = await fork_session(store, "a", identity)
    data = [store.path("a", each).read_bytes().split(b"\n", 1)[1] for each in (identity, twice)]
    assert data[0] == data[1]
    assert len(data[0]) < 5_000
    assert project(read_log(store.path("a", twice), blobs).entries).messages == log.projection.messages


async def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """The reason is told."""
    store, log = store_in(tmp_path), Log()
    log.user("a")
    store.folder.mkdir()
    (store.folder / "a").write_text("in the way")
    with pytest.raises(SessionError, match="Nothing was forked"):
        await fork_tree(store, _header(), log.tree)


def _header() -> Header:
    return Header(id="s", agent="a", created=AT)


@given(wanderings(), st.data())
@patient
def test_a_fork_shows_the_model_what_the_branch_showed(log: Log, data: st.DataObject) -> None:
    """At any entry that a branch holds, the same messages; at a message, those of its turn."""
    branch = log.branch
    if not branch:
        return
    entry = data.draw(st.sampled_from([entry.id for entry in branch]))
    tip = fork_point(log.tree, entry)
    entries, last = branch_as_session(log.tree, entry)
    tree = Tree(entries)
    assert (tree.leaf, last) == (tip, tip)
    assert project(tree.branch()).messages == project(log.tree.branch_to(tip)).messages
    assert not any(isinstance(entry.record, BranchSummaryRecord) for entry in entries)
    assert all(entry.parent is None or entry.parent in tree for entry in entries)
    assert not any(entry.record.inbox for entry in entries if isinstance(entry.record, HeadRecord))
