"""What happened to people's sessions elsewhere, told as stories: through the store, with the damage that they reported.

The number in a name is the fault's in the catalogue of faults that the design was held against.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from governors.messages import Image, Text
from runtime.errors import SessionError, SessionLocked
from runtime.session.care.erasing import erase_redacted
from runtime.session.care.gc import collect_garbage
from runtime.session.care.verify import Verification, verify
from runtime.session.entries import (
    Baseline,
    HeadRecord,
    LeafRecord,
    MessageRecord,
    RedactRecord,
    ResultRecord,
)
from runtime.session.format.blobs import FolderBlobs
from runtime.session.session import Session
from runtime.session.store import SessionStore
from runtime.session.view.projection import project
from runtime.session.view.wrapping import SUMMARY

from .logs import call, line
from .records import AT, user

ROOT = Path(__file__).parents[2]
Damage = Callable[[Path], None]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return new_store(tmp_path)


def new_store(state: Path) -> SessionStore:
    """A store as another process makes one: it knows nothing but the folder."""
    numbers = count(1)
    return SessionStore(state / "sessions", lambda: f"new-{next(numbers)}", lambda: AT)


def shown(session: Session) -> list[str]:
    """What a model would see."""
    return [line(message) for message in project(session.branch(), session.tree.redacted).messages]


def verified(store: SessionStore, agent: str = "cat", session: str = "tea") -> Verification:
    return verify(store.path(agent, session), FolderBlobs(store.folder.parent / "blobs"))


def answer(text: str) -> MessageRecord:
    return MessageRecord(role="assistant", content=(Text(text),), stop="stop")


async def tea(store: SessionStore) -> Path:
    """A conversation about tea, closed in good order."""
    session = await store.create("cat", "tea")
    await session.append(user("Is there tea?"))
    await session.append(answer("There is. Größe: 250 g."))
    await session.append(user("Make some."))
    await session.close()
    return session.path


TEA = ["user: Is there tea?", "reply: There is. Größe: 250 g.", "user: Make some."]


async def reopened(store: SessionStore, then: Callable[[Session], Awaitable[object]]) -> list[str]:
    """What a model sees after somebody resumed the session, went on, and came back another day."""
    session = await store.open("cat", "tea")
    await then(session)
    await session.close()
    session = await new_store(store.folder.parent).open("cat", "tea")
    found = shown(session)
    await session.close()
    return found


def append(data: bytes) -> Damage:
    def damage(path: Path) -> None:
        with path.open("ab") as file:
            file.write(data)

    return damage


TORN = {
    "in the middle of a letter": b'{"id":4,"parent":3,"at":"","type":"message","role":"user","content":"Gr\xc3',
    "in the middle of JSON": b'{"id":4,"parent":3,"at":"","type":"mess',
    "after one byte": b"{",
    "in a block of NULs": b"\0" * 4096,
}


@pytest.mark.parametrize("kind", TORN)
async def test_128_the_power_fails_while_a_line_is_written(store: SessionStore, kind: str) -> None:
    """The next message is not glued to the torn one and lost with it; the torn one is kept beside the file."""
    path = await tea(store)
    append(TORN[kind])(path)
    assert verified(store).sound  # nobody was told that it was kept

    seen = await reopened(store, lambda session: session.append(answer("It is made.")))

    assert seen == [*TEA, "reply: It is made."]
    (beside,) = path.parent.glob("tea.jsonl.torn-*")
    assert beside.read_bytes() == TORN[kind]
    assert [problem.severity for problem in verified(store).problems] == ["note"]


async def test_128_an_editor_takes_the_last_newline(store: SessionStore) -> None:
    """The last entry counts, and what comes next has a line of its own."""
    path = await tea(store)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    seen = await reopened(store, lambda session: session.append(answer("It is made.")))
    assert seen == [*TEA, "reply: It is made."]
    assert verified(store).problems == ()


async def test_128_the_disk_loses_the_whole_file(store: SessionStore) -> None:
    """An empty file is no session: it is named, left as it is, and in nobody's way."""
    path = await tea(store)
    path.write_bytes(b"")
    with pytest.raises(SessionError, match="the file is empty"):
        await store.open("cat", "tea")
    assert path.read_bytes() == b"" and [info.id for info in store.list("cat")] == []
    other = await store.create("cat")
    await other.append(user("Then coffee."))
    await other.close()
    assert [info.id for info in store.list("cat")] == ["new-1"]


async def test_130_two_entries_are_welded_on_one_line(store: SessionStore) -> None:
    """Both are read."""
    path = await tea(store)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], lines[2] + lines[3]]) + b"\n")
    seen = await reopened(store, lambda session: session.append(answer("It is made.")))
    assert seen == [*TEA, "reply: It is made."]
    assert [problem.line for problem in verified(store).problems] == [3]


@pytest.mark.parametrize("size", [1, 200, 700, 4096])
async def test_131_a_block_of_nuls_stands_in_the_middle(store: SessionStore, size: int) -> None:
    """What comes after it is there, in the session as in the list, and the person is told of the block."""
    path = await tea(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0" * size + b"\n", *lines[2:]]))
    session = await store.open("cat", "tea")
    assert shown(session) == TEA
    await session.whole()
    assert [finding.line for finding in session.findings] == [3]
    await session.close()
    (info,) = store.list("cat")
    assert info.messages == 3
    (error,) = verified(store).of("error")
    assert error.line == 3


WRONG = [
    {"id": 4, "parent": 3, "at": "", "type": "message", "role": "robot", "content": []},
    {"id": 4, "parent": 3, "at": "", "type": "message", "role": "user", "content": "not a list"},
    {"id": "4", "parent": 3, "at": "", "type": "message", "role": "user", "content": []},
    ["not", "an", "object"],
]


@pytest.mark.parametrize("wrong", WRONG, ids=["role", "content", "id", "list"])
async def test_133_a_line_of_a_wrong_shape_blocks_nothing(store: SessionStore, wrong: object) -> None:
    """The session loads without it; beginning anew needs to read nothing."""
    path = await tea(store)
    append(json.dumps(wrong).encode() + b"\n")(path)
    seen = await reopened(store, lambda session: session.append(answer("It is made.")))
    assert seen == [*TEA, "reply: It is made."]
    assert json.loads(next(path.parent.glob("tea.jsonl.broken-*")).read_bytes()) == wrong
    assert json.dumps(wrong).encode() in path.read_bytes()  # it is copied aside, never removed


async def test_133_a_session_of_rubbish_does_not_stop_a_new_one(store: SessionStore) -> None:
    """Nothing of the old one is parsed."""
    path = await tea(store)
    path.write_bytes(b"\xff\xfe rubbish \0\0")
    session = await store.create("cat")
    await session.append(user("Hello?"))
    await session.close()
    with pytest.raises(SessionError, match="left as it is"):
        await store.open("cat", "tea")
    assert path.read_bytes() == b"\xff\xfe rubbish \0\0" and not verified(store).sound


_HOLDER = """
import sys, anyio
from pathlib import Path
from runtime.session.store import SessionStore

async def main():
    store = SessionStore(Path(sys.argv[1]), lambda: "x", lambda: "")
    session = await store.open("cat", "tea")
    print("open", flush=True)
    sys.stdin.read()
    await session.close()

anyio.run(main)
"""


async def test_134_the_same_session_is_opened_in_a_second_window(store: SessionStore) -> None:
    """The second one is told who has it, and changes nothing; when the first was killed, it may go on."""
    path = await tea(store)
    before = path.read_bytes()
    command = [sys.executable, "-c", _HOLDER, str(store.folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None and first.stdout.readline() == "open\n"
        with pytest.raises(SessionLocked, match=f"another process \\(id {first.pid}\\)"):
            await store.open("cat", "tea")
        assert verified(store).sound and path.read_bytes() == before
        first.kill()
    seen = await reopened(store, lambda session: session.append(answer("It is made.")))
    assert seen == [*TEA, "reply: It is made."]


async def test_134_two_writers_have_written_the_same_numbers(store: SessionStore) -> None:
    """A copy was synced over, say: of two entries with one id the first counts, the other is kept and named."""
    path = await tea(store)
    append(path.read_bytes().splitlines(keepends=True)[-1].replace(b"Make some.", b"No, coffee."))(path)
    session = await store.open("cat", "tea")
    (entry,) = await session.append(answer("It is made."))
    await session.close()
    assert entry.id == 4
    (error,) = verified(store).of("error")
    assert error.line == 5 and "does not follow" in error.problem
    assert b"No, coffee." in next(path.parent.glob("tea.jsonl.broken-*")).read_bytes()


async def test_136_two_commands_write_the_file_anew_at_once(store: SessionStore) -> None:
    """Each has a file of its own beside it; one after the other, or the second is refused: no mixture."""
    path = await tea(store)
    session = await store.open("cat", "tea")
    await session.append(RedactRecord(target=1))
    await session.close()
    refused = []

    def erase() -> None:
        try:
            erase_redacted(path, FolderBlobs(store.folder.parent / "blobs"), now=0)
        except SessionLocked as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(anyio.to_thread.run_sync, erase)
    assert len(refused) < 8 and verified(store).problems == ()
    assert b"Is there tea?" not in path.read_bytes() and b"Make some." in path.read_bytes()
    assert [each.name for each in path.parent.iterdir() if ".erasing-" in each.name] == []


async def test_136_two_windows_begin_a_session_of_one_name(store: SessionStore) -> None:
    """One of them gets it."""
    sessions, refused = [], []

    async def begin() -> None:
        try:
            sessions.append(await new_store(store.folder.parent).create("cat", "tea"))
        except SessionError as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(begin)
    assert len(sessions) == 1 and len(refused) == 3
    await sessions[0].append(user("Mine."))
    await sessions[0].close()
    assert verified(store).problems == ()


def head(start: int, summary: str) -> HeadRecord:
    return HeadRecord(start=start, summary=summary, baseline=Baseline(sections={}), cause="compaction", generation=1)


async def test_137_a_compaction_is_tried_again_after_it_was_written(store: SessionStore) -> None:
    """Two heads hang on one entry and only one was gone on from: that one counts, the dead fork harms nobody."""
    path = await tea(store)
    session = await store.open("cat", "tea")
    await session.append(head(3, "They want tea."))
    await session.append(LeafRecord(leaf=3))
    await session.append(head(3, "Tea is wanted."))
    await session.append(answer("It is made."))
    await session.close()
    session = await store.open("cat", "tea")
    assert shown(session) == [f"user: {SUMMARY} | Tea is wanted.", "user: Make some.", "reply: It is made."]
    await session.close()
    assert verified(store).problems == () and path.read_bytes().count(b"compaction") == 2


async def test_139_compactions_come_and_go_and_the_file_only_grows(store: SessionStore) -> None:
    """The header and every line stay where they were, whatever is out of view, undone or erased from it."""
    path = await tea(store)
    grown = path.read_bytes()
    for number in range(5):
        session = await store.open("cat", "tea")
        await session.append(user(f"Round {number}?"))
        await session.append(head(session.tree.next_id - 1, f"{number} rounds so far."))
        await session.close()
        assert path.read_bytes().startswith(grown)
        grown = path.read_bytes()
    session = await store.open("cat", "tea")
    assert shown(session) == [f"user: {SUMMARY} | 4 rounds so far.", "user: Round 4?"]
    assert len((await session.whole()).entries) == 13 and session.header.id == "tea"
    await session.close()


@pytest.mark.parametrize(
    ("one", "other"), [("a:b", "a_b"), ("a/b", "a%2fb"), ("Tea", "tea"), ("..", "."), ("con", "Con")]
)
async def test_140_two_chats_have_names_that_look_alike(store: SessionStore, one: str, other: str) -> None:
    """Each has its own file, inside the folder, whatever the file system thinks of letters."""
    for name in (one, other):
        session = await store.create("cat", name)
        await session.append(user(f"This is {name}."))
        await session.close()
    for name in (one, other):
        session = await store.open("cat", name)
        assert shown(session) == [f"user: This is {name}."]
        await session.close()
    paths = {store.path("cat", name) for name in (one, other)}
    assert len({str(path).casefold() for path in paths}) == 2
    assert all(path.resolve().is_relative_to(store.folder.resolve()) for path in paths)
    assert {info.id for info in store.list("cat")} == {one, other}


async def test_a_picture_is_lost_from_the_disk(store: SessionStore) -> None:
    """The conversation goes on; the model reads that a picture is gone, and the check names the line."""
    session = await store.create("cat", "tea")
    picture = Image("image/png", "aGVsbG8h" * 4_000)
    await session.append(MessageRecord(role="user", content=(Text("Look:"), picture)))
    reply = MessageRecord(role="assistant", content=(call("exec"),), stop="tool_use")
    await session.append(reply)
    await session.append(ResultRecord(call=(2, 0), tool="exec", content=(Text("short"),), whole="long " * 5_000))
    await session.close()
    assert collect_garbage(store.folder.parent, now=4e9).removed == ()
    blobs = store.folder.parent / "blobs"
    assert verified(store).problems == () and len(list(blobs.glob("*/*"))) == 2
    for path in blobs.glob("*/*"):
        path.write_bytes(b"lightning")

    session = await new_store(store.folder.parent).open("cat", "tea")
    assert "no longer there" in shown(session)[0] and shown(session)[2] == "result: short"
    (entry,) = await session.append(MessageRecord(role="user", content=(Text("Again:"), picture)))
    await session.close()

    assert [problem.line for problem in verified(store).of("error")] == [4]  # putting the picture again mended it
    assert entry.id == 4 and collect_garbage(store.folder.parent, now=4e9).removed == ()


async def test_everything_at_once(store: SessionStore) -> None:
    """A lock of a dead process, a broken line, a lost one, a torn tail, half an index: it opens, and all is told."""
    path = await tea(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], b"\xff\xff\n", lines[3], b'{"id":9,']))
    path.with_name("tea.jsonl.lock").write_text("99999999\n")
    path.with_name("tea.jsonl.new").write_bytes(lines[0][:20])
    (store.folder.parent / "index.sqlite").write_bytes(b"SQLite format 3\0" + b"\0" * 84)
    told = [(problem.severity, problem.line) for problem in verified(store).problems]
    assert told == [("warning", 2), ("error", 3), ("warning", 4), ("warning", 5), ("note", None)]
    seen = await reopened(store, lambda session: session.append(answer("It is made.")))
    assert seen == ["user: Is there tea?", "user: Make some.", "reply: It is made."]
    (info,) = store.list("cat")
    assert (info.id, info.messages) == ("tea", 3)
