"""Large content by its hash: whole or not there, whoever writes beside it and whatever happens to the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.session.entries import Blob
from runtime.session.format.blobs import FolderBlobs

from .records import patient

ROOT = Path(__file__).parents[2]
TEXT = "a long output\n" * 2_000


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "state" / "blobs")


def place(blobs: FolderBlobs, blob: Blob) -> Path:
    return blobs.folder / blob.name[:2] / blob.name


def fresh(blobs: FolderBlobs) -> FolderBlobs:
    """The same folder as another process sees it: nothing is remembered."""
    return FolderBlobs(blobs.folder)


def files(blobs: FolderBlobs) -> list[str]:
    return sorted(stored.path.name for stored in blobs.stored())


def test_a_blob_lies_under_its_hash_and_is_private(blobs: FolderBlobs) -> None:
    """The folders and the file are made for their owner alone."""
    blob = blobs.put("né")
    assert blob == Blob(sha256("né".encode()).hexdigest(), 3)
    assert place(blobs, blob).read_bytes() == "né".encode()
    assert place(blobs, blob).stat().st_mode & 0o777 == 0o600
    assert blobs.folder.stat().st_mode & 0o777 == 0o700
    assert blobs.get(blob) == fresh(blobs).get(blob) == "né"


@patient
@given(st.text() | st.text(st.characters(categories=["Cs", "Lu"]), max_size=6))
def test_what_was_put_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Every character, but for lone surrogates, which UTF-8 has no place for."""
    blobs = FolderBlobs(tmp_path_factory.getbasetemp() / "law")
    again = fresh(blobs).get(blobs.put(text))
    assert again is not None and len(again) <= len(text) and "\r\n" not in again.replace(text, "")
    assert again == text or any("\ud800" <= each <= "\udfff" for each in text)


def test_putting_it_again_writes_nothing_and_makes_it_young(blobs: FolderBlobs) -> None:
    """So that a collection spares what is about to be named once more."""
    blob = blobs.put(TEXT)
    os.utime(place(blobs, blob), (1_000, 1_000))
    before = place(blobs, blob).stat()
    for store in (blobs, fresh(blobs)):
        os.utime(place(blobs, blob), (1_000, 1_000))
        assert store.put(TEXT) == blob
        after = place(blobs, blob).stat()
        assert after.st_ino == before.st_ino and after.st_mtime > 1_000_000


@pytest.mark.parametrize("content", [b"", TEXT.encode()[:-1], b"x" * len(TEXT), None])
def test_putting_mends_what_is_damaged_or_gone(blobs: FolderBlobs, content: bytes | None) -> None:
    """Also where the size is right."""
    blob = blobs.put(TEXT)
    if content is None:
        place(blobs, blob).unlink()
    else:
        place(blobs, blob).write_bytes(content)
    other = fresh(blobs)
    assert other.put(TEXT) == blob and fresh(blobs).get(blob) == TEXT


def test_a_damaged_blob_is_moved_aside_and_counts_as_missing(blobs: FolderBlobs) -> None:
    """It is kept for whoever can mend it; looking at its state changes nothing."""
    blob = blobs.put(TEXT)
    place(blobs, blob).write_bytes(b"\0" * 10)
    assert blobs.state(blob) == "damaged" and files(blobs) == [blob.name]
    assert blobs.get(blob) is None
    assert files(blobs) == [blob.name + ".damaged"] and blobs.state(blob) == "missing"
    assert place(blobs, blob).with_name(blob.name + ".damaged").read_bytes() == b"\0" * 10
    assert blobs.put(TEXT) == blob and blobs.get(blob) == TEXT


def test_what_two_sessions_show_is_read_once(blobs: FolderBlobs) -> None:
    """The same text object; what no longer fits is read again."""
    small = FolderBlobs(blobs.folder, cached=len(TEXT) + 10)
    blob, other = small.put(TEXT), small.put(TEXT + "!")
    first = small.get(blob)
    assert small.get(blob) is first
    assert small.get(other) == TEXT + "!"
    assert small.get(blob) == first and small.get(blob) is not first
    nothing = FolderBlobs(blobs.folder, cached=0)
    assert nothing.get(blob) == TEXT


@pytest.mark.parametrize("name", ["", "../../secret", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n", "/etc/passwd"])
def test_a_crafted_name_reads_nothing(blobs: FolderBlobs, name: str) -> None:
    """Whatever stands where it would lead."""
    blobs.put(TEXT)
    (blobs.folder.parent / "secret").write_text("secret")
    assert blobs.get(Blob(name, 6)) is None and blobs.state(Blob(name, 6)) == "missing"


def test_no_symbolic_link_is_followed(blobs: FolderBlobs, tmp_path: Path) -> None:
    """Neither at a blob's name nor at its folder's, not even to the right content."""
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = blobs.put(TEXT)
    place(blobs, blob).rename(outside / blob.name)
    place(blobs, blob).symlink_to(outside / blob.name)
    assert fresh(blobs).get(blob) is None
    assert fresh(blobs).put(TEXT) == blob and not place(blobs, blob).is_symlink()
    shard = place(blobs, blob).parent
    place(blobs, blob).unlink()
    (shard / (blob.name + ".damaged")).unlink(missing_ok=True)
    shard.rmdir()
    shard.symlink_to(outside)
    assert fresh(blobs).get(blob) is None and list(blobs.stored()) == []
    with pytest.raises(OSError):
        fresh(blobs).put(TEXT)
    assert (outside / blob.name).read_text() == TEXT


def test_a_pipe_or_a_folder_in_its_place_does_not_stop_us(blobs: FolderBlobs) -> None:
    """Nothing waits for a writer that never comes."""
    blob = blobs.put(TEXT)
    place(blobs, blob).unlink()
    os.mkfifo(place(blobs, blob))
    other = fresh(blobs)
    assert other.state(blob) == "damaged" and other.get(blob) is None
    place(blobs, blob).mkdir()
    assert fresh(blobs).get(blob) is None


def test_threads_that_put_the_same_content_agree(blobs: FolderBlobs) -> None:
    """Each finds it whole, and nothing is left beside it."""
    texts = [TEXT + str(number % 4) for number in range(64)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: (blobs.put(text), text), texts))
    assert all(fresh(blobs).get(blob) == text for blob, text in found)
    assert files(blobs) == sorted({blob.name for blob, _ in found})


_PUT = """
import sys
from pathlib import Path
from runtime.session.format.blobs import FolderBlobs
blobs = FolderBlobs(Path(sys.argv[1]))
for number in range(60):
    blob = blobs.put("shared" * 5_000 + str(number % 6))
    assert blobs.get(blob) is not None
"""


def test_processes_that_put_the_same_content_agree(blobs: FolderBlobs) -> None:
    """Two at once, over the same six blobs."""
    command = [sys.executable, "-c", _PUT, str(blobs.folder)]
    running = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert len(files(blobs)) == 6
    assert all(fresh(blobs).state(Blob(name, 0)) == "whole" for name in files(blobs))


def test_a_full_disk_leaves_no_half_file(blobs: FolderBlobs) -> None:
    """The caller gets the `OSError`; neither the name nor anything beside it stands there."""
    code = (
        "import resource, sys; from pathlib import Path; from runtime.session.format.blobs import FolderBlobs\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "blobs = FolderBlobs(Path(sys.argv[1]))\n"
        "blobs.put('x' * 9_000)\n"
        "try: blobs.put('y' * 12_000)\n"
        "except OSError as error: print('refused', error.errno)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(blobs.folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.startswith("refused"), run.stderr
    assert files(blobs) == [sha256(b"x" * 9_000).hexdigest()]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """A file stands in its place: the caller hears of it, readers find nothing."""
    (tmp_path / "blobs").write_text("")
    blobs = FolderBlobs(tmp_path / "blobs")
    with pytest.raises(OSError):
        blobs.put(TEXT)
    assert blobs.get(Blob("0" * 64, 1)) is None and list(blobs.stored()) == []


def test_removal_spares_what_was_refreshed_meanwhile(blobs: FolderBlobs) -> None:
    """And every `put` waits until it is over."""
    blob = blobs.put(TEXT)
    os.utime(place(blobs, blob), (1_000, 1_000))
    (seen,) = blobs.stored()
    blobs.put(TEXT)
    with blobs.closed():
        assert not blobs.remove(seen)
        (seen,) = blobs.stored()
        waiting = threading.Thread(target=blobs.put, args=(TEXT,))
        waiting.start()
        assert blobs.remove(seen) and not blobs.remove(seen)
        assert waiting.is_alive() and files(blobs) == []
    waiting.join()
    assert blobs.get(blob) == TEXT and files(blobs) == [blob.name]


def test_a_blob_that_another_process_removed_is_written_again(blobs: FolderBlobs) -> None:
    """What this process remembers of it is no proof that it is still there."""
    blob = blobs.put(TEXT)
    place(blobs, blob).unlink()
    assert blobs.put(TEXT) == blob and place(blobs, blob).exists()


_KILLED = """
import os, sys
from pathlib import Path
from runtime.session.format.blobs import FolderBlobs

def put(folder, left):
    def count(event, args):
        nonlocal left
        if event in ("open", "os.mkdir", "os.rename", "os.utime"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), 9)
    sys.addaudithook(count)
    FolderBlobs(folder).put("kept" * 5_000)

top = Path(sys.argv[1])
FolderBlobs(top / "warm").put("kept" * 5_000)
number, status = 0, 1
while status:
    child = os.fork()
    if child == 0:
        put(top / f"run-{number:02d}", number)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    number += 1
"""


def test_a_crash_leaves_a_whole_blob_or_none(tmp_path: Path) -> None:
    """Killed before each step on the disk; putting it again makes it whole."""
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=ROOT, timeout=60, check=True)
    text = "kept" * 5_000
    blob = Blob(sha256(text.encode()).hexdigest(), len(text))
    states = []
    for folder in sorted(tmp_path.glob("run-*")):
        states.append(FolderBlobs(folder).state(blob))
        assert FolderBlobs(folder).put(text) == blob and FolderBlobs(folder).get(blob) == text
    assert set(states) == {"missing", "whole"} and len(states) < 30
