"""Importing a file: into the store, once, and on from there."""

from __future__ import annotations

import gzip
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from governors.messages import AssistantMessage, SystemPatch
from runtime.app import Runtime
from runtime.errors import SessionError
from runtime.providers.scripted import Scripted
from runtime.session.entries import OutcomeRecord
from runtime.session.import_ import FORMATS, Earlier, import_now, import_session, look_at
from runtime.session.opening import read_log
from runtime.session.store import SessionStore
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from runtime.session.view.spending import spent

from .samples import CLAUDE, FILES, PI, SAMPLES, pi, pi_user, write


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", lambda: "no-id", lambda: "2026-06-01T00:00:00.000Z")


@pytest.mark.parametrize("format", SAMPLES)
async def test_a_file_becomes_a_session(tmp_path: Path, store: SessionStore, format: str) -> None:
    """Its header says where it came from; the file is whole and opens."""
    path = write(tmp_path, SAMPLES[format])
    imported = await import_session(path, store, "assistant")
    assert imported.format == format
    log = store.path("assistant", imported.session)
    reading = read_log(log)
    assert reading.header.origin == {
        "kind": "import",
        "format": format,
        "path": str(path),
        "sha256": sha256(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
    }
    assert (reading.broken, reading.torn) == ((), None)
    assert [each.name for each in log.parent.iterdir()] == [log.name]
    assert log.stat().st_mode & 0o777 == 0o600
    assert imported.report is not None
    assert imported.report.text() in imported.text()
    assert spent(reading.entries) == 0
    session = await store.open("assistant", imported.session)
    assert len(session.tree) == len(reading.entries)
    await session.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_line_of_a_real_file_is_unexplained(store: SessionStore, path: Path) -> None:
    """And what is left is left with a reason that is no unknown type."""
    report = import_now(path, store, "assistant").report
    assert report is not None
    assert report.unexplained == ()
    assert len(report.carried) + len(report.left) == report.lines
    assert not any(reason.startswith(("unknown", "broken")) for reason in report.left.values())


def test_a_file_is_imported_once(tmp_path: Path, store: SessionStore) -> None:
    """Unless that is asked for; a copy of it elsewhere is the same file."""
    path = write(tmp_path, PI)
    first = import_now(path, store, "assistant")
    copy = write(tmp_path, path.read_bytes(), "copy.jsonl")
    for again in (path, copy):
        known = import_now(again, store, "assistant")
        assert (known.known, known.sessions, known.report) == (True, first.sessions, None)
        assert first.session in known.text()
    anew = import_now(path, store, "assistant", again=True)
    assert anew.session != first.session
    assert import_now(path, store, "another").known is False


def test_many_files_share_what_is_known(tmp_path: Path, store: SessionStore) -> None:
    """What is imported meanwhile is known too."""
    earlier = Earlier(store, "assistant")
    paths = [write(tmp_path, lines, f"{name}.jsonl") for name, lines in SAMPLES.items()]
    made = [import_now(path, store, "assistant", earlier=earlier) for path in (*paths, *paths)]
    assert [each.known for each in made] == [False] * len(paths) + [True] * len(paths)
    assert [each.session for each in made[: len(paths)]] == [each.session for each in made[len(paths) :]]


def test_a_file_that_has_grown_is_another_session(tmp_path: Path, store: SessionStore) -> None:
    """The earlier one is named and stays as it is; a file that was rewritten is no grown one."""
    path = write(tmp_path, PI)
    first = import_now(path, store, "assistant")
    before = store.path("assistant", first.session).read_bytes()
    with path.open("ab") as file:
        file.write(json.dumps(pi(30, 26, "message", message=pi_user("More."))).encode() + b"\n")
    second = import_now(path, store, "assistant")
    assert (second.known, second.earlier) == (False, first.session)
    assert "has grown" in second.text()
    assert store.path("assistant", first.session).read_bytes() == before
    write(tmp_path, PI[:-2])
    assert import_now(path, store, "assistant").earlier is None


def test_a_packed_file_is_read_as_it_is(tmp_path: Path, store: SessionStore) -> None:
    """Whatever its name."""
    path = tmp_path / "strange.name"
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in CLAUDE)))
    imported = import_now(path, store, "assistant")
    assert (imported.format, imported.titles) == ("claude-code", ("The garden",))


async def continued(workspace: Path, session: str, text: str) -> tuple[Scripted, Runtime]:
    model = Scripted(["Well."])
    async with Runtime.open(workspace, model=model.chosen(), settings={"tools.exec": "off"}, environ={}) as runtime:
        agent = await runtime.supervisor.agent("assistant", session)
        async for _ in agent.send(text):
            pass
        assert agent.session.path.is_file()
        return model, runtime


@pytest.mark.parametrize("format", SAMPLES)
async def test_an_imported_session_goes_on(tmp_path: Path, format: str) -> None:
    """The request is a legal one (the runtime refuses others), holds the history, and our prompt."""
    workspace = tmp_path / "workspace"
    folder = workspace / ".moonwake" / "sessions"
    store = SessionStore(folder, lambda: "no-id", lambda: "2026-06-01T00:00:00.000Z")
    imported = await import_session(write(tmp_path, SAMPLES[format]), store, "assistant")
    seen = project(Tree(read_log(store.path("assistant", imported.session)).entries).branch()).messages
    model, _ = await continued(workspace, imported.session, "And then?")
    (request,) = model.requests
    body = json.dumps(dict(request.body))
    for message in seen:
        for words in message.text.split("\n"):
            assert json.dumps(words)[1:-1] in body
    assert "And then?" in body
    entries = read_log(store.path("assistant", imported.session)).entries
    assert any(isinstance(entry.record, OutcomeRecord) for entry in entries)
    last = project(Tree(entries).branch()).messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.text == "Well."
    assert "Moonwake" in json.dumps(request.body["system"])
    assert not any(isinstance(message, SystemPatch) for message in project(Tree(entries).branch()).messages)


def refused(path: Path, store: SessionStore, **options: Any) -> str:
    with pytest.raises(SessionError) as raised:
        import_now(path, store, "assistant", **options)
    assert not list(store.folder.rglob("*.jsonl*"))
    return str(raised.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0", "holds no JSON lines"),
        (b"# Notes\n", "holds no JSON lines"),
        (b'{"name": "x", "private": true}\n', "the first object has 'name', 'private'"),
        (b"[1, 2]\n", "holds no JSON lines"),
        (b'{"type":"session","version":1,"id":"x","agent":"a","created":"y"}\n', "a session of Moonwake itself"),
        (b'{"sessionId":"x","type":"file-history-snapshot"}\n', "nothing is said in it"),
        (gzip.compress(b'{"role": "user", "content": "x"}\n' * 50, mtime=0)[:-12], "cannot read"),
    ],
)
def test_what_is_no_session_is_refused_with_what_it_is(
    tmp_path: Path, store: SessionStore, data: bytes, says: str
) -> None:
    """A person learns what to give instead; nothing is written."""
    path = write(tmp_path, data)
    told = refused(path, store)
    assert says in told
    assert str(path) in told


def test_places_that_are_no_files_are_refused(tmp_path: Path, store: SessionStore) -> None:
    """Folders, missing files, and formats that nobody knows."""
    assert "is a folder" in refused(tmp_path, store)
    assert "does not exist" in refused(tmp_path / "nothing.jsonl", store)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path / "pipe", store)
    path = write(tmp_path, PI)
    assert "give one of pi" in refused(path, store, format="other")
    assert "looks like a file of pi, not of codex" in refused(path, store, format="codex")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, store: SessionStore) -> None:
    """With the system's reason."""
    path = write(tmp_path, PI)
    path.chmod(0)
    assert "Permission denied" in refused(path, store)


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    """The folder of the sessions is a file."""
    (tmp_path / "sessions").write_text("")
    store = SessionStore(tmp_path / "sessions", lambda: "x", lambda: "now")
    with pytest.raises(SessionError, match="cannot write the imported session"):
        import_now(write(tmp_path, PI), store, "assistant")


def test_large_content_goes_to_blobs(tmp_path: Path, store: SessionStore) -> None:
    """A picture as a line names it."""
    from runtime.session.format.blobs import FolderBlobs

    large = "A" * 40_000
    content = [{"type": "image", "data": large, "mimeType": "image/png"}]
    lines = [PI[0], pi(1, None, "message", message={"role": "user", "content": content})]
    blobs = FolderBlobs(tmp_path / "blobs")
    imported = import_now(write(tmp_path, lines), store, "assistant", blobs=blobs)
    text = store.path("assistant", imported.session).read_text()
    assert large not in text
    assert len(list(blobs.stored())) == 1


def test_a_large_file_is_streamed(tmp_path: Path, store: SessionStore) -> None:
    """What is left of it takes no memory: 20 MB of snapshots at a fraction of that."""
    import tracemalloc

    snapshot = json.dumps({"type": "file-history-snapshot", "snapshot": {"text": "x" * 100_000}}).encode() + b"\n"
    told = b"".join(json.dumps(line).encode() + b"\n" for line in CLAUDE)
    path = write(tmp_path, told + snapshot * 200)
    tracemalloc.start()
    try:
        imported = import_now(path, store, "assistant")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert imported.report is not None
    assert imported.report.lines == len(CLAUDE) + 200


def test_a_line_that_is_broken_is_named(tmp_path: Path, store: SessionStore) -> None:
    """The others are carried over."""
    lines = [json.dumps(line).encode() for line in PI]
    lines[4:4] = [b"{half", b"\xff\xfe", b"", b"[]"]
    report = import_now(write(tmp_path, b"\n".join(lines)), store, "assistant").report
    assert report is not None
    assert [report.left[line].split(" (")[0] for line in (5, 6, 7, 8)] == [
        "broken: it is not JSON",
        "broken: it is not UTF-8",
        "a blank line",
        "not an object but a JSON list",
    ]
    assert "broken: it is not JSON" in report.text()


def test_the_formats_have_names() -> None:
    """As people type them."""
    assert list(FORMATS) == ["pi", "claude-code", "codex", "nanobot", "chat"]


def test_what_is_told_of_an_import(tmp_path: Path, store: SessionStore) -> None:
    """The session, its title, and every line that was left."""
    imported = import_now(write(tmp_path, CLAUDE), store, "assistant")
    text = imported.text()
    assert text.startswith(f"Imported {tmp_path / 'session.jsonl'} as the session {imported.session}: The garden\n")
    assert "32 lines (claude-code): 27 carried over, 5 left." in text
    assert "left, 1 line: unknown type 'new-thing' (line 32)" in text


def test_a_source_knows_its_hash(tmp_path: Path) -> None:
    """Of its bytes as they lie."""
    path = write(tmp_path, PI, "x.jsonl.gz")
    assert look_at(path).sha256 == sha256(path.read_bytes()).hexdigest()
