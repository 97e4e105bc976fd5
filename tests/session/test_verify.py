"""Every kind of damage is named at its line; a sound session has nothing said about it; nothing is ever changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text
from runtime.session.ancestry import Ancestry
from runtime.session.care.verify import Verification, verify, verify_all
from runtime.session.entries import (
    Baseline,
    BranchSummaryRecord,
    EditRecord,
    Entry,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    LeafRecord,
    OutcomeRecord,
    Pinned,
    PinRecord,
    Record,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    Waiting,
)
from runtime.session.format.blobs import FolderBlobs
from runtime.session.format.codec import encode_batch, encode_entry, encode_header
from runtime.session.store import SessionStore
from runtime.session.writing.locking import lock

from .logs import Log
from .records import AT, HEADER, batches, chain, file_of, patient, user

PATH = Path("sessions") / "assistant" / "0193.jsonl"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    return path


def verified(path: Path, data: bytes | None = None) -> Verification:
    """What is found in `data`; nothing in the folder may be another after it."""
    if data is not None:
        path.write_bytes(data)
    before = contents(path.parents[2])
    found = verify(path, FolderBlobs(path.parents[2] / "blobs"))
    assert contents(path.parents[2]) == before
    return found


def contents(folder: Path) -> dict[str, Any]:
    return {
        str(each): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else None)
        for each in folder.rglob("*")
        if each.name != ".lock"
    }


def said(found: Verification) -> list[str]:
    return [str(problem) for problem in found.problems]


def talk() -> Log:
    """A question, a call, its result, an answer: entries 1 to 4."""
    log = Log()
    log.user("question")
    log.result(log.calls("read_file"))
    log.reply("answer")
    return log


def lines(log: Log) -> list[bytes]:
    return [encode_header(HEADER), *(encode_entry(entry) for entry in log.tree.entries)]


def test_a_sound_session_has_no_problem(path: Path) -> None:
    """Its counts are told."""
    data = b"".join(lines(talk()))
    found = verified(path, data)
    assert found == Verification(path, HEADER.id, HEADER.agent, 4, len(data), ())
    assert found.sound


@patient
@given(st.data())
def test_what_a_log_writes_is_sound(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever is said, undone, edited, pinned and cut."""
    path = tmp_path_factory.getbasetemp() / "written" / PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    log = Log()
    starts = [log.user()]
    for move in data.draw(st.lists(st.sampled_from(["turn", "undo", "edit", "pin", "head", "redact", "inbox"]))):
        entries = [entry.id for entry in log.branch]
        match move:
            case "turn":
                starts.append(log.user())
                log.result(log.calls("exec", "grep"), data.draw(st.integers(0, 1)))
                log.request()
            case "undo":
                log.add(LeafRecord(leaf=data.draw(st.sampled_from(entries))))
            case "edit" if entries:
                log.add(EditRecord(action="omit", target=data.draw(st.sampled_from(entries)), cause="user"))
            case "pin":
                log.add(PinRecord(target=data.draw(st.sampled_from(starts))))
            case "redact":
                log.add(RedactRecord(target=data.draw(st.sampled_from(starts))))
            case "inbox":
                log.add(InboxRecord(state="queued", content=(Text("x"),)))
            case "head":
                heads = [entry.record.start for entry in log.branch if isinstance(entry.record, HeadRecord)]
                on_branch = [start for start in starts if start in entries and start >= max(heads, default=0)]
                if on_branch:
                    log.head(data.draw(st.sampled_from(on_branch)))
            case _:
                pass
    assert said(verified(path, b"".join(lines(log)))) == []


DAMAGE: dict[str, tuple[bytes, str]] = {
    "not JSON": (b'{"id":2,', "it is not JSON"),
    "not UTF-8": (b'{"id":2,"\xff":1}', "it is not UTF-8"),
    "NUL bytes": (b"\0" * 300, "it is not JSON"),
    "wrong shape": (b'{"id":2,"parent":1,"at":"","type":"message","role":"robot","content":[]}', "its role is wrong"),
    "the same id again": (encode_entry(chain(1, 1)[0]).rstrip(), "its id 1 does not follow 1"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_broken_line_is_an_error_at_its_place(path: Path, kind: str) -> None:
    """By number and byte offset; the other lines are checked as if it were not there."""
    line, problem = DAMAGE[kind]
    first = encode_header(HEADER) + encode_entry(chain(1, 1)[0])
    found = verified(path, first + line + b"\n" + encode_entry(chain(2, 2, 1)[0]))
    (error,) = found.of("error")
    assert (error.line, error.offset) == (3, len(first)) and problem in error.problem
    assert found.entries == 2 and not found.sound and len(found.problems) == 1


def test_a_torn_tail_is_a_warning_and_no_error_while_somebody_writes(path: Path) -> None:
    """Nobody was told that it was kept."""
    whole = file_of(chain(1, 2))
    found = verified(path, whole + b'{"id":3,"par')
    assert said(found) == [
        f"warning: line 4 (byte {len(whole)}): the file ends in the middle of a write (12 bytes, never acknowledged); "
        "opening it moves them aside"
    ]
    held = lock(path)
    assert said(verified(path)) == [f"note: line 4 (byte {len(whole)}): 12 bytes are being written"]
    held.release()
    assert verified(path).of("warning")


def test_a_missing_newline_is_a_warning(path: Path) -> None:
    """An editor took it; the entry counts."""
    found = verified(path, file_of(chain(1, 2))[:-1])
    assert found.entries == 2 and [problem.severity for problem in found.problems] == ["warning"]


def test_lines_that_were_removed_are_noticed(path: Path) -> None:
    """From a batch, between batches, and at the front."""
    one, two, three = (encode_entry(entry) for entry in chain(1, 3))
    batch = encode_batch(chain(4, 6, 3)).splitlines(keepends=True)
    last = encode_entry(chain(7, 7, 6)[0])
    head = encode_header(HEADER)
    found = verified(path, b"".join([head, one, three, batch[0], batch[2], last]))
    assert [(problem.severity, problem.line) for problem in found.problems] == [
        ("warning", 2),
        ("warning", 3),
        ("error", 4),
        ("warning", 5),
    ]
    assert "entry 2 is missing after it" in said(found)[0]
    assert "its parent 2 is missing; it hangs on entry 1 now" in said(found)[1]
    assert "its batch lasts until entry 6, but entry 5 of it is missing" in said(found)[2]
    front = verified(path, head + two + three)
    assert "what came before entry 2 is missing" in str(front.of("error")[0])


def test_a_fork_may_lack_the_numbers_of_other_branches(path: Path) -> None:
    """Before the entries that it copied, which are older than itself."""
    header = replace(HEADER, created="2026-11-30T19:00:00Z", origin={"kind": "fork", "session": "0192", "entry": 5})
    label = Entry(9, 6, AT, LabelRecord(text="x", target=3))
    data = encode_header(header) + b"".join(map(encode_entry, [*chain(2, 3), *chain(5, 6, 3), label]))
    assert said(verified(path, data)) == []
    later = [replace(entry, at="2026-11-30T19:00:01Z") for entry in (*chain(10, 10, 6), *chain(12, 12, 10))]
    (problem,) = verified(path, data + b"".join(map(encode_entry, later))).problems
    assert "entry 11 is missing after it" in problem.problem


REQUEST = RequestRecord(purpose="turn", provider="", model="", wire="", prefix="", forecast=0, budget=0, blocks=0)
HEAD = HeadRecord(start=1, baseline=Baseline(sections={}), cause="test", generation=1)

#: What hangs on the entry 4 of `talk`, as entry 5, and what is said of it.
ODD: list[tuple[Record, str, str]] = [
    (ResultRecord(call=(9, 0), tool="x", content=()), "warning", "its call is number 0 of entry 9, which is no reply"),
    (ResultRecord(call=(2, 1), tool="x", content=()), "warning", "its call is number 1 of entry 2, which has 1"),
    (ResultRecord(call=(2, 0), tool="x", content=()), "warning", "its call had a result already (entry 3)"),
    (EditRecord(action="omit", target=8, cause="user"), "warning", "its target, entry 8, is not there"),
    (EditRecord(action="omit", target=4, cause="user", block=3), "warning", "its target is part 3 of entry 4"),
    (PinRecord(target=8), "warning", "its target, entry 8, is not there"),
    (LabelRecord(target=8, text="x"), "warning", "its target, entry 8, is not there"),
    (RedactRecord(target=8), "warning", "its target, entry 8, is not there"),
    (LeafRecord(leaf=8), "warning", "the entry that it goes on from, entry 8, is not there"),
    (BranchSummaryRecord(text="x", tip=8), "warning", "the tip of the branch that it sums up, entry 8"),
    (InboxRecord(state="dropped", item=4), "warning", "the input that it names, entry 4, is not there"),
    (user("x", inbox=3), "warning", "the input that it names, entry 3, is not there"),
    (OutcomeRecord(request=4, stop="stop"), "warning", "its request, entry 4, is not there"),
    (replace(REQUEST, stand_ins=((1, 0),)), "warning", "the call of a stand-in is number 0 of entry 1"),
    (replace(REQUEST, decisions=(7,)), "warning", "a decision, entry 7, is not there"),
    (replace(HEAD, start=8), "error", "it begins at entry 8, which is not there"),
    (replace(HEAD, start=2), "error", "it begins at entry 2, which is no user message"),
    (replace(HEAD, resume=3), "error", "it resumes at entry 3, which is no reply"),
    (replace(HEAD, pins=(Pinned(entry=8, said="user", content=()),)), "warning", "a pinned entry, entry 8"),
    (replace(HEAD, inbox=(Waiting(entry=4, state="queued", content=()),)), "warning", "the input that it names"),
    (replace(HEAD, open_calls=((4, 0),)), "warning", "an open call is number 0 of entry 4, which has 0"),
]


@pytest.mark.parametrize(("record", "severity", "problem"), ODD, ids=[case[2][:40] for case in ODD])
def test_an_entry_that_fits_nothing_is_named(path: Path, record: Record, severity: str, problem: str) -> None:
    """One problem, at its line."""
    log = talk()
    log.add(record)
    found = verified(path, b"".join(lines(log)))
    (only,) = found.problems
    assert (only.severity, only.line) == (severity, 6) and problem in only.problem


def test_what_points_to_another_branch_is_named(path: Path) -> None:
    """Edits, heads and results belong to the branch that holds their target."""
    log = talk()
    log.add(LeafRecord(leaf=1))
    other = log.user("another question")
    log.add(EditRecord(action="omit", target=4, cause="user"))
    log.add(replace(HEAD, start=other))
    log.add(replace(HEAD, start=1))
    log.add(replace(HEAD, start=other, resume=4))
    late = Entry(log.tree.next_id, log.tree.leaf, AT, ResultRecord(call=(2, 0), tool="x", content=()))
    log.tree.add(late)
    log.add(LeafRecord(leaf=4))
    log.add(replace(HEAD, start=other))
    assert [problem.problem for problem in verified(path, b"".join(lines(log))).problems] == [
        "its target, entry 4, is on another branch, so it changes nothing",
        "it begins at entry 1, before entry 6 of head 8",
        "it resumes at entry 4, which does not lie after entry 6 on its branch",
        "its call, in entry 2, is on another branch",
        "it begins at entry 6, which is on another branch",
    ]


def test_blobs_that_are_missing_or_damaged_are_errors(path: Path) -> None:
    """At every line that names them; looking does not move a damaged one."""
    blobs = FolderBlobs(path.parents[2] / "blobs")
    good, damaged, missing = (blobs.put(text) for text in ("good", "damaged", "missing"))
    (blobs.folder / damaged.name[:2] / damaged.name).write_text("damagee")
    (blobs.folder / missing.name[:2] / missing.name).unlink()
    data = encode_header(HEADER) + encode_entry(chain(1, 1)[0])
    data += (
        b'{"id":2,"parent":1,"at":"","type":"message","role":"assistant","content":[{"type":"call","id":"c","name":"x"'
    )
    data += b',"arguments":"{}"}],"stop":"tool_use"}\n'
    for number, blob in enumerate([good, damaged, missing, missing], start=3):
        whole = f'"whole":{{"name":"{blob.name}","size":{blob.size}}}'
        data += (
            f'{{"id":{number},"parent":{number - 1},"at":"","type":"note","text":"","data":{{{whole}}}}}\n'
        ).encode()
    found = verified(path, data)
    assert [(problem.line, problem.problem.split(") ")[1]) for problem in found.of("error")] == [
        (5, "is damaged"),
        (6, "is missing"),
        (7, "is missing"),
    ]
    assert blobs.get(damaged) is None
    assert "a damaged one was kept as" in said(verified(path))[0]


def test_what_lies_beside_the_file_is_told(path: Path) -> None:
    """Another session's side files are not this one's."""
    for name in ["0193.jsonl.torn-120", "0193.jsonl.broken-7-2", "0193.jsonl.new", "01930.jsonl.torn-1", "0193.txt"]:
        (path.parent / name).write_bytes(b"{")
    found = verified(path, file_of(chain(1, 2)))
    assert said(found) == [
        "note: 0193.jsonl.broken-7-2 holds a line that could not be read, kept from byte 7",
        "note: 0193.jsonl.new was left by a process that died; `sessions gc` removes it",
        "note: 0193.jsonl.torn-120 holds the end of a write that did not finish, kept from byte 120",
    ]
    assert found.sound


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"SQLite format 3\0", "it is not JSON"),
        (b'{"type":"session","version":99,"id":"0193","agent":"a","created":""}\n', "format version 99"),
        (encode_entry(chain(1, 1)[0]), "not a session header"),
    ],
)
def test_a_file_that_is_no_session_is_one_error(path: Path, data: bytes, problem: str) -> None:
    """The error says why; nothing is raised."""
    found = verified(path, data)
    (only,) = found.of("error")
    assert problem in only.problem and found.session is None and found.size == len(data)


def test_no_file_is_one_error(path: Path) -> None:
    """A folder, a pipe, a link to nowhere, or nothing."""
    assert "it is not there" in said(verified(path))[0]
    path.mkdir()
    assert "it is no file" in said(verified(path))[0]
    path.rmdir()
    path.symlink_to("nowhere")
    assert "it is not there" in said(verify(path, FolderBlobs(path.parents[2] / "blobs")))[0]
    path.unlink()
    os.mkfifo(path)
    assert "it is no file" in said(verify(path, FolderBlobs(path.parents[2] / "blobs")))[0]


def test_a_link_out_of_the_folder_is_not_followed(path: Path, tmp_path: Path) -> None:
    """As opening does not; one to a session beside it is that session."""
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(file_of(chain(1, 2)))
    path.symlink_to(outside)
    blobs = FolderBlobs(path.parents[2] / "blobs")
    assert "leads out of the folder of sessions" in said(verify(path, blobs))[0]
    path.unlink()
    outside.replace(path)
    path.with_name("other.jsonl").symlink_to(path)
    assert "leads out" not in str(said(verify(path.with_name("other.jsonl"), blobs)))


def test_a_copy_under_another_name_is_told(path: Path) -> None:
    """Lists leave it out, as two files would claim to be one session."""
    found = verified(path.with_name("copy.jsonl"), file_of(chain(1, 2)))
    assert said(found) == ["warning: line 1 (byte 0): its header says that it is the session 0193: lists leave it out"]


def test_every_session_of_every_agent_is_verified(path: Path) -> None:
    """In the order of their names, the damaged ones too."""
    for agent, name in [("b", "2"), ("a", "1"), ("b", "1")]:
        file = path.parents[1] / agent / f"{name}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(encode_header(replace(HEADER, id=name, agent=agent)) if agent == "b" else b"")
    found = list(verify_all(path.parents[1], FolderBlobs(path.parents[2] / "blobs")))
    assert [(each.path.parent.name, each.path.stem, each.sound) for each in found] == [
        ("a", "1", False),
        ("b", "1", True),
        ("b", "2", True),
    ]


def test_a_summary_of_what_was_redacted_is_a_warning(path: Path) -> None:
    """At its line."""
    log = talk()
    log.head(log.user("next"), summary="They talked.")
    log.add(RedactRecord(target=1))
    (problem,) = verified(path, b"".join(lines(log))).problems
    assert (problem.severity, problem.line) == ("warning", 7) and "redacted since" in problem.problem


def test_an_index_that_says_something_else_is_a_warning(path: Path) -> None:
    """If it was made from the same bytes."""
    path.write_bytes(b"".join(lines(talk())))
    store = SessionStore(path.parents[1], lambda: "", lambda: AT)
    (info,) = store.list("assistant")
    blobs = FolderBlobs(path.parents[2] / "blobs")
    assert [each.problems for each in verify_all(store.folder, blobs, store.list("assistant"))] == [()]
    (problem,) = verify(path, blobs, replace(info, messages=7)).problems
    assert problem.severity == "warning" and "the index says messages: 7, the file 3" in problem.problem
    assert verify(path, blobs, replace(info, messages=7, size=1)).problems == ()


@patient
@given(batches())
def test_ancestry_is_what_walking_up_finds(written: list[tuple[Entry, ...]]) -> None:
    """For every pair of entries of a random tree."""
    entries = [entry for batch in written for entry in batch]
    parents = {entry.id: entry.parent for entry in entries}
    ancestry = Ancestry(entries)
    for entry in entries:
        above: set[int] = set()
        at: int | None = entry.id
        while at is not None:
            above.add(at)
            at = parents[at]
        assert {each for each in parents if ancestry.is_above(each, entry.id)} == above
    assert not ancestry.is_above(1, 10**6) and not ancestry.is_above(10**6, 1)


@patient
@given(batches(), st.data())
def test_any_damage_is_a_value(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[Entry, ...]], data: st.DataObject
) -> None:
    """Random records in random trees, cut and overwritten anywhere: there is always an answer."""
    path = tmp_path_factory.getbasetemp() / "damage" / PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    content = bytearray(file_of(*written))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    found = verified(path, bytes(content))
    assert found.size == len(content)
    assert all(problem.offset is None or problem.offset <= len(content) for problem in found.problems)
