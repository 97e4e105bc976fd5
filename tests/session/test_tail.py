"""Resuming from the tail: what a session is to whoever goes on with it, it is without its older part too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text, Usage
from runtime.agent.inbox import waiting_items
from runtime.session.entries import (
    Entry,
    HeadRecord,
    InboxRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    Record,
    RedactRecord,
    ResultRecord,
    SettingRecord,
)
from runtime.session.format.codec import BadLine, encode_entry, encode_header
from runtime.session.format.reading import Reading, read_session
from runtime.session.format.tail import read_from_tail
from runtime.session.opening import open_log, read_log
from runtime.session.placing import needs_older, place
from runtime.session.session import Session, open_session
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.spending import spent
from runtime.session.view.standing import standing_of

from .logs import Log
from .random_logs import ACTIONS, act, laws
from .records import AT, HEADER, chain, file_of, patient, user

HEAD = encode_header(HEADER)


@dataclass
class File:
    """Bytes that count how many of them were asked for."""

    data: bytes
    asked: int = 0

    def read(self, offset: int, size: int) -> bytes:
        self.asked += size
        return self.data[offset : offset + size]


def from_tail(data: bytes, chunk: int = 300) -> Reading:
    return read_from_tail(File(data).read, len(data), chunk=chunk)


def tree_of(reading: Reading) -> Tree:
    return Tree(reading.entries, complete=reading.complete)


def view(tree: Tree) -> dict[str, Any]:
    """Everything that resuming goes by."""
    standing = standing_of(tree.entries)
    return {
        "projection": project(tree.branch(), tree.redacted),
        "standing": (dict(standing.inbox), standing.spent),
        "waiting": waiting_items(tree.entries),
        "spent": spent(tree.entries),
        "leaf": tree.leaf,
        "next id": tree.next_id,
    }


def beside(draw: st.DrawFn, log: Log) -> Record:
    """Something that is true on every branch: input that comes or goes, money, a redaction, a setting."""
    items = [item.entry for item in waiting_items(log.tree.entries)]
    records: list[Record] = [
        InboxRecord(state="queued", content=(Text("later"),)),
        OutcomeRecord(request=1, stop="stop", usage=Usage(plain=1), cost=draw(st.sampled_from([0.5, 0.25]))),
        SettingRecord(name=draw(st.sampled_from(["model", "thinking"])), value=draw(st.sampled_from(["a", None]))),
        RedactRecord(target=draw(st.sampled_from([entry.id for entry in log.tree.entries]))),
    ]
    for item in items[-2:]:
        records.append(InboxRecord(state=draw(st.sampled_from(["held", "dropped", "steered"])), item=item))
        records.append(MessageRecord(role="user", content=(Text("later"),), inbox=item))
    return draw(st.sampled_from(records))


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Some old turns, then whatever happens; most undos do not go far back."""
    log = Log()
    for turn in range(draw(st.integers(1, 12))):
        log.user(f"go {turn}")
        log.result(log.calls("old"))
    actions = [*(action for action in ACTIONS if action != "leaf"), "head", "head", "beside", "beside", "back", "back"]
    for action in draw(st.lists(st.sampled_from(actions), min_size=8, max_size=30)):
        if action == "beside":
            log.add(beside(draw, log))
        elif action == "back":
            ids = [entry.id for entry in log.tree.entries]
            log.add(LeafRecord(leaf=draw(st.sampled_from([*ids[-6:], *ids[-4:], *ids[-2:], ids[0], None]))))
        else:
            act(draw, log, action)
    return log


chunks = st.sampled_from([1, 100, 300, 1_000])


def lines_of(log: Log, padding: int = 0) -> list[bytes]:
    """The lines of a log, each as much longer."""
    lines = [encode_entry(entry) for entry in log.tree.entries]
    return [HEAD, *(line[:-2] + b',"later":"' + b"x" * padding + b'"}\n' for line in lines)]


@laws
@given(logs(), chunks)
def test_the_tail_shows_what_the_whole_shows(log: Log, chunk: int) -> None:
    """Messages, settings, waiting input, money, the leaf and the next id."""
    data = b"".join(lines_of(log))
    whole, tail = tree_of(read_session(data)), tree_of(from_tail(data, chunk))
    assert view(tail) == view(whole) == view(log.tree)
    assert tail.entries == whole.entries[-len(tail) :]
    assert not tail.complete or len(tail) == len(whole)


@laws
@given(logs(), st.data())
def test_what_is_appended_after_a_resume_hangs_where_it_would(log: Log, data: st.DataObject) -> None:
    """Unless it takes older entries to tell; that is known before it is placed."""
    tail, whole = tree_of(from_tail(b"".join(lines_of(log)))), log.tree
    for action in data.draw(st.lists(st.sampled_from(["user", "result", "leaf", "note"]), min_size=1, max_size=6)):
        any_id = data.draw(st.sampled_from([entry.id for entry in whole.entries]))
        records: dict[str, Record] = {
            "user": user("on"),
            "result": ResultRecord(call=(any_id, 0), tool="x", content=(Text("done"),)),
            "leaf": LeafRecord(leaf=any_id),
            "note": NoteRecord(text="n"),
        }
        record = records[action]
        if needs_older(tail, (record,)):
            tail.complete_with(whole.entries)
        placed = place(tail, (record,), AT)
        assert placed == place(whole, (record,), AT)
        for entry in placed:
            tail.add(entry)
            whole.add(entry)
        assert tail.leaf == whole.leaf and project(tail.branch()) == project(whole.branch())


@laws
@given(logs())
def test_the_whole_keeps_the_entries_that_were_there(log: Log) -> None:
    """The same objects, so that what was counted stays with them."""
    data = b"".join(lines_of(log))
    tail, whole = tree_of(from_tail(data)), tree_of(read_session(data))
    before = {entry.id: entry for entry in tail.entries}
    tail.complete_with(whole.entries)
    assert tail.complete and tail.entries == whole.entries
    assert list(tail.branch()) == list(whole.branch()) and tail.leaf == whole.leaf
    assert all(tail.get(identity) is entry for identity, entry in before.items())
    assert (tail.redacted, tail.next_id) == (whole.redacted, whole.next_id)


SPOILERS: list[Callable[[bytes], bytes]] = [
    lambda line: b"broken\n",
    lambda line: b"\0" * 40 + b"\n",
    lambda line: b"\xff\xfe\n",
    lambda line: line[: len(line) // 2] + b"\n",
    lambda line: line[:-1],  # welded to the next
    lambda line: b"",
    lambda line: line[:-1] + b"\r\n",
    lambda line: b"\0" * 9 + line,
    lambda line: line + b" \n\n",
]


def is_state(entry: Entry) -> bool:
    """Whether a head counts on it: input that comes and goes, or money."""
    record = entry.record
    return isinstance(record, (InboxRecord, OutcomeRecord)) or (
        isinstance(record, MessageRecord) and bool(record.inbox)
    )


@laws
@given(logs(), st.data(), chunks)
def test_the_tail_of_a_damaged_file_shows_what_the_whole_shows(log: Log, data: st.DataObject, chunk: int) -> None:
    """Whatever lines are broken, welded, gone or padded, and however the file ends.

    A lost change of waiting input is known to the heads after it, and to nobody else.
    """
    lines = lines_of(log)
    for index in data.draw(st.sets(st.integers(1, len(lines) - 1), max_size=3)):
        if not is_state(log.tree.entries[index - 1]):
            lines[index] = data.draw(st.sampled_from(SPOILERS))(lines[index])
    end = data.draw(st.sampled_from([b"", b"", b'{"id":9', b"\0" * 30, b"\n\n ", b"broken\n"]))
    file = b"".join(lines) + end
    whole, tail = read_session(file), from_tail(file, chunk)
    assert (tail.good_length, tail.unterminated) == (whole.good_length, whole.unterminated)
    assert view(tree_of(tail)) == view(tree_of(whole))
    if not tail.complete:
        assert all(finding.line is None for finding in tail.findings)
        seen = [replace(finding, line=None) for finding in whole.broken if finding.offset >= tail.begin]
        told_once = "CR LF"  # at the first such line of what was read
        broken = {finding.offset for finding in tail.broken if told_once not in finding.problem}
        assert broken <= {finding.offset for finding in whole.broken}
        assert [finding for finding in seen if finding.content] == [each for each in tail.broken if each.content]
        assert (tail.torn is None) == (whole.torn is None)


@patient
@given(logs(), st.integers(0, 400))
def test_a_tail_cut_at_any_byte_shows_what_the_whole_shows(log: Log, cut: int) -> None:
    """Torn lines and torn batches are no part of either."""
    lines = lines_of(log)
    last = log.tree.next_id
    batch = [encode_entry(Entry(last + n, last - 1 + n, AT, user("b")), until=last + 3) for n in range(4)]
    file = b"".join([*lines, *batch])
    file = file[: len(file) - cut]
    with contextlib.suppress(BadLine):
        whole, tail = read_session(file), from_tail(file)
        assert view(tree_of(tail)) == view(tree_of(whole))
        assert (tail.good_length, tail.unterminated) == (whole.good_length, whole.unterminated)


def long_log(turns: int, head_at: int | None) -> Log:
    """Turns with a call each; a head before the turn `head_at`."""
    log = Log()
    log.system({"who": "base"})
    for turn in range(turns):
        start = log.user(f"question {turn} " + "x" * 400)
        if turn == head_at:
            log.head(start)
        reply = log.calls("a")
        log.result(reply, text="y" * 800)
        log.reply("done")
    return log


def test_a_head_near_the_end_spares_the_rest() -> None:
    """Of a long file only its end is read."""
    data = b"".join(lines_of(long_log(2_000, 1_980)))
    file = File(data)
    reading = read_from_tail(file.read, len(data))
    assert not reading.complete and len(reading.entries) == 4 * 20 + 1
    assert file.asked < len(data) / 3
    assert data[reading.begin :].startswith(b'{"id":%d,' % reading.entries[0].id)


def test_without_a_head_everything_is_read_and_once() -> None:
    """Not back and forth."""
    data = b"".join(lines_of(long_log(2_000, None)))
    file = File(data)
    reading = read_from_tail(file.read, len(data))
    assert reading.complete and len(reading.entries) == 8_001
    assert file.asked < 2.5 * len(data)


def test_a_head_on_a_branch_that_was_left_is_no_head() -> None:
    """The newest head of the current branch counts, however far back it is."""
    log = long_log(30, 20)
    head = log.projection.head
    start = log.user("left")
    log.head(start)
    log.reply("left too")
    log.add(LeafRecord(leaf=start - 1))
    log.user("back")
    assert log.projection.head == head
    reading = from_tail(b"".join(lines_of(log)))
    kept = log.tree.get(head or 0)
    assert kept is not None and isinstance(kept.record, HeadRecord) and reading.entries[0].id == kept.record.start


def test_text_that_speaks_of_a_head_is_none() -> None:
    """What looks like a head's type inside a text is escaped, inside an extension's data it is only a hint."""
    log = Log()
    log.user('"type":"head"')
    log.add(NoteRecord(text="n", data={"type": "head", "from": 1}))
    assert from_tail(b"".join(lines_of(log))).complete


def test_the_lost_line_of_from_is_reported() -> None:
    """The context then begins with the next one."""
    log = long_log(30, 20)
    lines = lines_of(log)
    start = next(entry.record.start for entry in log.tree.entries if isinstance(entry.record, HeadRecord))
    lines[start] = b"broken\n"
    reading = from_tail(b"".join(lines))
    assert not reading.complete and reading.entries[0].id == start + 1
    assert [finding.content for finding in reading.broken] == [b"broken", b""]
    assert str(reading.broken[0]).startswith("byte ")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"Dear diary", b'{"type":"message"}\n', b"\0" * 300_000])
def test_what_is_no_session_is_refused_from_the_tail_too(data: bytes) -> None:
    """With the same words."""
    with pytest.raises(BadLine) as whole:
        read_session(data)
    with pytest.raises(BadLine, match="^" + str(whole.value)[:30].replace("(", r"\(")):
        from_tail(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def now() -> str:
    return AT


async def opened(path: Path, log: Log) -> Session:
    path.write_bytes(b"".join(lines_of(log, 10_000)))
    return await open_session(path, now)


async def test_a_session_resumes_from_its_tail_and_has_the_whole_when_it_is_asked(path: Path) -> None:
    """What was appended meanwhile stays; asking twice reads once."""
    log = long_log(30, 20)
    session = await opened(path, log)
    assert not session.tree.complete and view(session.tree) == view(log.tree)
    await session.append(user("on"))
    log.user("on")
    tree = await session.whole()
    assert tree is session.tree and tree.complete and tree.entries == log.tree.entries
    before = tree.entries[3]
    assert (await session.whole()).entries[3] is before
    await session.append(user("more"))
    assert session.tree.entries == read_log(path).entries
    await session.close()


async def test_a_late_result_of_an_older_call_finds_its_branch(path: Path) -> None:
    """The rest is read before it is placed."""
    log = long_log(10, None)
    left = log.calls("slow")
    log.add(LeafRecord(leaf=left - 1))
    log.head(log.user("after"))
    session = await opened(path, log)
    assert left not in {entry.id for entry in session.tree.entries}
    (entry,) = await session.append(ResultRecord(call=(left, 0), tool="slow", content=(Text("at last"),)))
    assert entry.parent == left and session.tree.complete
    assert session.tree.leaf == log.tree.leaf
    await session.close()


async def test_going_back_behind_the_tail_reads_the_rest(path: Path) -> None:
    """An undo may lead anywhere."""
    log = long_log(10, 8)
    session = await opened(path, log)
    assert not session.tree.complete
    await session.append(LeafRecord(leaf=5))
    assert [entry.id for entry in session.branch()] == [1, 2, 3, 4, 5]
    await session.close()


async def test_findings_have_line_numbers_once_the_whole_was_read(path: Path) -> None:
    """Byte offsets before; what is broken further up is found then, and copied beside the file."""
    lines = lines_of(long_log(30, 20), 10_000)
    lines[7], lines[-2] = b"old damage\n", b"new damage\n"
    path.write_bytes(b"".join(lines) + b"half")
    session = await open_session(path, now)
    assert [(finding.line, finding.content) for finding in session.findings if finding.content] == [
        (None, b"new damage"),
        (None, b"half"),
    ]
    await session.whole()
    found = [(finding.line, finding.content) for finding in session.findings if finding.content]
    assert found == [(8, b"old damage"), (len(lines) - 1, b"new damage"), (len(lines) + 1, b"half")]
    assert len(list(path.parent.glob("*.broken-*"))) == 2 and len(list(path.parent.glob("*.torn-*"))) == 1
    await session.close()


def test_a_lock_is_held_and_a_whole_reading_is_to_be_had(path: Path) -> None:
    """For whoever wants every line at once."""
    path.write_bytes(b"".join(lines_of(long_log(30, 20), 10_000)))
    log, reading = open_log(path, tail=False)
    assert reading.complete and len(reading.entries) == 122
    log.close()


def test_a_damaged_order_of_ids_is_read_whole(path: Path) -> None:
    """Which of two lines counts is a question to all of them."""
    lines = lines_of(long_log(30, 20))
    data = b"".join([*lines, lines[-1]])
    assert from_tail(data) == read_session(data)
    assert file_of(chain(1, 2)) + lines[2] != data


def test_a_leaf_entry_that_names_an_older_one_takes_older_ones_to_follow() -> None:
    """The tail could not tell whether that entry is there: if its line is lost, the leaf stays where it was."""
    log = long_log(30, 20)
    head = log.projection.head
    log.add(LeafRecord(leaf=6))
    log.add(NoteRecord(text="beside the branch"))
    lines = lines_of(log)
    assert tree_of(from_tail(b"".join(lines), 1)).leaf == 6
    lines[6] = b"broken\n"
    tail, whole = tree_of(from_tail(b"".join(lines), 1)), tree_of(read_session(b"".join(lines)))
    assert tail.leaf == whole.leaf == log.tree.next_id - 3
    assert view(tail)["projection"].head == view(whole)["projection"].head == head


def test_a_lost_parent_after_a_late_result_hangs_where_it_would() -> None:
    """Whether the result became the leaf is for the entry before it to tell."""
    log = long_log(20, None)
    call = log.calls("slow")
    log.user("meanwhile")
    log.request()
    start = log.result(call)
    lost = log.user("lost")
    log.reply("to what is lost")
    log.head(start)
    lines = lines_of(log)
    lines[lost] = b"broken\n"
    tail, whole = from_tail(b"".join(lines), 1), read_session(b"".join(lines))
    assert not tail.complete and tail.entries[0].id == start
    assert view(tree_of(tail)) == view(tree_of(whole))
    assert [entry.parent for entry in tail.entries] == [entry.parent for entry in whole.entries[-len(tail.entries) :]]
