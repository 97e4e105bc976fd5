"""What nobody needs goes; what anybody may need stays, also while sessions are written."""

from __future__ import annotations

import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.session.care.gc import DAY, HOUR, Collected, collect_garbage
from runtime.session.entries import Blob
from runtime.session.format.blobs import FolderBlobs
from runtime.session.format.codec import encode_entry, encode_header
from runtime.session.writing.locking import lock

from .records import HEADER, chain, file_of, patient

NOW = 2_000_000_000.0
OLD = NOW - 2 * DAY


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "sessions" / "assistant").mkdir(parents=True)
    return tmp_path


def session(state: Path, name: str = "0193", agent: str = "assistant") -> Path:
    path = state / "sessions" / agent / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    return path


def old_blob(state: Path, text: str, changed: float = OLD) -> Blob:
    blob = FolderBlobs(state / "blobs").put(text)
    os.utime(place(state, blob), (changed, changed))
    return blob


def place(state: Path, blob: Blob) -> Path:
    return state / "blobs" / blob.name[:2] / blob.name


def named(blob: Blob, field: str = "whole") -> bytes:
    return f'"{field}":{{"name":"{blob.name}","size":{blob.size}}}'.encode()


def write(path: Path, *lines: bytes) -> None:
    path.write_bytes(encode_header(HEADER) + b"".join(line + b"\n" for line in lines))


def files(state: Path) -> set[str]:
    return {str(path.relative_to(state)) for path in state.rglob("*") if path.is_file() and path.name != ".lock"}


def collect(state: Path, *, anyway: bool = False, now: float = NOW) -> Collected:
    """A dry run says what the real one does, and leaves everything as it is."""
    before = files(state)
    dry = collect_garbage(state, now=now, dry_run=True, anyway=anyway)
    assert files(state) == before
    real = collect_garbage(state, now=now, anyway=anyway)
    assert real.removed == dry.removed
    assert before - files(state) == {str(each.path.relative_to(state)) for each in real.removed}
    again = collect_garbage(state, now=now, anyway=anyway)
    assert again.removed == ()
    return real


def test_a_blob_that_no_session_names_goes(state: Path) -> None:
    """Its bytes are counted; one that is named, or young, stays."""
    needed, nobodys, young = old_blob(state, "needed"), old_blob(state, "nobody's"), old_blob(state, "y", NOW - HOUR)
    write(session(state), b'{"id":1,"parent":null,"at":"","type":"note","text":"",%s}' % named(needed))
    found = collect(state)
    assert [(each.path, each.size) for each in found.removed] == [(place(state, nobodys), 8)]
    assert found.size == 8 and found.problems == ()
    assert place(state, needed).exists() and place(state, young).exists()


@pytest.mark.parametrize("where", ["other agent", "broken line", "torn tail", "side file", "escaped", "journal"])
def test_a_blob_that_is_named_anywhere_stays(state: Path, where: str) -> None:
    """On whatever line, in whatever spelling."""
    blob = old_blob(state, "needed")
    write(session(state))
    line = b'{"id":1,"parent":null,"at":"","type":"later-version",%s}' % named(blob)
    match where:
        case "other agent":
            write(session(state, "x", "other"), line)
        case "broken line":
            write(session(state), b"\0" * 300 + line, encode_entry(chain(2, 2)[0]))
        case "torn tail":
            session(state).write_bytes(session(state).read_bytes() + line[:-1])
        case "side file":
            session(state).with_name("0193.jsonl.torn-120").write_bytes(line[:-5])
        case "escaped":
            name = b"".join(b"\\u%04x" % byte for byte in blob.name.encode())
            write(session(state), line.replace(blob.name.encode(), name))
        case "journal":
            (state / "journal").mkdir()
            (state / "journal" / "1234").write_bytes(line)
    assert collect(state).removed == ()


@settings(patient, max_examples=12)
@given(st.integers(0, 500), st.sampled_from(["0", "f", "x", "\n", ""]), st.booleans())
def test_a_name_is_found_wherever_a_chunk_ends(
    tmp_path_factory: pytest.TempPathFactory, before: int, filling: str, escaped: bool
) -> None:
    """Also inside longer runs of such letters, and where every letter is escaped."""
    state = tmp_path_factory.getbasetemp() / "chunks"
    (state / "sessions" / "assistant").mkdir(parents=True, exist_ok=True)
    name = sha256(b"needed").hexdigest()
    old_blob(state, "needed")
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in name) if escaped else name
    start = encode_header(HEADER)
    data = b"\n" * (8 * 2**20 - len(start) - before) + (filling * 600 + spelt + filling * 600).encode()
    session(state).write_bytes(start + data)
    assert collect_garbage(state, now=NOW, dry_run=True).removed == ()


@pytest.mark.parametrize("content", [b"garbage", b'{"type":"session","version":99,"id":"x","agent":"a"}\n'])
def test_a_session_that_cannot_be_read_keeps_every_blob(state: Path, content: bytes) -> None:
    """Unless somebody says to go on; then what it names in plain letters still counts."""
    needed, nobodys = old_blob(state, "needed"), old_blob(state, "nobody's")
    session(state).write_bytes(content + named(needed))
    found = collect(state)
    assert found.removed == () and "is no session that this Moonwake can read" in found.problems[0]
    assert found.problems[1] == "1 blobs may be needed by what could not be read, so all were kept"
    assert [each.path for each in collect(state, anyway=True).removed] == [place(state, nobodys)]


def test_a_session_behind_a_link_counts(state: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file or an agent's folder; one that leads nowhere keeps every blob: its disk may be away."""
    outside = tmp_path_factory.mktemp("outside")
    one, two, three = (old_blob(state, text) for text in ("one", "two", "three"))
    for blob, name in [(one, "file.jsonl"), (two, "x.jsonl")]:
        write(outside / name, b'{"id":1,"parent":null,"at":"","type":"note","text":"",%s}' % named(blob))
    session(state).symlink_to(outside / "file.jsonl")
    (state / "sessions" / "linked").symlink_to(outside)
    session(state, "gone").symlink_to(outside / "nowhere")
    found = collect(state)
    assert found.removed == () and "leads nowhere" in found.problems[0]
    session(state, "gone").unlink()
    assert [each.path for each in collect(state).removed] == [place(state, three)]


def test_a_folder_that_cannot_be_read_keeps_every_blob(state: Path) -> None:
    """It may hold sessions. Links in a circle are not followed for ever."""
    old_blob(state, "perhaps needed")
    (state / "sessions" / "circle").symlink_to(state / "sessions")
    assert len(collect_garbage(state, now=NOW, dry_run=True).removed) == 1
    if os.geteuid() == 0:
        pytest.skip("every folder can be read by root")
    session(state).parent.chmod(0)
    try:
        assert collect(state).removed == ()
    finally:
        session(state).parent.chmod(0o700)


def test_what_dead_processes_left_goes(state: Path) -> None:
    """Locks without a session, sessions that were never finished, blobs that were never finished, damaged ones."""
    write(session(state))
    folder = session(state).parent
    write(folder / "gone.jsonl.new")
    for name in ["gone.jsonl.lock", "0193.jsonl.erasing-1-x", "0193.jsonl.torn-1", "notes.txt"]:
        (folder / name).write_text("1\n")
    (state / "input_history.erasing-1").write_text("half")
    needed = old_blob(state, "needed")
    write(session(state), b'{"id":1,"parent":null,"at":"","type":"note","text":"",%s}' % named(needed))
    shard = place(state, needed).parent
    for name in [f"{needed.name}.damaged", f"{'0' * 64}.damaged", ".abc.new"]:
        (shard / name).write_text("half")
    for path in state.rglob("*"):
        if path.is_file() and path.name != ".lock":
            os.utime(path, (OLD, OLD))
    found = collect(state)
    assert {each.path.name for each in found.removed} == {
        "gone.jsonl.new",
        "gone.jsonl.lock",
        "0193.jsonl.erasing-1-x",
        "input_history.erasing-1",
        f"{'0' * 64}.damaged",
        ".abc.new",
    }
    assert found.problems == ()


def test_what_is_young_or_in_use_stays(state: Path) -> None:
    """Somebody may be making it just now."""
    folder = session(state).parent
    for name, age in [("a.jsonl.new", HOUR), ("b.jsonl.lock", HOUR / 2), ("c.jsonl.erasing-1-x", HOUR / 2)]:
        (folder / name).write_text("")
        os.utime(folder / name, (NOW - age, NOW - age))
    assert collect(state).removed == ()
    held = lock(folder / "d.jsonl")
    (folder / "d.jsonl.new").write_text("")
    for name in ["d.jsonl.new", "d.jsonl.lock"]:
        os.utime(folder / name, (OLD, OLD))
    found = collect(state)
    assert found.removed == () and len(found.problems) == 2
    held.release()


def test_nothing_to_collect_is_no_problem(tmp_path: Path) -> None:
    """A state folder that is empty, or not there."""
    assert collect_garbage(tmp_path / "nowhere", now=NOW) == Collected((), ())
    assert not (tmp_path / "nowhere").exists()


def test_a_writer_never_loses_a_blob_to_a_collection(state: Path) -> None:
    """Old blobs are put again and named while collections run: each that is named stays."""
    texts = [f"text {number}" for number in range(150)]
    path = session(state)
    write(path)
    now = path.stat().st_mtime  # of the file system, as the times of blobs are
    for text in texts:
        old_blob(state, text, now - 2 * HOUR)
    stop = threading.Event()

    def collect_all_the_time() -> None:
        while not stop.is_set():
            collect_garbage(state, now=now)

    collector = threading.Thread(target=collect_all_the_time)
    collector.start()
    try:
        with path.open("ab") as file:
            for number, text in enumerate(texts, start=1):
                blob = FolderBlobs(state / "blobs").put(text)
                line = b'{"id":%d,"parent":null,"at":"","type":"note","text":"",%s}\n' % (number, named(blob))
                file.write(line)
                file.flush()
    finally:
        stop.set()
        collector.join()
    blobs = FolderBlobs(state / "blobs")
    assert [blobs.get(Blob(sha256(text.encode()).hexdigest(), len(text))) for text in texts] == texts


def test_a_sound_session_with_no_blobs_is_left_alone(state: Path) -> None:
    """Not a byte of it is touched."""
    session(state).write_bytes(file_of(chain(1, 3)))
    before = session(state).stat()
    assert collect(state).removed == ()
    assert session(state).stat() == before
