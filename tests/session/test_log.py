"""The session file: what is acknowledged is on disk, what fails leaves no trace."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from governors.messages import Text
from runtime.errors import SessionError, SessionLocked
from runtime.session.entries import Entry, MessageRecord, NoteRecord
from runtime.session.opening import create_log, open_log, read_log
from runtime.session.writing.log import REAL_DISK, LogFile

from .records import AT, HEADER, chain, file_of, user


class Disk:
    """A real disk that counts what it is asked for and can be told to refuse."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuse: dict[str, OSError] = {}
        self.room: int | None = None  # bytes that there is place for

    def write(self, descriptor: int, data: bytes, /) -> int:
        self._ask("write")
        if self.room is None:
            return REAL_DISK.write(descriptor, data)
        if not self.room:
            raise FULL
        written = REAL_DISK.write(descriptor, data[: self.room])
        self.room -= written
        return written

    def sync(self, descriptor: int, /) -> None:
        self._ask("sync")
        REAL_DISK.sync(descriptor)

    def cut(self, descriptor: int, length: int, /) -> None:
        self._ask("cut")
        REAL_DISK.cut(descriptor, length)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what in self.refuse:
            raise self.refuse[what]


FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def log(path: Path, disk: Disk) -> LogFile:
    made = create_log(path, HEADER, disk)
    disk.asked.clear()
    return made


def test_a_batch_is_one_write_and_one_sync(log: LogFile, disk: Disk, path: Path) -> None:
    """However many entries it has."""
    log.append(chain(1, 50))
    assert disk.asked == ["write", "sync"]
    assert read_log(path).entries == chain(1, 50)
    assert log.length == path.stat().st_size


def test_append_returns_what_the_file_holds(log: LogFile, path: Path) -> None:
    """Not what was handed in: memory and file never differ."""
    data = {"numbers": (1, 2), 3: "three"}
    handed = (Entry(1, None, AT, user("half \ud83d")), Entry(2, 1, AT, NoteRecord(text="n", data=data)))  # type: ignore[arg-type]  # a key that JSON turns into text
    kept = log.append(handed)
    assert kept == read_log(path).entries
    assert kept[0].record == user("half �")
    assert kept[1].record == NoteRecord(text="n", data={"numbers": [1, 2], "3": "three"})


@pytest.mark.parametrize(
    "record",
    [
        MessageRecord(role="wizard", content=(Text("x"),)),  # type: ignore[arg-type]  # wrong on purpose
        NoteRecord(text="x", data={"thing": object()}),
        NoteRecord(text=5),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_a_record_that_could_not_be_read_back_is_not_written(log: LogFile, path: Path, record: NoteRecord) -> None:
    """Better a fault now than a broken line at the next opening."""
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError)):
        log.append((Entry(1, None, AT, record),))
    assert path.read_bytes() == before


def refuse(what: str, error: OSError) -> Callable[[Disk], None]:
    return lambda disk: disk.refuse.update({what: error})


def fill(disk: Disk) -> None:
    disk.room = 20


@pytest.mark.parametrize(
    ("trouble", "says"),
    [(refuse("write", FULL), "No space left"), (refuse("sync", BROKEN), "Input/output"), (fill, "No space left")],
)
def test_a_failed_append_leaves_the_file_as_long_as_before(
    log: LogFile, disk: Disk, path: Path, trouble: Callable[[Disk], None], says: str
) -> None:
    """It raises with the path and what to do; the next append works as if nothing had been."""
    log.append(chain(1, 2))
    before = path.read_bytes()
    trouble(disk)
    for _ in range(2):
        with pytest.raises(SessionError, match=says) as caught:
            log.append(chain(3, 4, 2))
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before
    disk.refuse.clear()
    disk.room = None
    log.append(chain(3, 4, 2))
    assert read_log(path).entries == chain(1, 4)


def test_what_cannot_be_cut_off_is_cut_off_before_the_next_append(log: LogFile, disk: Disk, path: Path) -> None:
    """Half a batch that stayed would be glued to the next one and take it with it."""
    log.append(chain(1, 2))
    before = path.read_bytes()
    disk.room, disk.refuse = 20, {"cut": BROKEN}
    with pytest.raises(SessionError, match="No space left"):
        log.append(chain(3, 4, 2))
    disk.room = None
    with pytest.raises(SessionError, match="Input/output"):
        log.append(chain(3, 4, 2))
    assert path.read_bytes()[: len(before)] == before
    disk.refuse = {}
    log.append(chain(3, 4, 2))
    assert read_log(path).entries == chain(1, 4)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_device_refuses(tmp_path: Path) -> None:
    """The kernel's own answer, not a fake's."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    log = LogFile(Path("/dev/full"), descriptor, 0, FileLock(tmp_path / "lock"))
    with pytest.raises(SessionError, match="/dev/full: No space left on device"):
        log.append(chain(1, 1))
    log.close()


LIMITED = """
import resource, sys
from pathlib import Path
from runtime.errors import SessionError
from runtime.session.entries import Entry, MessageRecord
from governors.messages import Text
from runtime.session.opening import open_log

path = Path(sys.argv[1])
log, reading = open_log(path)
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, resource.RLIM_INFINITY))
def entry(number, text):
    return Entry(number, number - 1, "now", MessageRecord(role="user", content=(Text(text),)))
try:
    log.append((entry(3, "x" * 1000), entry(4, "y")))
except SessionError as error:
    print(error)
assert path.stat().st_size == size, "the file grew"
log.append((entry(3, "short"),))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append((entry(4, "x" * 1000),))
"""


def run_child(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_write_that_the_system_cuts_short_leaves_nothing(path: Path) -> None:
    """A real partial write, by a limit on the file's size."""
    path.write_bytes(file_of(chain(1, 2)))
    child = run_child(LIMITED, str(path))
    assert child.returncode == 0, child.stderr
    assert "File too large" in child.stdout
    assert [entry.id for entry in read_log(path).entries] == [1, 2, 3, 4]


AS_NOBODY = """
import os, sys
from pathlib import Path
from runtime.errors import SessionError
from runtime.session.entries import Header
from runtime.session.opening import create_log, open_log, read_log
new = Header(id="n", agent="a", created="")
create_log(Path(sys.argv[2]), new).close()  # imports what is imported late, while everything may be read
open_log(Path(sys.argv[2]))[0].close()
os.setgid(65534)
os.setuid(65534)
for act in (lambda path: create_log(path, new), open_log):
    try:
        act(Path(sys.argv[1]))
    except SessionError as error:
        print(error)
print(len(read_log(Path(sys.argv[1])).entries))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_written_refuses() -> None:
    """Making and opening say so with the path; reading works."""
    with tempfile.TemporaryDirectory() as name:  # another run that starts now would close `tmp_path` to others
        path = Path(name) / "s.jsonl"
        path.write_bytes(file_of(chain(1, 2)))
        path.parent.chmod(0o755)
        path.chmod(0o644)
        child = run_child(AS_NOBODY, str(path), str(path.with_name("warm.jsonl")))
    assert child.returncode == 0, child.stderr
    create, opened, count = child.stdout.splitlines()
    assert all("Permission denied" in line and str(path) in line for line in (create, opened))
    assert count == "2"


def test_a_new_session_has_its_header_on_disk(path: Path) -> None:
    """From the first moment that a file of that name exists."""
    create_log(path, HEADER).close()
    assert path.read_bytes() == file_of()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("what", ["write", "sync"])
def test_a_session_that_cannot_be_made_leaves_no_file(path: Path, disk: Disk, what: str) -> None:
    """The name stays free, and no lock is left behind."""
    disk.refuse = {what: FULL}
    with pytest.raises(SessionError, match=r"cannot create the session .*No space left"):
        create_log(path, HEADER, disk)
    assert list(path.parent.iterdir()) == []
    create_log(path, HEADER).close()


def test_what_a_crash_left_while_a_session_was_made_is_no_hindrance(path: Path) -> None:
    """Half a header stands under another name, where the next attempt overwrites it."""
    path.with_name("s.jsonl.new").write_bytes(b'{"type":"sess')
    create_log(path, HEADER).close()
    assert read_log(path).header == HEADER


def test_an_existing_session_is_not_made_again(path: Path) -> None:
    """Whatever stands at its place."""
    create_log(path, HEADER).close()
    with pytest.raises(SessionError, match="exists already"):
        create_log(path, HEADER)
    path.unlink()
    path.mkdir()
    with pytest.raises(SessionError, match="exists already"):
        create_log(path, HEADER)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"Dear diary,\n", "not JSON"),
        (b'{"role": "user"}\n', "not a session header"),
        (b'{"type":"session","version":2,"id":"a","agent":"b","created":""}\n', "reads up to 1"),
        (b"\x89PNG\r\n\x1a\n", "not UTF-8"),
    ],
)
def test_what_is_no_session_is_left_as_it_is(path: Path, content: bytes, says: str) -> None:
    """Each is refused with a sentence that names the file, for reading and writing."""
    path.write_bytes(content)
    for opening in (open_log, read_log):
        with pytest.raises(SessionError, match=says) as caught:
            opening(path)
        assert str(path) in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("opening", [open_log, read_log])
def test_what_is_no_file_is_named(tmp_path: Path, opening: Callable[[Path], object]) -> None:
    """A folder, a pipe and nothing at all are told apart."""
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("", "is a folder"), ("missing", "does not exist"), ("pipe", "is not a file")):
        with pytest.raises(SessionError, match=says):
            opening(tmp_path / name)


def test_a_torn_tail_is_kept_when_it_cannot_be_set_aside(path: Path) -> None:
    """What cannot be copied is not cut off."""
    path.write_bytes(file_of(chain(1, 2)) + b"torn")
    before = path.read_bytes()
    side = path.with_name(f"{path.name}.torn-{len(before) - 4}")
    side.mkdir()
    with pytest.raises(SessionError, match="for writing"):
        open_log(path)
    assert path.read_bytes() == before
    side.rmdir()
    open_log(path)[0].close()
    assert side.read_bytes() == b"torn"


def test_the_same_process_is_refused_too(path: Path) -> None:
    """Two openings in one process would overwrite each other's ids just as well."""
    log = create_log(path, HEADER)
    with pytest.raises(SessionLocked, match="open in this process already"):
        open_log(path)
    log.close()
    open_log(path)[0].close()


def test_reading_needs_no_lock(path: Path) -> None:
    """A session that is being written can be looked at."""
    log = create_log(path, HEADER)
    log.append(chain(1, 2))
    assert len(read_log(path).entries) == 2
    log.close()


HOLDER = """
import sys
from pathlib import Path
from runtime.session.opening import open_log
log, _ = open_log(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_killed(path: Path) -> None:
    """The error names the owner; SIGKILL frees the lock."""
    create_log(path, HEADER).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(SessionLocked, match=rf"open in another process \(id {holder.pid}\)"):
            open_log(path)
        holder.kill()
        holder.wait()
    log, _ = open_log(path)
    log.append(chain(1, 1))
    log.close()


def test_a_lock_file_without_an_owner_still_locks(path: Path) -> None:
    """Its text is for people; whether it is locked is the system's to say."""
    log = create_log(path, HEADER)
    path.with_name("s.jsonl.lock").write_text("nonsense")
    with pytest.raises(SessionLocked, match="another process"):
        open_log(path)
    log.close()
