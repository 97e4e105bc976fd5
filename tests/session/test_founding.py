"""A session that is founded whole: nobody takes its blobs while it is made, and nothing half stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.errors import SessionLocked
from runtime.session.care.erasing import erase_redacted
from runtime.session.care.gc import DAY, collect_garbage
from runtime.session.format.blobs import FolderBlobs
from runtime.session.format.codec import encode_header
from runtime.session.opening import open_log, read_log
from runtime.session.writing.founding import found_session
from runtime.session.writing.locking import lock, unlock

from .logs import Log
from .records import HEADER, file_of

NOW = 2_000_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "a" / "new.jsonl"


def redacted(path: Path) -> Path:
    """Another session, with something to erase."""
    log = Log()
    log.redact(log.user("a secret of some length"))
    other = path.with_name("other.jsonl")
    other.write_bytes(file_of(log.tree.entries))
    return other


@pytest.mark.parametrize("who", ["gc", "erasing"])
def test_nobody_takes_the_blobs_of_a_session_that_is_being_made(path: Path, who: str) -> None:
    """However long that takes: nothing names them until it is there."""
    blobs = FolderBlobs(path.parent.parent.parent / "blobs")
    kept = []

    def make() -> bytes:
        kept.append(blobs.put("large " * 10_000))
        for stored in blobs.stored():
            os.utime(stored.path, (NOW - 2 * DAY, NOW - 2 * DAY))
        if who == "gc":
            collected = collect_garbage(path.parent.parent.parent, now=NOW)
            assert not collected.removed and "being made" in collected.problems[-1]
        else:
            erasure = erase_redacted(redacted(path), blobs, now=NOW)
            assert not erasure.removed and any("being made" in each for each in erasure.problems)
        return encode_header(HEADER) + f'{{"id":1,"x":"{kept[0].name}"}}\n'.encode()

    found_session(path, make)
    assert blobs.state(kept[0]) == "whole"
    assert not collect_garbage(path.parent.parent.parent, now=NOW).removed
    path.unlink()
    assert len(collect_garbage(path.parent.parent.parent, now=NOW).removed) == 1


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_what_fails_or_is_interrupted_leaves_nothing(path: Path, fault: type[BaseException]) -> None:
    """Not even a lock."""

    def make() -> bytes:
        raise fault

    with pytest.raises(fault):
        found_session(path, make)
    assert list(path.parent.iterdir()) == []


def test_what_is_there_or_open_is_left_alone(path: Path) -> None:
    """And one that was founded opens, and is alone in its folder."""
    log = Log()
    log.user("hello")
    found_session(path, lambda: file_of(log.tree.entries))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with pytest.raises(FileExistsError):
        found_session(path, lambda: b"")
    assert read_log(path).entries == log.tree.entries
    open_log(path)[0].close()
    held = lock(path)
    with pytest.raises(SessionLocked):
        found_session(path, lambda: b"")
    unlock(held, path)
