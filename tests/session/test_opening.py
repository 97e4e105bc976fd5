"""What stands at a session's path, and what opening makes of it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from governors.messages import Image, Text
from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import Blob, Entry, Header, MessageRecord, ResultRecord
from runtime.session.format.codec import encode_entry
from runtime.session.format.large import LARGE, MISSING_IMAGE
from runtime.session.opening import create_log, open_log, read_log
from runtime.session.session import create_session, open_session
from runtime.session.view.recall import recall

from .logs import Log
from .records import AT, HEADER, chain, file_of, user
from .test_codec import Blobs

OPENINGS: list[Callable[[Path], object]] = [open_log, read_log]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the sessions of one agent lie."""
    made = tmp_path / "sessions" / "assistant"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_link_out_of_the_folder_is_not_followed(
    folder: Path, tmp_path: Path, opening: Callable[[Path], object]
) -> None:
    """Whoever can write there must not choose the file that we write to. It says where the link leads."""
    outside = tmp_path / "elsewhere.jsonl"
    outside.write_bytes(file_of(chain(1, 2)))
    (folder / "s.jsonl").symlink_to(outside)
    with pytest.raises(SessionError, match=r"is a symbolic link out of .*sessions, to .*elsewhere\.jsonl"):
        opening(folder / "s.jsonl")
    assert [path.name for path in folder.iterdir()] == ["s.jsonl"] and outside.read_bytes() == file_of(chain(1, 2))


@pytest.mark.parametrize("opening", OPENINGS)
def test_an_agents_folder_that_is_a_link_leads_nowhere_either(
    folder: Path, tmp_path: Path, opening: Callable[[Path], object]
) -> None:
    """The link may stand further up."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "s.jsonl").write_bytes(file_of(chain(1, 2)))
    (folder.parent / "agent").symlink_to(tmp_path / "other")
    with pytest.raises(SessionError, match="symbolic link out of"):
        opening(folder.parent / "agent" / "s.jsonl")


def test_a_link_inside_the_folder_is_the_session_that_it_leads_to(folder: Path) -> None:
    """With one lock for both names."""
    (folder / "s.jsonl").write_bytes(file_of(chain(1, 2)))
    (folder / "also.jsonl").symlink_to("s.jsonl")
    log, reading = open_log(folder / "also.jsonl")
    assert len(reading.entries) == 2 and log.path == (folder / "s.jsonl").resolve()
    with pytest.raises(SessionLocked):
        open_log(folder / "s.jsonl")
    log.close()


def test_sessions_below_a_link_are_opened(folder: Path, tmp_path: Path) -> None:
    """A home folder may itself be one."""
    (folder / "s.jsonl").write_bytes(file_of(chain(1, 2)))
    (tmp_path / "home").symlink_to(folder.parent.parent)
    path = tmp_path / "home" / "sessions" / "assistant" / "s.jsonl"
    open_log(path)[0].close()
    assert len(read_log(path).entries) == 2


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("target", ["nowhere", "s.jsonl"])
def test_a_link_to_nothing_is_named(folder: Path, opening: Callable[[Path], object], target: str) -> None:
    """Also one to itself."""
    (folder / "s.jsonl").symlink_to(target)
    with pytest.raises(SessionError, match="is a symbolic link to nothing"):
        opening(folder / "s.jsonl")


UNREADABLE = """
import os, sys
from pathlib import Path
from runtime.errors import SessionError
from runtime.session.opening import open_log, read_log
open_log(Path(sys.argv[2]))[0].close()  # imports what is imported late
os.setgid(65534)
os.setuid(65534)
for path in sys.argv[1], sys.argv[3]:
    for act in open_log, read_log:
        try:
            act(Path(path))
        except SessionError as error:
            print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_what_may_not_be_read_says_so(tmp_path: Path) -> None:
    """A file, or a folder above it."""
    for each in (tmp_path, *tmp_path.parents[:3]):
        each.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    for path in (tmp_path / "s.jsonl", tmp_path / "warm.jsonl", tmp_path / "closed" / "s.jsonl"):
        path.write_bytes(file_of(chain(1, 2)))
        path.chmod(0o600)
    paths = [str(tmp_path / name) for name in ("s.jsonl", "warm.jsonl", "closed/s.jsonl")]
    child = subprocess.run(
        [sys.executable, "-c", UNREADABLE, *paths], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    told = child.stdout.splitlines()
    assert len(told) == 4 and all("Permission denied" in line and "s.jsonl" in line for line in told)


def test_a_broken_line_that_cannot_be_copied_is_no_hindrance(tmp_path: Path) -> None:
    """It stays where it is, so nothing is lost."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(file_of(chain(1, 2)) + b"broken\n")
    (tmp_path / f"s.jsonl.broken-{len(file_of(chain(1, 2)))}").mkdir()
    log, reading = open_log(path)
    assert len(reading.broken) == 1
    log.close()


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(tmp_path: Path, was_on: bool) -> None:
    """Also when the file was none of ours."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"nothing")
    try:
        if not was_on:
            gc.disable()
        with pytest.raises(SessionError):
            read_log(path)
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


PICTURE = Image("image/png", "A" * LARGE)


def test_blobs_are_read_with_the_session_and_missing_ones_reported(tmp_path: Path) -> None:
    """The entry is there all the same, and says what is not."""
    path, blobs = tmp_path / "s.jsonl", Blobs()
    path.write_bytes(file_of() + encode_entry(Entry(1, None, AT, user("a"))))
    with path.open("ab") as file:
        file.write(encode_entry(Entry(2, 1, AT, MessageRecord(role="user", content=(PICTURE,))), blobs=blobs))
    log, reading = open_log(path, blobs=blobs)
    log.close()
    assert not reading.broken and reading.entries[1].record == MessageRecord(role="user", content=(PICTURE,))
    (name,) = blobs.texts
    blobs.texts.clear()
    reading = read_log(path, blobs)
    assert reading.entries[1].record == MessageRecord(role="user", content=(Text(MISSING_IMAGE),))
    (finding,) = reading.broken
    assert finding.line == 3 and name[:12] in finding.problem and finding.content == b""


def test_recall_reads_blobs() -> None:
    """By handle, by number and by words; what is gone leaves what the model saw of it."""
    from governors.microcompact import text_handle

    log, blobs = Log(), Blobs()
    reply = log.calls("exec")
    text = "lines of output " * 2_000 + "HELIOTROPE at the end"
    record = ResultRecord(call=(reply, 0), tool="exec", content=(Text("lines of …"),), whole=blobs.put(text))
    number = log.add(record)
    for what in (text_handle(text), f"#{number}"):
        assert recall(log.branch, what, blobs=blobs) == text
    found = recall(log.branch, "heliotrope", blobs=blobs)
    assert found is not None and found.startswith(f"#{number} (result of exec")
    blobs.texts.clear()
    assert isinstance(record.whole, Blob) and recall(log.branch, f"#{number}", blobs=blobs) == "lines of …"


async def test_a_session_has_the_blobs_that_it_was_opened_with(tmp_path: Path) -> None:
    """Whoever recalls needs them."""
    blobs = Blobs()
    session = await create_session(tmp_path / "s.jsonl", Header(id="s", agent="a", created=""), lambda: AT, blobs)
    await session.append(user("a"))
    assert session.blobs is blobs
    await session.close()
    again = await open_session(tmp_path / "s.jsonl", lambda: AT, blobs)
    assert again.blobs is blobs
    await again.close()


def test_a_new_session_stands_beside_its_lock(tmp_path: Path) -> None:
    """And nothing else."""
    create_log(tmp_path / "s.jsonl", HEADER).close()
    assert {path.name for path in tmp_path.iterdir()} <= {"s.jsonl", "s.jsonl.lock"}
