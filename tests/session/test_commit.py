"""Many sessions at once share syncs, and nothing is lost with the power."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.errors import SessionError
from runtime.session.entries import Header
from runtime.session.format.codec import encode_batch
from runtime.session.opening import create_log, open_log, read_log
from runtime.session.writing.commit import Committer
from runtime.session.writing.handover import Commit
from runtime.session.writing.journal import Journal, JournalRecord, decode_records, encode_record, journal_folder
from runtime.session.writing.locking import unlock
from runtime.session.writing.log import LogFile

from .disks import BROKEN, FULL, FakeDisk, GatedDisk
from .records import HEADER, chain


def line(number: int) -> bytes:
    return encode_batch(chain(number, number))


class Group:
    """Sessions `0` to `n` whose commits meet: the first is held at its sync until the others wait."""

    def __init__(self, folder: Path, committer: Committer, count: int = 6) -> None:
        self.disk = GatedDisk("first.jsonl")
        self.committer = committer
        self.folder = folder
        self._left: list[Journal] = []
        self.first = self._log("first")
        self.logs = [self._log(str(number)) for number in range(count)]
        self.next = dict.fromkeys([self.first, *self.logs], 1)
        self.disk.syncs.clear()
        self.disk.asked.clear()

    def _log(self, name: str) -> LogFile:
        header = Header(id=name, agent="a", created="")
        self.disk.open.set()
        log = create_log(self.folder / f"{name}.jsonl", header, self.disk)
        self.disk.open.clear()
        return log

    def begin(self, log: LogFile) -> Commit:
        number = self.next[log]
        self.next[log] += 1
        return self.committer.commit(log, line(number))

    def together(self, *logs: LogFile) -> list[Commit]:
        """One commit of each of `logs` (all by default), taken in one go."""
        self.disk.arrived.clear()
        held = self.begin(self.first)
        assert self.disk.arrived.wait(10)
        commits = [self.begin(log) for log in logs or self.logs]
        self.disk.open.set()
        for each in (held, *commits):
            assert each.wait(10)
        self.disk.open.clear()
        assert held.error is None
        return commits

    def leave(self) -> None:
        self.disk.open.set()
        for log in (self.first, *self.logs):
            self.committer.leave(log)
            log.close()

    def die(self) -> None:
        """What the death of the process leaves: no lock is held, nothing was tidied up.

        The committer forgets the files first: its thread lives on here, and their descriptors will be those of others.
        """
        self._left = self.journals()
        with self.committer._working:
            self.committer._loose.clear()
            self.committer._journals.clear()
        for log in (self.first, *self.logs):
            os.close(log.descriptor)
            unlock(log.lock, log.path)
        for journal in self.journals():
            unlock(journal._lock, journal.path)

    def journals(self) -> list[Journal]:
        return self._left or list(self.committer._journals.values())

    def paths(self) -> list[Path]:
        return [log.path for log in self.logs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sessions" / "a"
    made.mkdir(parents=True)
    return made


@contextmanager
def group_in(folder: Path, committer: Committer | None = None) -> Iterator[Group]:
    group = Group(folder, committer or Committer())
    yield group
    group.disk.heal()
    group.leave()


def ids(path: Path) -> list[int]:
    return [entry.id for entry in read_log(path).entries]


def test_a_session_that_is_alone_syncs_its_own_file(folder: Path) -> None:
    """One write and one sync, and no journal is made."""
    with group_in(folder) as group:
        group.disk.open.set()
        for _ in range(3):
            assert group.begin(group.first).wait(10)
        assert group.disk.asked == ["write", "sync"] * 3
        assert set(group.disk.syncs) == {"first.jsonl"}
        assert not journal_folder(group.first.path).exists()


def test_many_at_once_are_one_sync(folder: Path) -> None:
    """Of the journal; each file has its own lines, and is synced by itself when it is closed."""
    with group_in(folder) as group:
        commits = group.together()
        assert [each.error for each in commits] == [None] * 6
        assert len(group.disk.syncs) == 2 and group.disk.syncs[1].endswith(".journal")
        assert all(ids(path) == [1] for path in group.paths())
    assert sorted(group.disk.syncs[2:]) == [f"{number}.jsonl" for number in range(6)]
    assert list(journal_folder(group.first.path).iterdir()) == []


def test_two_at_once_sync_their_own_files(folder: Path) -> None:
    """A journal would cost as much, and their files would have to be synced later."""
    with group_in(folder) as group:
        group.together(*group.logs[:2])
        assert group.disk.syncs == ["first.jsonl", "0.jsonl", "1.jsonl"]


def test_a_file_that_was_just_opened_is_synced_by_itself_first(folder: Path) -> None:
    """What its last writer left may not be on disk: a journal that continued it would leave a hole."""
    with group_in(folder) as group:
        group.logs[0].synced = None
        group.together()
        assert group.disk.syncs[1].endswith(".journal") and group.disk.syncs[2] == "0.jsonl"
        group.together()
        assert len(group.disk.syncs) == 5 and group.disk.syncs[4].endswith(".journal")


def test_a_quiet_moment_syncs_the_files_and_empties_the_journal(folder: Path) -> None:
    """Nobody has to close anything for it."""
    with group_in(folder, Committer(quiet=0.0)) as group:
        group.together()
        assert group.disk.emptied.wait(10)
        (journal,) = group.journals()
        assert journal.path.stat().st_size == 0
        assert sorted(group.disk.syncs[2:]) == [f"{number}.jsonl" for number in range(6)]


def test_a_full_journal_is_emptied_before_it_takes_more(folder: Path) -> None:
    """Its size stays bounded."""
    with group_in(folder, Committer(full=1)) as group:
        for _ in range(3):
            group.together()
        (journal,) = group.journals()
        records = list(decode_records(journal.path.read_bytes()))
        assert len(records) == 6
        assert all(ids(path) == [1, 2, 3] for path in group.paths())


@pytest.mark.parametrize("what", ["write", "short"])
def test_an_error_of_one_file_is_that_files_alone(folder: Path, what: str) -> None:
    """The others are acknowledged; the file is as long as before, and takes the next commit."""
    with group_in(folder) as group:
        group.together()
        group.disk.for_file = lambda name: name == "3.jsonl"
        if what == "write":
            group.disk.refuse = {"write": FULL}
        else:
            group.disk.room = 7
        commits = group.together()
        assert [each.error is None for each in commits] == [True, True, True, False, True, True]
        assert [ids(path) for path in group.paths()] == [[1, 2], [1, 2], [1, 2], [1], [1, 2], [1, 2]]
        group.disk.heal()
        group.next[group.logs[3]] = 2
        assert group.together(group.logs[3])[0].error is None
        assert ids(group.paths()[3]) == [1, 2]


@pytest.mark.parametrize("what", ["write", "sync", "cut"])
def test_without_a_journal_files_are_synced_one_by_one(folder: Path, what: str) -> None:
    """A journal that refuses costs time, not entries; when it works again it is used again."""
    with group_in(folder) as group:
        group.together()
        group.disk.for_file = lambda name: name.endswith(".journal")
        group.disk.refuse = {"write" if what == "cut" else what: BROKEN} | ({"cut": BROKEN} if what == "cut" else {})
        group.disk.syncs.clear()
        assert [each.error for each in group.together()] == [None] * 6
        assert group.disk.syncs == ["first.jsonl", *(f"{number}.jsonl" for number in range(6))]
        group.disk.heal()
        group.disk.syncs.clear()
        assert [each.error for each in group.together()] == [None] * 6
        assert len(group.disk.syncs) == 2
        (journal,) = group.journals()
        assert [record.offset for record in decode_records(journal.path.read_bytes())][-6:] == [
            log.length - len(line(3)) for log in group.logs
        ]


def test_after_a_failed_sync_what_the_journal_holds_is_written_again(folder: Path) -> None:
    """The system may have dropped what it could not write: nothing since the last good sync is trusted."""
    with group_in(folder) as group:
        group.together()
        log = group.logs[0]
        group.disk.for_file = lambda name: name == "0.jsonl"
        group.disk.refuse = {"sync": BROKEN}
        asked = len(group.disk.asked)
        (commit,) = group.together(log)
        assert commit.error is BROKEN
        assert group.disk.asked[asked:][-3:] == ["sync", "cut", "write"]
        assert ids(log.path) == [1] and log.length == log.path.stat().st_size
        group.disk.heal()
        group.next[log] = 2
        assert group.together(log)[0].error is None
        assert ids(log.path) == [1, 2]


def test_what_was_acknowledged_survives_a_power_loss(folder: Path) -> None:
    """All that is left is what was synced: of the files nearly nothing, of the journal everything."""
    group = Group(folder, Committer())
    for _ in range(4):
        group.together()
    group.die()
    for path in (*group.paths(), *(journal.path for journal in group.journals())):
        group.disk.lose(path)
    assert all(ids(path) == [] for path in group.paths())
    log, reading = open_log(group.paths()[0])
    log.close()
    assert [entry.id for entry in reading.entries] == [1, 2, 3, 4]
    assert all(ids(path) == [1, 2, 3, 4] for path in group.paths()), "the others are recovered with it"
    assert [path.name for path in journal_folder(log.path).iterdir()] == ["recovery.lock"]


@pytest.mark.parametrize("damage", ["zeros", "half", "longer"])
def test_a_power_loss_that_leaves_something_else_is_recovered_from(folder: Path, damage: str) -> None:
    """Zeros where lines were, half a line, or lines behind that nobody acknowledged."""
    group = Group(folder, Committer())
    for _ in range(2):
        group.together()
    group.die()
    path = group.paths()[0]
    content = path.read_bytes()
    synced = group.disk.synced[path.stat().st_ino]
    with path.open("r+b") as file:
        if damage == "zeros":
            file.seek(synced)
            file.write(bytes(len(content) - synced))
        elif damage == "half":
            file.truncate(synced + 11)
        else:
            file.truncate(synced + 5)
            file.seek(len(content))
            file.write(b'{"id":3,"par')
    log, reading = open_log(path)
    log.close()
    assert [entry.id for entry in reading.entries] == [1, 2]
    assert path.read_bytes() == content


def test_the_journal_of_a_living_process_is_left_alone(folder: Path) -> None:
    """Its owner has the files open, or has synced them."""
    with group_in(folder) as group:
        group.together()
        (journal,) = group.journals()
        before = journal.path.read_bytes()
        create_log(folder / "other.jsonl", HEADER).close()
        open_log(folder / "other.jsonl")[0].close()
        assert journal.path.read_bytes() == before
        with pytest.raises(SessionError, match="open in this process"):
            open_log(group.paths()[0])


def test_a_session_that_somebody_has_open_keeps_the_journal(folder: Path) -> None:
    """Who has it open recovers it; until then the journal stays for it."""
    group = Group(folder, Committer())
    group.together()
    group.die()
    for path in group.paths():
        group.disk.lose(path)
    from runtime.session.writing.locking import lock

    held = lock(group.paths()[0])
    log, _ = open_log(group.paths()[1])
    log.close()
    assert ids(group.paths()[0]) == [] and ids(group.paths()[1]) == [1]
    unlock(held, group.paths()[0])
    open_log(group.paths()[0])[0].close()
    assert ids(group.paths()[0]) == [1]
    assert [path.name for path in journal_folder(log.path).iterdir()] == ["recovery.lock"]


def test_a_session_that_was_replaced_or_removed_is_left_alone(folder: Path) -> None:
    """Its bytes are not where they were, or nobody wants them."""
    group = Group(folder, Committer())
    group.together()
    group.die()
    replaced, removed = group.paths()[:2]
    content = replaced.read_bytes().replace(b"a", b"b", 1)
    fresh = replaced.with_suffix(".fresh")
    fresh.write_bytes(content)
    fresh.rename(replaced)
    removed.unlink()
    open_log(group.paths()[2])[0].close()
    assert replaced.read_bytes() == content
    assert not removed.exists()
    assert [path.name for path in journal_folder(replaced).iterdir()] == ["recovery.lock"]


def test_a_journal_cannot_name_files_outside(folder: Path) -> None:
    """Whoever can write there could otherwise have any file written."""
    outside = folder.parents[1] / "outside"
    outside.write_bytes(b"mine\n")
    journals = journal_folder(folder / "s.jsonl")
    journals.mkdir()
    record = JournalRecord("../outside", outside.stat().st_ino, 0, b"theirs\n")
    (journals / "x.journal").write_bytes(encode_record(record))
    create_log(folder / "s.jsonl", HEADER).close()
    open_log(folder / "s.jsonl")[0].close()
    assert outside.read_bytes() == b"mine\n"


def test_a_hole_is_refused_and_nothing_is_thrown_away(folder: Path) -> None:
    """A file that lacks more than the journal holds was damaged by something else."""
    group = Group(folder, Committer())
    group.together()
    group.die()
    path = group.paths()[0]
    content = path.read_bytes()
    os.truncate(path, 20)
    with pytest.raises(SessionError, match="it has 20 bytes, and the next that the journal holds begin at"):
        open_log(path)
    assert path.read_bytes() == content[:20]
    assert list(journal_folder(path).glob("*.journal"))
    open_log(group.paths()[1])[0].close()


def test_a_journal_is_read_up_to_what_is_not_whole() -> None:
    """Cut anywhere, or with any byte changed, only whole records count."""
    records = [JournalRecord("a/é.jsonl", 7, 5, b"one\n"), JournalRecord("b.jsonl", 8, 0, b"two\nthree\n")]
    content = b"".join(encode_record(record) for record in records)
    first = len(encode_record(records[0]))
    assert list(decode_records(content)) == records
    for length in range(len(content)):
        assert list(decode_records(content[:length])) == records[: length >= first]
    for place in range(len(content)):
        spoilt = bytearray(content)
        spoilt[place] ^= 1
        assert list(decode_records(bytes(spoilt))) == records[: place >= first]
    assert list(decode_records(content + bytes(50))) == records


def test_a_file_that_cannot_be_synced_keeps_its_journal(folder: Path) -> None:
    """Also when it is closed: the next opening finds there what a power loss took."""
    group = Group(folder, Committer())
    group.together()
    group.disk.for_file = lambda name: name == "0.jsonl"
    group.disk.refuse = {"sync": BROKEN}
    group.leave()
    assert len(list(journal_folder(group.first.path).glob("*.journal"))) == 1
    os.truncate(group.paths()[0], group.disk.synced[group.paths()[0].stat().st_ino])
    log, reading = open_log(group.paths()[0])
    log.close()
    assert [entry.id for entry in reading.entries] == [1]
    assert not list(journal_folder(group.first.path).glob("*.journal"))


def test_a_forked_process_begins_anew(folder: Path) -> None:
    """The committer's thread stays with the parent."""
    with group_in(folder) as group:
        group.together()
        child = os.fork()
        if child == 0:
            try:
                committer = group.committer
                committer.forget()
                log = create_log(folder / "child.jsonl", HEADER, FakeDisk())
                done = committer.commit(log, line(1)).wait(10)
                committer.leave(log)
                os._exit(0 if done else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ids(folder / "child.jsonl") == [1]
        assert [each.error for each in group.together()] == [None] * 6


def test_a_commit_that_was_not_begun_can_be_prevented(folder: Path) -> None:
    """And one that was begun cannot."""
    with group_in(folder) as group:
        held = group.begin(group.first)
        assert group.disk.arrived.wait(10)
        waiting = group.begin(group.logs[0])
        assert waiting.prevent() and not held.prevent()
        group.disk.open.set()
        assert held.wait(10)
        group.next[group.logs[0]] = 1
        assert group.begin(group.logs[0]).wait(10)
        assert ids(group.paths()[0]) == [1]


def test_a_fault_of_ours_reaches_whoever_waits(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And the thread goes on: the next commit works, and nothing of the failed one is in the file."""

    class Fault(RuntimeError):
        """Something that is no answer of the disk."""

    def explode(name: str) -> bool:
        raise Fault(name)

    with group_in(folder) as group:
        group.disk.open.set()
        group.disk.refuse, group.disk.for_file = {"sync": BROKEN}, explode
        failed = group.begin(group.first)
        assert failed.wait(10) and isinstance(failed.error, Fault)
        group.disk.heal()
        group.next[group.first] = 1
        works = group.begin(group.first)
        assert works.wait(10) and works.error is None
        assert ids(group.first.path) == [1]
    assert "committing failed" in caplog.text
