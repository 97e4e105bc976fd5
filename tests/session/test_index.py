"""The index: as the files say, whatever happened to them or to it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from governors.messages import Image, Text, Thinking, ToolCall, Usage
from runtime.session.entries import (
    ArchiveRecord,
    Baseline,
    BranchSummaryRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    MessageRecord,
    OutcomeRecord,
    Pinned,
    PinRecord,
    RedactRecord,
    RequestRecord,
    ResultRecord,
)
from runtime.session.format.codec import encode_batch
from runtime.session.index.index import SessionIndex
from runtime.session.index.listing import Filter, Listing

from .folders import Sessions, another_version, expected_finds, expected_list, garbage, half_a_schema, undo
from .records import user

ALL = Filter(archived=None)
SHOWN = ("id", "agent", "said", "messages", "tags", "pinned", "archived", "cost")


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "sessions")


@pytest.fixture
def index(sessions: Sessions) -> Iterator[SessionIndex]:
    with index_of(sessions) as found:
        yield found


@contextmanager
def index_of(sessions: Sessions, **options: Any) -> Iterator[SessionIndex]:
    found = SessionIndex(sessions.root, sessions.root.parent / "index.sqlite", **options)
    try:
        yield found
    finally:
        found.close()


def listed(index: SessionIndex, wanted: Filter = ALL) -> Listing:
    return index.list(wanted, patience=None)


def shown(listing: Listing) -> list[dict[str, Any]]:
    return [{name: getattr(info, name) for name in SHOWN} for info in listing]


def found(index: SessionIndex, typed: str, wanted: Filter = ALL, limit: int = 1_000) -> set[tuple[str, int, str, bool]]:
    finds, _ = index.search(typed, wanted, limit, patience=None)
    return {(find.session, find.entry, find.who, find.current) for find in finds}


def reply(text: str, *calls: ToolCall, **fields: Any) -> MessageRecord:
    return MessageRecord(role="assistant", content=(Text(text), *calls), stop="stop", **fields)


def spent(cost: float | None) -> OutcomeRecord:
    return OutcomeRecord(request=1, stop="stop", usage=Usage(plain=1, output=1), cost=cost)


# What happens to a folder ------------------------------------------------------------------------------------------

names = st.sampled_from(["one", "two", "three"])
texts = st.sampled_from(
    ["milk and bread", "Straße nach München", "你好，明天的会议", "bread 🙂", "x" * 5_000, "c++ a/b"]
)
numbers = st.integers(1, 6)
happenings = st.one_of(
    st.tuples(st.just("create"), names),
    st.tuples(st.just("say"), names, texts),
    st.tuples(st.just("answer"), names, texts),
    st.tuples(st.just("spend"), names),
    st.tuples(st.just("tag"), names, st.booleans()),
    st.tuples(st.just("pin"), names, st.booleans()),
    st.tuples(st.just("archive"), names, st.booleans()),
    st.tuples(st.just("redact"), names, numbers),
    st.tuples(st.just("undo"), names, st.none() | numbers),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("copy"), names, names),
    st.tuples(st.just("tear"), names, st.integers(1, 90)),
    st.tuples(st.just("corrupt"), names, st.integers(0, 10**6)),
    st.tuples(st.just("touch"), names),
    st.tuples(
        st.just("index"), st.sampled_from(["gone", "noise", "cut", "half", "version", "folder", "empty", "mixed"])
    ),
    st.tuples(st.just("noise in the index"), st.integers(0, 10**6)),
    st.tuples(st.just("another process")),
    st.tuples(st.just("crash")),
)


class World:
    """A folder with an index, to which things happen."""

    def __init__(self, root: Path) -> None:
        self.sessions = Sessions(root / "sessions")
        self.path = root / "index.sqlite"
        self.index = SessionIndex(self.sessions.root, self.path)

    def happen(self, what: str, *given: Any) -> None:
        getattr(self, f"_{what.replace(' ', '_')}")(*given)

    def check(self) -> None:
        assert shown(listed(self.index)) == expected_list(self.sessions)
        for typed in ("bread", "strasse", "会议", "c++"):
            assert found(self.index, typed) == expected_finds(self.sessions, typed)

    def _create(self, name: str) -> None:
        self.sessions.create(name)

    def _say(self, name: str, text: str) -> None:
        self.sessions.append(name, user(text))

    def _answer(self, name: str, text: str) -> None:
        self.sessions.append(name, reply(text, ToolCall("c", "x", "{}")), spent(0.25))

    def _spend(self, name: str) -> None:
        self.sessions.append(name, spent(0.5))

    def _tag(self, name: str, on: bool) -> None:
        self.sessions.append(name, LabelRecord(text="t", on=on))

    def _pin(self, name: str, on: bool) -> None:
        self.sessions.append(name, PinRecord(on=on))

    def _archive(self, name: str, on: bool) -> None:
        self.sessions.append(name, ArchiveRecord(on=on))

    def _redact(self, name: str, entry: int) -> None:
        self.sessions.append(name, RedactRecord(target=entry))

    def _undo(self, name: str, entry: int | None) -> None:
        self.sessions.append(name, undo(entry))

    def _delete(self, name: str) -> None:
        self.sessions.path(name).unlink(missing_ok=True)

    def _rename(self, name: str, other: str) -> None:
        if self.sessions.path(name).exists():
            self.sessions.path(name).rename(self.sessions.path(other))

    def _copy(self, name: str, other: str) -> None:
        if self.sessions.path(name).exists() and name != other:
            shutil.copy(self.sessions.path(name), self.sessions.path(other))

    def _tear(self, name: str, length: int) -> None:
        path = self.sessions.path(name)
        if path.exists():
            os.truncate(path, max(0, path.stat().st_size - length))

    def _corrupt(self, name: str, seed: int) -> None:
        garbage(self.sessions.path(name), seed)

    def _touch(self, name: str) -> None:
        if self.sessions.path(name).exists():
            os.utime(self.sessions.path(name), (5, 5))

    def _index(self, how: str) -> None:
        spoil(self.path, how)

    def _noise_in_the_index(self, seed: int) -> None:
        with SessionIndex(self.sessions.root, self.path) as other:
            other.catch_up()
        spoil_page(self.path, seed)

    def _another_process(self) -> None:
        other = SessionIndex(self.sessions.root, self.path)
        assert shown(listed(other)) == expected_list(self.sessions)
        other.close()

    def _crash(self) -> None:
        """Whoever wrote the index died in the middle of a transaction."""
        if self.path.is_file():
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=0)) as dying, suppress(sqlite3.Error):
                dying.execute("BEGIN IMMEDIATE")
                dying.execute("DELETE FROM sessions")
                dying.execute("DELETE FROM said")


def spoil(path: Path, how: str) -> None:
    if path.is_dir():
        return
    if how == "folder":
        path.unlink(missing_ok=True)
        path.mkdir()
        (path / "thing").touch()
    elif not path.exists() or how == "gone":
        path.unlink(missing_ok=True)
    elif how == "noise":
        path.write_bytes(os.urandom(5_000))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "mixed":  # the file of another index over this one, beside its old write-ahead log
        path.with_name("index.sqlite-wal").write_bytes(os.urandom(9_000))
    else:
        with suppress(sqlite3.Error):
            {"half": half_a_schema, "version": another_version}[how](path)


def spoil_page(path: Path, seed: int) -> None:
    """Overwrite one page of the file, as a bad disk does."""
    if path.is_file() and (pages := path.stat().st_size // 4_096):
        with path.open("r+b") as file:
            file.seek(seed % pages * 4_096)
            file.write(os.urandom(4_096))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(happenings, st.booleans()), max_size=12))
@example([(("redact", "one", 1), True)])
@example([(("undo", "one", None), True), (("say", "one", "milk and bread"), True), (("undo", "one", 1), True)])
@example([(("corrupt", "one", 150), False), (("say", "one", "milk and bread"), True)])
def test_the_list_and_the_finds_are_those_of_the_files(happened: list[tuple[tuple[Any, ...], bool]]) -> None:
    """After whatever happened to the files, to the index, between the two, or in another process."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for name in ("one", "two"):
            world.happen("create", name)
            world.happen("say", name, "milk and bread")
        world.check()
        try:
            for (what, *given_to_it), looked_at in happened:
                world.happen(what, *given_to_it)
                if looked_at:
                    world.check()
            world.check()
            world.check()  # also by what was built just now
        finally:
            world.index.close()


# What is searched --------------------------------------------------------------------------------------------------


def test_only_what_people_and_agents_said_is_found(sessions: Sessions, index: SessionIndex) -> None:
    """No context, thinking, calls, results, notes, waiting input, summaries or copies in a head."""
    sessions.create("one")
    moon = (Text("moon"),)
    head = HeadRecord(
        start=1,
        baseline=Baseline(sections={"s": "moon"}),
        cause="moon",
        generation=1,
        summary="moon",
        quote="moon",
        pins=(Pinned(entry=1, said="user", content=moon),),
    )
    call = ToolCall("moon", "moon", '{"moon": 1}')
    sessions.append(
        "one", MessageRecord(role="user", content=(Text("sun"), Image("image/png", "moon")), context="moon")
    )
    sessions.append("one", MessageRecord(role="assistant", content=(Thinking("moon"), Text("stars"), call)))
    sessions.append("one", ResultRecord(call=(2, 0), tool="moon", content=moon, whole="moon"))
    sessions.append("one", head, InboxRecord(state="queued", content=moon), BranchSummaryRecord(text="moon", tip=1))
    sessions.append("one", ExtensionRecord(name="moon", content=moon), LabelRecord(text="moon"))
    assert found(index, "moon") == set()
    assert found(index, "sun") == {("one", 1, "user", True)} and found(index, "stars") == {
        ("one", 2, "assistant", True)
    }


def test_a_find_says_what_a_person_needs_to_go_there(sessions: Sessions, index: SessionIndex) -> None:
    path = sessions.create("Plans 2", agent="My agent")
    sessions.append("Plans 2", user("Where to?"), agent="My agent")
    sessions.append("Plans 2", reply("x " * 100 + "to the Moon, of course. " + "y " * 100), agent="My agent")
    sessions.append("Plans 2", undo(1), user("Mars"), agent="My agent")
    (find,), state = index.search("MOON", Filter(), 5)
    assert (find.session, find.agent, find.entry, find.who, find.path) == ("Plans 2", "My agent", 2, "assistant", path)
    assert (find.at, find.current, find.title) == ("2026-11-30T00:00:03.000Z", False, "Where to?")
    assert (
        find.passage.startswith("…x x") and "x to the Moon, of course. y" in find.passage and find.passage.endswith("…")
    )
    assert len(find.passage) < 170 and (state.behind, state.skipped) == (0, {})


@pytest.mark.parametrize("full_text", [True, False])
@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("Die Straße nach München", "strasse munch"),
        ("Die Straße nach München", "STRASSE MÜNCHEN"),
        ("naïve façade", "naive facade"),
        ("你好，明天的会议在上海", "会议"),
        ("你好，明天的会议在上海", "明天的会"),
        ("東京タワーへ", "タワー"),
        ("ประเทศไทยสวย", "ไทย"),
        ("안녕하세요 세계", "안녕"),
        ("great 🙂🚀", "🚀"),
        ("see runtime/session/index/index.py", "session/index"),
        ("in C++ it is a->b", "c++ a->b"),
        ("the quick brown fox", '"quick brown" fo'),
        ("the quick brown fox", "quick* fox*"),
    ],
)
def test_words_are_found_in_any_script(sessions: Sessions, said: str, typed: str, full_text: bool) -> None:
    """Whatever their case and accents, with the full-text table and without."""
    sessions.create("one")
    sessions.append("one", user(said), user("something else"))
    with index_of(sessions, full_text=full_text) as index:
        assert {entry for _, entry, _, _ in found(index, typed)} == {1}


@pytest.mark.parametrize("full_text", [True, False])
@pytest.mark.parametrize("typed", ['"brown quick"', "uick", "c++", "", "  ", '""', "quick moon", "a->b", "*"])
def test_what_was_not_said_is_not_found(sessions: Sessions, typed: str, full_text: bool) -> None:
    sessions.create("one")
    sessions.append("one", user("the quick brown fox in C and a-b"))
    with index_of(sessions, full_text=full_text) as index:
        assert found(index, typed) == set()


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.text(max_size=20) | st.text('ab "*-:^()+', max_size=9), min_size=1, max_size=4),
    st.text(max_size=12)
    | st.text('ab "*-:^()+', max_size=9)
    | st.sampled_from(["NEAR(a b)", "text:a", "a OR b", "NOT"]),
)
@example(["a or b", "b"], "a OR b")
@example(["\0a", "\ud800"], "\0")
def test_anything_may_be_looked_for(said: list[str], typed: str) -> None:
    """The full-text table finds what a plain reading of every message finds."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = Sessions(Path(folder) / "sessions")
        sessions.create("one")
        sessions.append("one", *(user(text) for text in said))
        expected = expected_finds(sessions, typed)
        for full_text in (True, False):
            with index_of(sessions, full_text=full_text) as index:
                assert found(index, typed) == expected


def test_the_newest_finds_come_first(sessions: Sessions, index: SessionIndex) -> None:
    for name in ("one", "two"):
        sessions.create(name)
    for number in range(6):
        sessions.append(("one", "two")[number % 2], user(f"moon {number}"))
    finds, _ = index.search("moon", Filter(), 4)
    assert [find.passage for find in finds] == ["moon 5", "moon 4", "moon 3", "moon 2"]
    finds, _ = index.search("moon", Filter(offset=4), 4)
    assert [find.passage for find in finds] == ["moon 1", "moon 0"]


def test_a_redacted_entry_is_not_found_and_leaves_the_title(sessions: Sessions, index: SessionIndex) -> None:
    """At once; with the message that brought redacted input."""
    sessions.create("one")
    sessions.append("one", user("my secret"), user("hello"))
    assert found(index, "secret") and listed(index)[0].title == "my secret"
    sessions.append("one", RedactRecord(target=1))
    assert not found(index, "secret") and listed(index)[0].title == "hello"
    sessions.append("one", InboxRecord(state="queued", content=(Text("secret"),)), user("secret", inbox=4))
    sessions.append("one", RedactRecord(target=4))
    assert not found(index, "secret") and found(index, "hello")


def test_nothing_of_what_was_redacted_is_left_after_a_rebuild(sessions: Sessions, index: SessionIndex) -> None:
    """Not even in pages that are free."""
    sessions.create("one")
    sessions.append("one", user("zanzibarian plans"), user("hello"))
    listed(index)
    assert stored(index, b"zanzibarian")
    sessions.append("one", RedactRecord(target=1))
    index.rebuild()
    assert not stored(index, b"zanzibarian") and stored(index, b"hello")
    assert found(index, "hello")


def stored(index: SessionIndex, word: bytes) -> bool:
    return any(word in path.read_bytes() for path in index.path.parent.glob("index.sqlite*"))


# What is listed ----------------------------------------------------------------------------------------------------


def test_a_list_says_what_a_session_is(sessions: Sessions, index: SessionIndex) -> None:
    origin = {"kind": "fork", "session": "zero", "entry": 4}
    path = sessions.create("one", channel="telegram", origin=origin)
    request = RequestRecord(
        purpose="turn", provider="p", model="m-1", wire="w", prefix="", forecast=1, budget=9, blocks=1
    )
    sessions.append("one", user("  Hello\n\nthere, " + "and so on " * 20), request)
    sessions.append("one", spent(0.5), reply("Hi", ToolCall("1", "x", "{}"), ToolCall("2", "x", "{}"), model="m-1"))
    sessions.append("one", spent(0.25), reply("Ho", model="m-2"), LabelRecord(text="a"), LabelRecord(text="b c"))
    sessions.append("one", LabelRecord(text="a", on=False), LabelRecord(text="entry", target=1), PinRecord())
    (info,) = listed(index)
    assert (info.id, info.agent, info.created, info.path) == ("one", "a", "2026-11-30T00:00:01.000Z", path)
    assert (info.said, info.title) == ("2026-11-30T00:00:04.000Z", "Hello there, " + "and so on " * 6 + "and so…")
    assert (info.channel, info.models, info.tags) == ("telegram", ("p/m-1", "m-2"), ("b c",))
    assert (info.pinned, info.archived, info.cost, info.messages, info.calls) == (True, False, 0.25, 3, 2)
    assert (info.origin, info.size, info.empty) == (origin, path.stat().st_size, False)
    sessions.append("one", spent(None))
    assert listed(index)[0].cost is None


FILTERS: dict[str, tuple[Filter, set[str]]] = {
    "archived ones are put away": (Filter(), {"plain", "rich", "fork", "empty"}),
    "only archived": (Filter(archived=True), {"away"}),
    "both": (Filter(archived=None), {"plain", "rich", "fork", "empty", "away"}),
    "agent": (Filter(agent="b"), {"fork"}),
    "no agent of that name": (Filter(agent="x" * 900), set()),
    "channel": (Filter(channel="telegram"), {"rich"}),
    "pinned": (Filter(pinned=True), {"rich"}),
    "not pinned": (Filter(pinned=False), {"plain", "fork", "empty"}),
    "tag": (Filter(tag="two words"), {"rich"}),
    "a part of a tag": (Filter(tag="two"), set()),
    "dear": (Filter(min_cost=0.2), {"rich"}),
    "cheap": (Filter(max_cost=0.2), {"plain", "empty"}),
    "model": (Filter(model="p/m"), {"rich"}),
    "model without its provider": (Filter(model="m"), {"rich"}),
    "another model": (Filter(model="p"), set()),
    "forks": (Filter(origin="fork"), {"fork"}),
    "own": (Filter(origin="own"), {"plain", "rich", "empty"}),
    "empty": (Filter(empty=True), {"empty"}),
    "spoken in": (Filter(empty=False, archived=None), {"plain", "rich", "fork", "away"}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(sessions: Sessions, index: SessionIndex, name: str) -> None:
    request = RequestRecord(purpose="t", provider="p", model="m", wire="w", prefix="", forecast=1, budget=9, blocks=1)
    sessions.create("empty")
    sessions.create("plain")
    sessions.create("rich", channel="telegram")
    sessions.create("fork", agent="b", origin={"kind": "fork", "session": "plain", "entry": 1})
    sessions.create("away")
    sessions.append("plain", user("hi"))
    sessions.append("rich", user("hi"), request, spent(0.5), PinRecord(), LabelRecord(text="two  words"))
    sessions.append("fork", user("hi"), spent(None), agent="b")
    sessions.append("away", user("hi"), ArchiveRecord())
    wanted, expected = FILTERS[name]
    listing = listed(index, wanted)
    assert {info.id for info in listing} == expected and listing.total == len(expected)
    assert {session for session, *_ in found(index, "hi", wanted)} == expected - {"empty"}


def test_times_hold_the_newest_message_of_a_list_and_each_message_of_a_search(
    sessions: Sessions, index: SessionIndex
) -> None:
    sessions.create("one")
    sessions.append("one", user("first"))  # at 00:00:02
    sessions.append("one", user("second"))
    at = datetime(2026, 11, 30, 0, 0, 2, tzinfo=UTC)
    second = timedelta(seconds=1)
    assert len(listed(index, Filter(since=at + second))) == 1 and not len(listed(index, Filter(since=at + 2 * second)))
    assert not len(listed(index, Filter(until=at + second))) and len(listed(index, Filter(until=at + 2 * second))) == 1
    assert found(index, "first", Filter(until=at + second)) and not found(index, "first", Filter(since=at + second))


def test_a_page_of_a_list_knows_the_whole(sessions: Sessions, index: SessionIndex) -> None:
    for number in range(7):
        sessions.create(f"s{number}")
    page = listed(index, Filter(limit=3, offset=2))
    assert ([info.id for info in page], page.total, len(page), page[0].id) == (["s4", "s3", "s2"], 7, 3, "s4")


def test_what_was_said_last_comes_first_whatever_was_written_since(sessions: Sessions, index: SessionIndex) -> None:
    """Putting away, naming or touching a session is not talking."""
    for name in ("one", "two"):
        sessions.create(name)
        sessions.append(name, user("hi"))
    sessions.append("one", LabelRecord(text="t"))
    os.utime(sessions.path("one"))
    assert [info.id for info in listed(index)] == ["two", "one"]


def test_what_is_no_session_is_skipped_and_counted(sessions: Sessions, index: SessionIndex, tmp_path: Path) -> None:
    """Links, pipes, folders, copies, and files of other formats; what belongs beside a session is not counted."""
    path = sessions.create("one")
    sessions.append("one", user("hi"))
    folder = path.parent
    shutil.copy(path, tmp_path / "outside.jsonl")
    (folder / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (sessions.root / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    shutil.copy(path, folder / "copy.jsonl")
    (sessions.root / "b").mkdir()
    shutil.copy(path, sessions.root / "b" / "one.jsonl")
    (folder / "other.jsonl").write_text('{"type":"user"}\n')
    (folder / "empty.jsonl").touch()
    (folder / "ÿ\n.jsonl").touch()
    (folder / "notes.txt").touch()
    for beside in ("one.jsonl.lock", "one.jsonl.torn-12", "one.jsonl.new"):
        (folder / beside).touch()
    for _ in range(2):
        listing = listed(index)
        assert [info.path for info in listing] == [path]
        assert listing.skipped == {"link": 2, "no file": 1, "folder": 1, "copy": 2, "other format": 4}
    assert found(index, "hi") == {("one", 1, "user", True)}
    assert listed(index, Filter(agent="b")).skipped == {"copy": 1}


def test_what_came_in_place_of_a_session_is_counted_once(sessions: Sessions, index: SessionIndex) -> None:
    """A folder of its name, say: the session is gone from the index with all that was said in it."""
    path = sessions.create("one")
    sessions.append("one", user("hi"))
    assert len(listed(index)) == 1
    path.unlink()
    path.mkdir()
    for _ in range(2):
        assert (len(listed(index)), listed(index).skipped, found(index, "hi")) == (0, {"folder": 1}, set())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_skipped_until_it_may(sessions: Sessions, index: SessionIndex) -> None:
    path = sessions.create("one")
    path.chmod(0)
    assert (len(listed(index)), listed(index).skipped) == (0, {"unreadable": 1})
    path.chmod(0o600)
    assert (len(listed(index)), listed(index).skipped) == (1, {})


def test_odd_lines_of_foreign_files_are_no_error(sessions: Sessions, index: SessionIndex) -> None:
    """Numbers that no database holds, times that are none."""
    path = sessions.create("one")
    odd = [
        '{"id":1,"parent":null,"at":"yesterday","type":"message","role":"user","content":[{"type":"text","text":"hi"}]}',
        '{"id":99999999999999999999999,"parent":1,"at":"0001-01-01T00:00:00Z","type":"message","role":"user",'
        '"content":[{"type":"text","text":"ho"}]}',
    ]
    with path.open("a") as file:
        file.write("\n".join(odd) + "\n")
    sessions.append("one", OutcomeRecord(request=1, stop="stop", usage=Usage(), cost=1e308), spent(1e308))
    (info,) = listed(index)
    assert (info.messages, info.cost) == (2, float("inf"))
    assert found(index, "hi") == {("one", 1, "user", True)} and {e for _, e, _, _ in found(index, "ho")} == {10**23 - 1}


# How it keeps up, and heals ----------------------------------------------------------------------------------------


def test_growth_is_read_on_from_where_the_last_reading_ended(sessions: Sessions, index: SessionIndex) -> None:
    """Of a long file only the new bytes: an old line that was spoilt since is not even looked at."""
    path = sessions.create("one")
    sessions.append("one", *(user("x" * 2_000) for _ in range(900)))
    listed(index)
    with path.open("r+b") as file:
        file.seek(5_000)
        file.write(b"\0")
    data = encode_batch([Entry(901, 900, sessions.tick(), user("news"))])
    with path.open("ab") as file:
        file.write(data)
    assert listed(index)[0].messages == 901 and found(index, "news")


def test_a_session_that_was_just_written_is_taken_in(sessions: Sessions, index: SessionIndex) -> None:
    path = sessions.create("one")
    listed(index)
    sessions.append("one", user("moon"))
    index.take_in([path, path.with_name("nothing.jsonl")])
    with closing(sqlite3.connect(index.path)) as connection:
        assert connection.execute("SELECT text FROM said").fetchall() == [("moon",)]


def test_a_list_without_time_says_how_much_it_does_not_know(sessions: Sessions, index: SessionIndex) -> None:
    for number in range(5):
        sessions.create(f"s{number}")
    hasty = index.list(ALL, patience=0)
    assert (len(hasty), hasty.behind) == (0, 5)
    assert index.catch_up() == 0
    hasty = index.list(ALL, patience=5)
    assert (len(hasty), hasty.behind, hasty.fallback) == (5, 0, None)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("gone", "missing"),
        ("noise", "corrupt"),
        ("cut", "corrupt"),
        ("half", "corrupt"),
        ("version", "version"),
        ("folder", "corrupt"),
    ],
)
def test_an_index_that_was_spoilt_is_built_again_and_says_why(sessions: Sessions, how: str, why: str) -> None:
    """The next answer comes from the folder, the one after it from the new index."""
    sessions.create("one")
    sessions.append("one", user("hi"))
    with index_of(sessions) as index:
        listed(index)
    spoil(index.path, how)
    with index_of(sessions) as index:
        assert [(each.fallback, len(each)) for each in (listed(index), listed(index))] == [(why, 1), (None, 1)]
        assert index.counts == {why: 1}
    with index_of(sessions) as index:
        assert listed(index).fallback is None
    asides = [path.name for path in index.path.parent.glob("*.aside-*")]
    assert asides == (["index.sqlite.aside-1"] if how == "folder" else [])


def test_an_index_that_another_process_locks_is_done_without(sessions: Sessions, index: SessionIndex) -> None:
    """While something has to be written; the list is that of the folder, again and again, until the lock is gone."""
    sessions.create("one")
    listed(index)
    with closing(sqlite3.connect(index.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sessions.create("two")
        assert (listed(index).fallback, len(listed(index)), listed(index).fallback) == ("locked", 2, "locked")
        sessions.append("two", user("hi"))
        assert found(index, "hi") == {("two", 1, "user", True)}
    listing = listed(index)
    assert (len(listing), listing.fallback, index.counts["locked"]) == (2, None, 4)


def test_an_index_that_cannot_be_made_is_done_without(sessions: Sessions, tmp_path: Path) -> None:
    """Its folder is a file here."""
    sessions.create("one")
    (tmp_path / "file").touch()
    with SessionIndex(sessions.root, tmp_path / "file" / "index.sqlite") as index:
        assert (listed(index).fallback, len(listed(index))) == ("failed", 1)
        assert index.catch_up() == 0


def test_an_index_that_cannot_be_written_is_done_without(sessions: Sessions, tmp_path: Path) -> None:
    """As on a file system that is read-only."""
    sessions.create("one")
    with index_of(sessions) as index:
        listed(index)
        assert index._mirror is not None
        index._mirror.connection.execute("PRAGMA query_only = ON")  # the nearest to it that root cannot break
        sessions.create("two")
        listing = listed(index)
        assert (len(listing), listing.fallback) == (2, "read-only")


def test_a_folder_without_sessions_is_an_empty_list(sessions: Sessions, index: SessionIndex) -> None:
    assert (len(listed(index)), listed(index).fallback, index.search("hi", ALL, 5)[0]) == (0, None, ())


def test_processes_that_die_while_they_write_the_index_leave_a_right_one(sessions: Sessions) -> None:
    """Killed at any moment, two of them at a time."""
    for number in range(60):
        sessions.create(f"s{number}")
        sessions.append(f"s{number}", user(f"bread {number}"), reply("x " * 300))
    code = (
        "import sys; from pathlib import Path; from runtime.session.index.index import SessionIndex\n"
        "root = Path(sys.argv[1]); print(flush=True)\n"
        "while True:\n"
        "    with SessionIndex(root, root.parent / 'index.sqlite') as index: index.catch_up(); index.rebuild()\n"
    )
    for moment in (0.0, 0.03, 0.08, 0.15):
        command = [sys.executable, "-c", code, str(sessions.root)]
        pair = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
        for process in pair:
            assert process.stdout is not None
            process.stdout.readline()
        deadline = time.monotonic() + moment
        while time.monotonic() < deadline:
            pass
        for process in pair:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        with index_of(sessions) as index:
            assert shown(listed(index)) == expected_list(sessions)
            assert found(index, "bread") == expected_finds(sessions, "bread")
