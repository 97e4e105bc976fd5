"""What was redacted is gone after erasing, byte for byte and everywhere; all else is as it was, whatever happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from governors.messages import Image, Text, Thinking, ToolCall
from runtime.errors import SessionError, SessionLocked
from runtime.session.care.erasing import Erasure, erase_all, erase_redacted
from runtime.session.care.erasure import ERASED, ERASED_SUMMARY, ERASURE, redacted_in
from runtime.session.care.verify import verify
from runtime.session.entries import (
    BranchSummaryRecord,
    CompactionRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    PayloadChange,
    Pinned,
    Record,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    UnknownRecord,
    Waiting,
)
from runtime.session.format.blobs import FolderBlobs
from runtime.session.format.codec import encode_batch, encode_entry, encode_header
from runtime.session.format.located import read_unopened
from runtime.session.store import Filter, SessionStore
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.redaction import stale_summaries
from runtime.session.writing.locking import lock

from .logs import Log
from .records import HEADER, patient

NOW = 2_000_000_000.0
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made(tmp_path)


def made(state: Path) -> Path:
    path = state / "sessions" / "assistant" / "0193.jsonl"
    path.parent.mkdir(parents=True)
    return path


def state_of(path: Path) -> Path:
    return path.parents[2]


def blobs_of(path: Path) -> FolderBlobs:
    return FolderBlobs(state_of(path) / "blobs")


def write(path: Path, log: Log) -> bytes:
    """The session as it is written: large content as blobs, every turn of three entries a batch."""
    entries, blobs = log.tree.entries, blobs_of(path)
    batches = [entries[place : place + 3] for place in range(0, len(entries), 3)]
    data = encode_header(HEADER) + b"".join(encode_batch(batch, blobs) for batch in batches)
    path.write_bytes(data)
    return data


def erased(path: Path, **options: Any) -> Erasure:
    """Erase. A dry run before it says the same and does nothing; another one after it finds nothing."""
    before = everything(path)
    dry = erase_redacted(path, blobs_of(path), now=NOW, dry_run=True, **options)
    assert everything(path) == before
    real = erase_redacted(path, blobs_of(path), now=NOW, **options)
    assert (dry.entries, dry.derived, dry.dropped, set(dry.removed)) == (
        real.entries,
        real.derived,
        real.dropped,
        set(real.removed),
    )
    after = everything(path)
    again = erase_redacted(path, blobs_of(path), now=NOW, **options)
    assert (again.entries, again.derived, again.dropped, again.removed) == ((), (), (), ())
    assert everything(path) == after
    return real


def everything(path: Path) -> dict[str, bytes]:
    """All files of the state folder."""
    return {
        str(each.relative_to(state_of(path))): each.read_bytes()
        for each in state_of(path).rglob("*")
        if each.is_file() and not each.name.endswith(".lock")
    }


def entries(path: Path) -> dict[int, Record]:
    return {entry.id: entry.record for entry in read_unopened(path.read_bytes()).entries}


def secret(number: int) -> str:
    """What stands in one entry alone: words, quotation marks, a line end and letters outside ASCII."""
    return f'secret "{number}"\nis ünlike {number * 7919}.'


def test_a_session_without_redactions_is_left_alone(path: Path) -> None:
    """With its broken lines and side files."""
    log = Log()
    log.user(secret(1))
    write(path, log)
    path.write_bytes(path.read_bytes() + b"broken\n")
    path.with_name("0193.jsonl.torn-9").write_text("torn")
    before, facts = everything(path), path.stat()
    assert erase_redacted(path, blobs_of(path), now=NOW) == Erasure(path)
    assert everything(path) == before and path.stat().st_ino == facts.st_ino


def test_what_a_message_said_goes_and_its_place_stays(path: Path) -> None:
    """The lines of all other entries are the same bytes."""
    log = Log()
    log.user("before")
    target = log.user(secret(1), context="<context>\nat home\n</context>")
    log.reply("after")
    log.add(RedactRecord(target=target))
    before = write(path, log).splitlines()
    found = erased(path)
    after = path.read_bytes().splitlines()
    assert found.redacted == 1 and found.entries == (target,) and found.derived == () and found.problems == ()
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False, True, True]
    assert entries(path)[target] == MessageRecord(role="user", content=(Text(ERASED),))


def test_a_reply_keeps_its_calls_and_nothing_that_it_said(path: Path) -> None:
    """Which tool was called under which id, how it ended and what it used stay; arguments, reasoning and words go."""
    log = Log()
    log.user("q")
    call = ToolCall("call_1", "exec", '{"command":"cat /etc/hidden-file"}', True, "signature-of-it")
    target = log.reply(Thinking("think hidden", "c2lnbmVk"), "say hidden", " ", call)
    result = log.result(target, text="the result")
    log.add(RedactRecord(target=target))
    write(path, log)
    erased(path)
    assert entries(path)[target] == MessageRecord(
        role="assistant",
        content=(Thinking(""), Text(ERASED), Text(" "), ToolCall("call_1", "exec", "{}")),
        stop="tool_use",
    )
    assert entries(path)[result] == log.tree.entries[2].record


def test_a_result_keeps_its_call_and_tool(path: Path) -> None:
    """Its whole text goes too."""
    log = Log()
    log.user("q")
    reply = log.calls("read_file")
    content = (Text("shown of it"), Image("image/png", "aGlkZGVu"))
    target = log.add(
        ResultRecord(call=(reply, 0), tool="read_file", content=content, whole="all of it", is_error=True, seconds=2.5)
    )
    log.add(RedactRecord(target=target))
    write(path, log)
    erased(path)
    assert entries(path)[target] == ResultRecord(
        call=(reply, 0), tool="read_file", content=(Text(ERASED), Text(ERASED)), is_error=True, seconds=2.5
    )


@pytest.mark.parametrize(
    ("record", "left"),
    [
        (NoteRecord(text="hidden", data={"hidden": 1}), NoteRecord(text=ERASED)),
        (
            ExtensionRecord(name="garden", data={"hidden": 1}, content=(Text("hidden"),)),
            ExtensionRecord(name="garden", content=(Text(ERASED),)),
        ),
        (BranchSummaryRecord(text="hidden", tip=1), BranchSummaryRecord(text=ERASED, tip=1)),
        (LabelRecord(text="hidden", target=1), LabelRecord(text=ERASED, target=1)),
        (
            InboxRecord(state="held", content=(Text("hidden"),), context="hidden"),
            InboxRecord(state="held", content=(Text(ERASED),)),
        ),
        (
            EditRecord(action="replace", target=1, cause="user", content=(Text("hidden"),)),
            EditRecord(action="replace", target=1, cause="user", content=(Text(ERASED),)),
        ),
        (UnknownRecord(raw={"type": "weather", "sky": "hidden"}), UnknownRecord(raw={"type": "weather"})),
    ],
    ids=lambda record: record.type,
)
def test_other_entries_lose_what_they_said(path: Path, record: Record, left: Record) -> None:
    """Their type, and what they point to, stay."""
    log = Log()
    log.user("q")
    target = log.add(record)
    log.add(RedactRecord(target=target))
    write(path, log)
    erased(path)
    assert entries(path)[target] == left and b"hidden" not in path.read_bytes()


def test_what_cannot_be_erased_is_told(path: Path) -> None:
    """A system prompt is no message; a redaction of what is not there erases nothing."""
    log = Log()
    system = log.system({"identity": "You are Moonwake."})
    log.add(RedactRecord(target=system))
    log.add(RedactRecord(target=99))
    write(path, log)
    found = erase_redacted(path, blobs_of(path), now=NOW)
    assert found.problems == (f"entry {system} is a system: it was redacted, but stays as it was",)
    assert found.redacted == 1 and found.entries == ()


def test_the_input_that_brought_it_goes_with_it(path: Path) -> None:
    """Wherever it was said again: in the inbox, in a retry, in a head that carried it."""
    log = Log()
    item = log.add(InboxRecord(state="queued", content=(Text(secret(1)),), context="at home"))
    first = log.user(secret(1), inbox=item)
    log.add(InboxRecord(state="delivered", item=item))
    other = log.add(InboxRecord(state="held", content=(Text("kept"),)))
    waiting = tuple(
        Waiting(entry=entry, state="queued", content=(Text(text),), context="c")
        for entry, text in [(item, secret(1)), (other, "kept")]
    )
    head = log.head(first, inbox=waiting)
    log.add(LeafRecord(leaf=None))
    again = log.user(secret(1), inbox=item)
    log.add(RedactRecord(target=first))
    write(path, log)
    found = erased(path)
    assert found.entries == (item, first, again) and found.derived == (head,)
    assert entries(path)[again] == MessageRecord(role="user", content=(Text(ERASED),), inbox=item)
    record = entries(path)[head]
    assert isinstance(record, HeadRecord)
    assert record.inbox == (Waiting(entry=item, state="queued", content=(Text(ERASED),)), waiting[1])
    assert found.problems == ()


def test_pins_quotes_stubs_and_labels_of_it_go(path: Path) -> None:
    """Those of other entries stay in the same heads."""
    log = Log()
    log.user("q")
    target = log.reply(secret(1))
    other = log.reply(secret(2))
    log.add(EditRecord(action="replace", target=target, cause="c", content=(Text(secret(1)[:20]),)))
    label = log.add(LabelRecord(text="hidden label", target=target))
    start = log.user("q2")
    pins = tuple(Pinned(entry=entry, said="assistant", content=(Text(secret(n)),)) for n, entry in [(1, 2), (2, 3)])
    quoting = log.head(start, quote=secret(1), quoted=target, pins=pins)
    silent = log.head(start, quote=secret(2), quoted=other, pins=pins[1:])
    old = log.head(start, quote=secret(2))  # it does not say whom it quotes: the reply before its first message
    log.add(RedactRecord(target=target))
    write(path, log)
    found = erased(path)
    assert found.derived == (4, label, quoting) and b'secret \\"1' not in path.read_bytes()
    record = entries(path)[quoting]
    assert isinstance(record, HeadRecord) and record.quote == ERASED
    assert record.pins == (replace(pins[0], content=(Text(ERASED),)), pins[1])
    assert entries(path)[silent] == log.tree.get(silent).record  # type: ignore[union-attr]
    log.add(RedactRecord(target=other))
    write(path, log)
    assert {quoting, silent, old} <= set(erased(path).derived)
    assert b"secret" not in path.read_bytes()


def test_a_summary_that_was_made_from_it_goes(path: Path) -> None:
    """One that was made after it was redacted stays."""
    log = Log()
    target = log.user(secret(1))
    log.reply("a")
    start = log.user("q2")
    stale = log.head(start, summary=f"They said: {secret(1)}")
    log.add(RedactRecord(target=target))
    fresh = log.head(log.user("q3"), summary="They said something.")
    write(path, log)
    assert stale_summaries(log.tree.entries) == {stale}
    found = erased(path)
    assert found.derived == (stale,)
    summaries = {key: record.summary for key, record in entries(path).items() if isinstance(record, HeadRecord)}
    assert summaries == {stale: ERASED_SUMMARY, fresh: "They said something."}
    assert all(problem.severity != "error" for problem in verify(path, blobs_of(path)).problems)


def test_what_may_hold_its_words_in_receipts_goes(path: Path) -> None:
    """What hooks put into requests, and what a compaction names as lost, from the entry on until it was redacted."""
    log = Log()
    words = PayloadChange(hook="tag", op="add", path="/metadata", value={"topic": "secret"})
    other = PayloadChange(hook="cold", op="replace", path="/temperature", value=0.5)

    def request() -> int:
        told = {"purpose": "turn", "provider": "p", "model": "m", "wire": "anthropic", "prefix": "0"}
        return log.add(
            RequestRecord(**told, forecast=1, budget=9, blocks=1, changes=(words, other), asked="of the secret")
        )

    def lost() -> int:
        told = {"timing": "manual", "reason": "asked", "strategy": "summary"}
        return log.add(CompactionRecord(**told, result="done", dropped=("secret",)))

    before = request()
    target = log.user("the secret")
    seen, told = request(), lost()
    log.add(RedactRecord(target=target))
    after, later = request(), lost()
    write(path, log)
    found = erased(path)
    assert found.derived == (seen, told)
    left = entries(path)
    asked, receipt = left[seen], left[told]
    assert isinstance(asked, RequestRecord) and asked.changes == (replace(words, value=ERASED), other)
    assert asked.asked == ERASED
    assert isinstance(receipt, CompactionRecord) and receipt.dropped == (ERASED,)
    assert all(left[each] == log.tree.get(each).record for each in (before, after, later))  # type: ignore[union-attr]


def test_a_summary_of_input_goes_whichever_copy_was_redacted(path: Path) -> None:
    """The summary was made from the message; only the inbox entry that it came from was redacted."""
    log = Log()
    item = log.add(InboxRecord(state="queued", content=(Text(secret(1)),)))
    log.user(secret(1), inbox=item)
    head = log.head(log.user("q2"), summary=f"They said: {secret(1)}")
    log.add(RedactRecord(target=item))
    write(path, log)
    assert head in erased(path).derived and b"secret" not in path.read_bytes()


def test_broken_lines_and_side_files_go(path: Path) -> None:
    """They may hold it; what they were is told. A batch that ends in a broken line is not taken for a torn one."""
    log = Log()
    target = log.user(secret(1))
    log.add(RedactRecord(target=target))
    data = write(path, log)
    batch = encode_batch([Entry(n, n - 1, "", NoteRecord(text=f"note {n}")) for n in (3, 4, 5)]).splitlines()
    path.write_bytes(data + b"\n".join([b"broken: " + secret(1).encode(), *batch[:2], batch[2][:-9], b'{"torn']))
    side = [path.with_name(path.name + kind) for kind in (".torn-7", ".broken-9-2", ".new", ".erasing-1")]
    for each in [*side, path.with_name("01930.jsonl.torn-7"), path.with_name("notes.txt")]:
        each.write_text("kept")
    found = erased(path)
    assert set(found.removed) == set(side)
    assert [problem.split(":")[0].split(" (")[0] for problem in found.dropped] == [
        "line 4",
        "line 5",
        "line 8",
        "line 9",
    ]
    assert sorted(entries(path)) == [1, 2, 3, 4]
    assert path.with_name("01930.jsonl.torn-7").exists() and path.with_name("notes.txt").exists()
    assert verify(path, blobs_of(path)).sound


def test_blobs_go_when_nobody_else_names_them(path: Path) -> None:
    """Young ones too, as no other session is open; so do damaged copies and what was never finished."""
    log = Log()
    log.user("q")
    reply = log.calls("exec", "exec")
    picture = Image("image/png", "aGlkZGVu" * 5_000)
    shared = "shared\n" * 5_000
    target = log.add(ResultRecord(call=(reply, 0), tool="exec", content=(picture,), whole="hidden\n" * 5_000))
    other = log.add(ResultRecord(call=(reply, 1), tool="exec", content=(Text("x"),), whole=shared))
    log.add(RedactRecord(target=target))
    write(path, log)
    blobs = blobs_of(path)
    kept = blobs.put(shared)
    (blobs.folder / "00").mkdir(exist_ok=True)
    (blobs.folder / "00" / ("00" * 32 + ".damaged")).write_text("hidden")
    (blobs.folder / "00" / ".x.new").write_text("hidden")
    found = erased(path)
    assert len(found.removed) == 4 and all(not each.exists() for each in found.removed)
    assert [stored.blob for stored in blobs.stored()] == [kept.name]
    assert isinstance(entries(path)[other], ResultRecord)


def test_a_young_blob_stays_while_another_session_is_open(path: Path) -> None:
    """That session may be about to name it. It is told, and goes when the other is closed."""
    log = Log()
    target = log.add(NoteRecord(text="x"))
    log.add(RedactRecord(target=target))
    write(path, log)
    blob = blobs_of(path).put("hidden\n" * 5_000)
    place = blobs_of(path).folder / blob.name[:2] / blob.name
    os.utime(place, (NOW, NOW))
    other = path.parents[1] / "other" / "x.jsonl"
    other.parent.mkdir()
    held = lock(other)
    found = erase_redacted(path, blobs_of(path), now=NOW)
    assert found.removed == () and "another session is being made, or is open" in found.problems[0]
    held.release()
    fresh = other.with_name("x.jsonl.1234.new")  # an import
    fresh.touch()
    os.utime(fresh, (NOW, NOW))
    assert erase_redacted(path, blobs_of(path), now=NOW).removed == ()
    fresh.unlink()
    assert erase_redacted(path, blobs_of(path), now=NOW).removed == (place,)


def test_other_places_that_still_hold_it_are_told(path: Path) -> None:
    """A fork, a journal of a process that lives, an entry that repeats it."""
    log = Log()
    target = log.user(secret(1))
    log.reply(f"You said: {secret(1)}")
    log.add(RedactRecord(target=target))
    write(path, log)
    fork = path.with_name("fork.jsonl")
    fork.write_bytes(encode_header(replace(HEADER, id="fork")) + encode_entry(log.tree.entries[0]))
    journal = path.parents[1] / ".journals" / "1.journal"
    journal.parent.mkdir()
    journal.write_bytes(encode_entry(log.tree.entries[0]))
    shutil.copy(journal, journal.with_name("dead.journal"))
    held = lock(journal)
    found = erase_redacted(path, blobs_of(path), now=NOW)
    held.release()
    assert sorted(found.problems) == sorted(
        [
            f"{path}, line 3, still holds something that was erased",
            f"{fork}, line 2, still holds something that was erased",
            f"{journal} still holds something that was erased",
        ]
    )
    assert secret(1) in found.texts and "secret" not in repr(found)


def test_what_was_typed_is_forgotten(path: Path) -> None:
    """Nothing else that was typed is."""
    from prompt_toolkit.history import FileHistory

    typed = state_of(path) / "input_history"
    history = FileHistory(typed)
    for text in ["first", secret(1), "two\r\nlines\n", f"/say {secret(1)}", "ok", "last ok"]:
        history.store_string(text)
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    log.add(RedactRecord(target=log.user("ok")))
    write(path, log)
    assert erased(path).problems == ()
    assert list(FileHistory(typed).load_history_strings()) == ["last ok", "two\r\nlines\n", "first"]


def test_the_index_is_made_anew(path: Path) -> None:
    """While somebody has it open: neither its rows nor its free pages nor its log hold what was erased."""
    store = SessionStore(path.parents[1], lambda: "new", lambda: "")
    log = Log()
    target = log.user(secret(1))
    for number in range(2, 60):
        log.user(secret(number))
    write(path, log)
    assert len(store.search(secret(1).split()[1], Filter())) == 1
    log.add(RedactRecord(target=target))
    write(path, log)
    found = erase_redacted(path, blobs_of(path), now=NOW)
    assert found.problems == ()
    assert [info.id for info in store.list("assistant")] == [HEADER.id] and store.search("7919.", Filter()) == ()
    assert not [name for name, data in everything(path).items() if b'secret "1"' in data or b"7919." in data]


def test_the_page_shows_what_works(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The code of docs/erasing.md, run."""
    page = (ROOT / "docs" / "erasing.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # the page's own code
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    write(path, log)
    assert names["look_after"](state_of(path), path)
    assert capsys.readouterr().out == "1 entries erased; 0 bytes collected; 0 problems\n"


def test_a_session_that_is_open_is_refused(path: Path) -> None:
    """Nothing is changed."""
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    before = write(path, log)
    held = lock(path)
    with pytest.raises(SessionLocked):
        erase_redacted(path, blobs_of(path), now=NOW)
    held.release()
    assert path.read_bytes() == before


def test_a_file_that_is_no_session_is_refused(path: Path) -> None:
    """Also a link: erasing would put a file in its place, and leave the one it leads to as it is."""
    with pytest.raises(SessionError, match="cannot be reached"):
        erase_redacted(path, blobs_of(path), now=NOW)
    path.write_text("something else")
    with pytest.raises(SessionError, match="not a session"):
        erase_redacted(path, blobs_of(path), now=NOW)
    path.rename(path.with_name("real"))
    path.symlink_to("real")
    with pytest.raises(SessionError, match="is a link to real"):
        erase_redacted(path, blobs_of(path), now=NOW)
    path.unlink()
    path.mkdir()
    with pytest.raises(SessionError, match="is not a file"):
        erase_redacted(path, blobs_of(path), now=NOW)
    assert path.with_name("real").read_text() == "something else"


def test_hard_links_are_told(path: Path) -> None:
    """Under its other name the old file stays."""
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    before = write(path, log)
    other = path.with_name("backup")
    other.hardlink_to(path)
    found = erase_redacted(path, blobs_of(path), now=NOW)
    assert "2 names (hard links)" in found.problems[0] and other.read_bytes() == before


def test_the_mode_of_the_file_stays(path: Path) -> None:
    """Who may read it does not change."""
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    write(path, log)
    path.chmod(0o640)
    erased(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_all_sessions_of_a_folder(path: Path) -> None:
    """Those with redactions are told of, and those that could not be looked at."""
    log = Log()
    log.add(RedactRecord(target=log.user(secret(1))))
    write(path, log)
    write(path.with_name("plain.jsonl"), Log())
    path.with_name("bad.jsonl").write_text("{}")
    found = list(erase_all(path.parents[1], blobs_of(path), now=NOW))
    assert [(each.path.stem, each.redacted, len(each.problems)) for each in found] == [("0193", 1, 0), ("bad", 0, 1)]


#: Erases in copies of a state folder and dies: in the first before the first step on the disk, and so on.
_KILLED = """
import os, shutil, sys
from pathlib import Path
from runtime.session.format.blobs import FolderBlobs
from runtime.session.care.erasing import erase_redacted

STEPS = ("open", "os.rename", "os.remove", "os.chmod", "os.utime", "os.mkdir")

def erase(state, left):
    def count(event, args):
        nonlocal left
        if event in STEPS:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), 9)
    sys.addaudithook(count)
    path = state / "sessions" / "assistant" / "0193.jsonl"
    erase_redacted(path, FolderBlobs(state / "blobs"), now=2_000_000_000.0)

folder = Path(sys.argv[1])
shutil.copytree(folder / "pristine", folder / "warm")
erase_redacted(folder / "warm" / "sessions" / "assistant" / "0193.jsonl", FolderBlobs(folder / "warm" / "blobs"), now=0)
number, status = 0, 1
while status:
    state = folder / f"run-{number:03d}"
    shutil.copytree(folder / "pristine", state)
    child = os.fork()
    if child == 0:
        try:
            erase(state, number)
        except BaseException as error:
            print(error, file=sys.stderr)
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    number += 1
"""


def test_a_crash_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """Killed before each of its steps on the disk: one of the two stands there, and doing it again ends it."""
    pristine = made(tmp_path / "pristine")
    log = Log()
    reply = log.calls("exec")
    target = log.add(ResultRecord(call=(reply, 0), tool="exec", content=(Text("x"),), whole=secret(1) * 1_000))
    log.add(RedactRecord(target=target))
    old = write(pristine, log)
    pristine.with_name("0193.jsonl.torn-9").write_text(secret(1))
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stderr == ""
    found = []
    for state in sorted(tmp_path.glob("run-*")):
        path = state / "sessions" / "assistant" / "0193.jsonl"
        found.append(path.read_bytes())
        assert verify(path, blobs_of(path)).sound
        again = erase_redacted(path, blobs_of(path), now=NOW)
        assert not [name for name, data in everything(path).items() if secret(1)[:9].encode() in data], again
        assert verify(path, blobs_of(path)).sound
    olds = sum(each == old for each in found)
    assert len(found) < 80
    assert found == [old] * olds + [found[-1]] * (len(found) - olds) and olds > 5 and len(found) - olds > 5


_FULL_DISK = """
import resource, sys
from pathlib import Path
from runtime.session.format.blobs import FolderBlobs
from runtime.session.care.erasing import erase_redacted
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
erase_redacted(path, FolderBlobs(path.parents[2] / "blobs"), now=2_000_000_000.0)
"""


def test_a_full_disk_leaves_the_old_file(path: Path) -> None:
    """The error says so, and nothing is left beside it."""
    log = Log()
    for number in range(200):
        log.user(secret(number) * 3)
    log.add(RedactRecord(target=3))
    old = write(path, log)
    run = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1 and "The old file stands as it was" in run.stderr
    assert everything(path) == {str(path.relative_to(state_of(path))): old}


class Story:
    """A session of random turns, where every entry says a secret of its own."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.log = Log()
        self.told: dict[int, list[str]] = {}  # what stands in an entry
        self._draw = draw
        self._number = 0
        self._summaries: dict[int, str] = {}
        self.redacted: set[int] = set()
        self.user()

    def new(self) -> str:
        self._number += 1
        return secret(self._number)

    def keep(self, entry: int, *secrets: str) -> int:
        self.told.setdefault(entry, []).extend(secrets)
        return entry

    def user(self) -> None:
        text = self.new()
        self.keep(self.log.user(text), text)

    def large(self) -> None:
        text, picture = self.new(), self.new()
        data = "".join(f"{ord(letter):04x}" for letter in picture) * 300
        record = MessageRecord(role="user", content=(Text(text), Image("image/png", data)))
        self.keep(self.log.add(record), text, data)

    def step(self) -> None:
        said, argument, shown, whole = (self.new() for _ in range(4))
        call = ToolCall("call_0", "exec", argument)
        reply = self.keep(self.log.reply(Thinking(said), said, call), said, argument)
        record = ResultRecord(call=(reply, 0), tool="exec", content=(Text(shown),), whole=whole * 800)
        if self._draw(st.booleans()):
            self.keep(self.log.add(record), shown, whole)
        self.keep(self.log.reply(end := self.new()), end)

    def inbox(self) -> None:
        text = self.new()
        item = self.keep(self.log.add(InboxRecord(state="queued", content=(Text(text),))), text)
        if self._draw(st.booleans()):
            self.keep(self.log.user(text, inbox=item), text)

    def target(self, *kinds: type) -> Entry | None:
        found = [entry for entry in self.log.branch if isinstance(entry.record, kinds)]
        return self._draw(st.sampled_from(found)) if found else None

    def stub(self) -> None:
        target = self.target(MessageRecord, ResultRecord)
        if target is not None:
            quoted = self.told.get(target.id, [""])[0]
            action = self._draw(st.sampled_from(["replace", "omit", "restore"]))
            content = (Text(f"[left out: {quoted}]"),) if action == "replace" else ()
            self.log.add(EditRecord(action=action, target=target.id, cause="test", content=content))

    def label(self) -> None:
        target = self.target(MessageRecord, ResultRecord)
        if target is not None:
            self.log.add(LabelRecord(text=f"it said {self.told.get(target.id, [''])[0]}", target=target.id))

    def undo(self) -> None:
        target = self.target(MessageRecord, ResultRecord)
        if target is not None:
            self.log.add(LeafRecord(leaf=target.id))

    def head(self) -> None:
        starts = [entry.id for entry in self.log.branch if getattr(entry.record, "role", "") == "user"]
        heads = [entry for entry in self.log.branch if isinstance(entry.record, HeadRecord)]
        last = heads[-1].record.start if heads and isinstance(heads[-1].record, HeadRecord) else 0
        starts = [start for start in starts if start >= last]
        if not starts:
            return
        start = self._draw(st.sampled_from(starts))
        before = [entry for entry in self.log.branch if entry.id < start and entry.id not in self.redacted]
        summary = " ".join(text for entry in before for text in self.told.get(entry.id, ()))
        pins = tuple(
            Pinned(entry=entry.id, said="x", content=tuple(map(Text, self.told[entry.id])))
            for entry in before
            if entry.id in self.told and len(entry.record.type) > 5 and self._draw(st.booleans())
        )
        quoted = next(
            (entry.id for entry in reversed(before) if getattr(entry.record, "role", "") == "assistant"), None
        )
        quote = None if quoted is None else f"it asked: {self.told[quoted][0]}"
        summary_or_none = summary if self._draw(st.booleans()) else None
        self.log.head(start, summary=summary_or_none, pins=pins, quote=quote, quoted=quoted)

    def redact(self) -> None:
        target = self._draw(st.sampled_from(sorted(self.told)))
        self.log.add(RedactRecord(target=target))
        self.redacted = set(redacted_in(self.log.tree.entries))


MOVES = ["user", "large", "step", "inbox", "stub", "label", "undo", "head", "redact"]


@settings(patient, max_examples=80, phases=set(Phase) - {Phase.shrink})  # a story that fails shrinks for minutes
@given(st.data())
def test_what_was_redacted_stands_nowhere_and_all_else_where_it_stood(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Random sessions with blobs, edits, heads, pins, quotes, summaries, branches, broken and torn lines."""
    path = made(tmp_path_factory.mktemp("law"))
    story = Story(data.draw)
    for move in data.draw(st.lists(st.sampled_from(MOVES), max_size=14)):
        getattr(story, move)()
    story.redact()
    write(path, story.log)
    gone = [text for entry in story.redacted for text in story.told[entry]]
    if data.draw(st.booleans()):
        lines = path.read_bytes().splitlines(keepends=True)
        lines.insert(data.draw(st.integers(1, len(lines))), gone[0].encode().replace(b"\n", b" ") + b"\n")
        path.write_bytes(b"".join(lines) + gone[0].encode()[:-1])
        path.with_name(path.name + ".torn-12").write_text(gone[0])
    before = read_unopened(path.read_bytes())
    found = erased(path)
    everywhere = b"".join(everything(path).values())
    for text in gone:
        for form in (text, text.replace('"', '\\"').replace("\n", "\\n")):
            assert form.encode() not in everywhere, (text, found)
    assert found.problems == ()
    after = read_unopened(path.read_bytes())
    assert not [finding for finding in after.findings if finding.content]
    assert_same_but(before.entries, after.entries, {*found.entries, *found.derived})
    whole = story.log.tree.entries
    for entry in set(story.told) - story.redacted - set(found.derived):
        assert entries(path)[entry].type == next(each.record.type for each in whole if each.id == entry)
    assert verify(path, blobs_of(path)).sound


def assert_same_but(before: Sequence[Entry], after: Sequence[Entry], touched: set[int]) -> None:
    """Entries, tree, and what every branch shows are the same, but for `touched`, and an entry that tells of it."""
    told = [entry for entry in after if isinstance(entry.record, RedactRecord) and entry.record.cause == ERASURE]
    assert told in ([], [after[-1]])
    after = [entry for entry in after if entry not in told]
    assert [(entry.id, entry.parent, entry.at) for entry in before] == [(e.id, e.parent, e.at) for e in after]
    assert [e for e in before if e.id not in touched] == [e for e in after if e.id not in touched]
    old, new = Tree(before), Tree(after)
    assert old.leaf == new.leaf
    for entry in before:
        shown = [project(tree.branch_to(entry.id), tree.redacted).messages for tree in (old, new)]
        assert [m.origin for m in shown[0]] == [m.origin for m in shown[1]]
        same = [(m, n) for m, n in zip(*shown, strict=True) if m.origin not in touched]
        assert all(m == n for m, n in same)
