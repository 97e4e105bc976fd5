"""Reading a session file, whatever happened to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.session.entries import Entry, IntentRecord, LeafRecord, NoteRecord, Record, SettingRecord
from runtime.session.format.codec import BadLine, encode_entry, encode_header
from runtime.session.format.reading import Reading, read_session
from runtime.session.opening import open_log
from runtime.session.tree import Tree

from .records import AT, HEADER, batches, chain, file_of, patient, user

HEAD = encode_header(HEADER)
short = st.builds(user, st.sampled_from(["a", "é🙂", "x\ny"])) | st.builds(NoteRecord, text=st.text(max_size=3))


def ids(reading: Reading) -> list[int]:
    return [entry.id for entry in reading.entries]


def reopened(path: Path, data: bytes) -> Reading:
    """What the file holds after it was opened for writing, appended to, and read again."""
    path.write_bytes(data)
    log, reading = open_log(path)
    newest = max([entry.id for entry in reading.entries], default=0)
    added = log.append(chain(newest + 1, newest + 2, newest or None))
    log.close()
    again = read_session(path.read_bytes())
    assert again.entries == (*reading.entries, *added)
    assert again.torn is None and not again.unterminated
    return reading


@patient
@given(batches())
def test_valid_files_read_back_whole(written: list[tuple[Entry, ...]]) -> None:
    """Nothing is found where nothing is wrong."""
    reading = read_session(file_of(*written))
    assert reading.entries == tuple(entry for batch in written for entry in batch)
    assert reading.header == HEADER
    assert (reading.broken, reading.torn, reading.unterminated) == ((), None, False)


@settings(patient, max_examples=25)  # each tries every byte
@given(batches(short))
def test_every_prefix_of_the_bytes_reads_back_to_whole_batches(written: list[tuple[Entry, ...]]) -> None:
    """A write cut at any byte leaves the batches before it and nothing of its own."""
    data = file_of(*written)
    ends = [len(file_of(*written[:count])) for count in range(len(written) + 1)]
    for cut in range(len(HEAD) - 1, len(data) + 1):
        reading = read_session(data[:cut])
        whole = sum(end <= cut + 1 for end in ends) - 1  # one byte less: only the newline is missing
        assert reading.entries == tuple(entry for batch in written[:whole] for entry in batch)
        assert not reading.broken
        assert reading.good_length + len(reading.torn.content if reading.torn else b"") == cut
        assert reading.unterminated == (cut + 1 in ends)
        assert (reading.torn is None) == (cut in ends or cut + 1 in ends)


def test_every_prefix_can_be_appended_to(tmp_path: Path) -> None:
    """The fault of the glued line: whatever tail there was, the next append is a line of its own."""
    data = file_of(chain(1, 1), chain(2, 3, 1), (Entry(4, 3, AT, user("🙂é")),))
    for cut in range(len(HEAD) - 1, len(data) + 1):
        reopened(tmp_path / f"{cut}.jsonl", data[:cut])


@pytest.mark.parametrize("cut", range(1, len(HEAD) - 1))
def test_half_a_header_is_no_session(cut: int) -> None:
    """Without its header a file tells nothing."""
    with pytest.raises(BadLine):
        read_session(HEAD[:cut])


def test_an_empty_file_is_no_session() -> None:
    """It says so."""
    with pytest.raises(BadLine, match="empty"):
        read_session(b"")


@pytest.mark.parametrize(
    "tail",
    [
        encode_entry(Entry(3, 2, AT, user("é")))[:-4],  # mid-UTF-8: half of a two-byte letter
        encode_entry(Entry(3, 2, AT, user("text")))[:-9],
        b"\0" * 300,
        b"{",
        b"nonsense",
        b'{"id":3}',
    ],
)
def test_torn_tails_are_set_aside(tmp_path: Path, tail: bytes) -> None:
    """The tail moves beside the file, the file ends with its last whole line."""
    data = file_of(chain(1, 2))
    reading = reopened(tmp_path / "s.jsonl", data + tail)
    assert ids(reading) == [1, 2]
    assert reading.torn is not None
    assert (reading.torn.line, reading.torn.offset, reading.torn.content) == (4, len(data), tail)
    assert (tmp_path / f"s.jsonl.torn-{len(data)}").read_bytes() == tail


def test_a_whole_entry_without_newline_is_kept(tmp_path: Path) -> None:
    """An editor that takes the last newline takes no entry."""
    reading = reopened(tmp_path / "s.jsonl", file_of(chain(1, 2))[:-1])
    assert ids(reading) == [1, 2] and reading.unterminated and reading.torn is None


@pytest.mark.parametrize("blank", [b"  ", b"\n\n", b"\r\n", b"\t \n "])
def test_blank_tails_do_no_harm(tmp_path: Path, blank: bytes) -> None:
    """Blank lines are nothing, with and without a newline."""
    reading = reopened(tmp_path / "s.jsonl", file_of(chain(1, 2)) + blank)
    assert ids(reading) == [1, 2] and not reading.broken and reading.torn is None


def test_a_blank_tail_does_not_tear_the_broken_line_before_it(tmp_path: Path) -> None:
    """A complete line stays where it is, also when blanks follow it."""
    data = file_of(chain(1, 2)) + b"broken\n  "
    reading = reopened(tmp_path / "s.jsonl", data)
    assert reading.torn is None and len(reading.broken) == 1
    assert (tmp_path / "s.jsonl").read_bytes().startswith(data)


def test_files_with_windows_line_ends_are_read() -> None:
    """Another system's editor changes the line ends and nothing else."""
    assert ids(read_session(file_of(chain(1, 3)).replace(b"\n", b"\r\n"))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"\xff\xfe\n", "not UTF-8"),
        (b"\0" * 500 + b"\n", "not JSON"),
        (b'{"id":3,"parent":2,"at":"","type":"message","role":"user","content":"text"}\n', "content"),
        (b"[]\n", "list"),
        (encode_entry(Entry(2, 1, AT, user("double"))), "id 2 does not follow 2"),
        (encode_entry(Entry(1, None, AT, user("older"))), "id 1 does not follow 2"),
    ],
)
def test_broken_lines_in_the_middle_are_reported_and_the_rest_loads(tmp_path: Path, bad: bytes, says: str) -> None:
    """Each is named by line and offset, copied beside the file and left where it is."""
    before, after = file_of(chain(1, 2)), b"".join(encode_entry(entry) for entry in chain(5, 6, 2))
    data = before + bad + after
    reading = reopened(tmp_path / "s.jsonl", data)
    assert ids(reading) == [1, 2, 5, 6]
    (finding,) = reading.broken
    assert (finding.line, finding.offset, finding.content) == (4, len(before), bad[:-1])
    assert says in finding.problem and "line 4" in str(finding)
    assert (tmp_path / f"s.jsonl.broken-{len(before)}").read_bytes() == bad[:-1]
    assert (tmp_path / "s.jsonl").read_bytes().startswith(data)


def test_opening_twice_copies_a_broken_line_once(tmp_path: Path) -> None:
    """A file that stays broken does not fill the folder."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(file_of(chain(1, 1)) + b"broken\n")
    for _ in range(3):
        open_log(path)[0].close()
    assert len(list(tmp_path.glob("*.broken-*"))) == 1


def test_another_tail_torn_at_the_same_place_is_kept_too(tmp_path: Path) -> None:
    """The second crash does not overwrite what the first left."""
    path = tmp_path / "s.jsonl"
    for tail in (b"one", b"two"):
        path.write_bytes(file_of(chain(1, 1)) + tail)
        open_log(path)[0].close()
    assert {side.read_bytes() for side in tmp_path.glob("*.torn-*")} == {b"one", b"two"}


def lines_of(*batches: tuple[Entry, ...]) -> list[bytes]:
    return file_of(*batches).splitlines(keepends=True)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_torn_batches_go_whole(tmp_path: Path, kept: int) -> None:
    """Whole lines of a batch whose last never came were never acknowledged."""
    lines = lines_of(chain(1, 2), chain(3, 6, 2))
    reading = reopened(tmp_path / "s.jsonl", b"".join(lines[: 3 + kept]))
    assert ids(reading) == [1, 2]
    assert reading.torn is not None and reading.torn.line == 4
    assert reading.torn.content == b"".join(lines[3 : 3 + kept])


@pytest.mark.parametrize("tail", [b"", b'{"id":6,"par', b"\0\0\0"])
def test_a_torn_batch_goes_whole_although_a_line_in_its_middle_is_broken(tmp_path: Path, tail: bytes) -> None:
    """The broken line does not save the lines before it."""
    lines = lines_of(chain(1, 2), chain(3, 7, 2))
    lines[4] = b"broken\n"
    reading = reopened(tmp_path / "s.jsonl", b"".join(lines[:6]) + tail)
    assert ids(reading) == [1, 2]
    assert reading.torn is not None and reading.torn.line == 4 and not reading.broken


@pytest.mark.parametrize("spoilt", [3, 4, 5])
def test_a_broken_line_in_a_whole_batch_takes_nothing_else(tmp_path: Path, spoilt: int) -> None:
    """A batch that came whole was acknowledged: a line that broke later is reported, the others load."""
    lines = lines_of(chain(1, 2), chain(3, 5, 2))
    lines[spoilt] = b"broken\n"
    reading = reopened(tmp_path / "s.jsonl", b"".join(lines))
    assert ids(reading) == [each for each in (1, 2, 3, 4, 5) if each != spoilt]
    assert reading.torn is None and reading.broken[0].line == spoilt + 1


def test_a_half_line_after_a_spoilt_batch_goes_alone(tmp_path: Path) -> None:
    """The lines of the batch came; only the write after it did not."""
    lines = lines_of(chain(1, 2), chain(3, 5, 2))
    reading = reopened(tmp_path / "s.jsonl", b"".join([*lines[:-1], b"broken\n", b'{"id":6']))
    assert ids(reading) == [1, 2, 3, 4]
    assert reading.torn is not None and reading.torn.content == b'{"id":6'


def tree_without(lost: int, *records: tuple[int | None, Record]) -> Tree:
    """The tree of a file whose entry `lost` is broken; `records` are (parent, record), ids from 1."""
    entries = [Entry(number, parent, AT, record) for number, (parent, record) in enumerate(records, 1)]
    lines = [b"broken\n" if entry.id == lost else encode_entry(entry) for entry in entries]
    return Tree(read_session(HEAD + b"".join(lines)).entries)


def branch_ids(tree: Tree) -> list[int]:
    return [entry.id for entry in tree.branch()]


def test_an_entry_whose_parent_is_lost_hangs_on_the_nearest_earlier_one() -> None:
    """And is reported with the place that it has now."""
    data = file_of((Entry(1, None, AT, user("a")),), (Entry(3, 2, AT, user("c")),))
    reading = read_session(data)
    assert [(entry.id, entry.parent) for entry in reading.entries] == [(1, None), (3, 1)]
    assert "its parent 2 is missing; it hangs on entry 1 now" in str(reading.broken[0])


def test_an_entry_whose_parent_is_lost_never_hangs_beside_the_branch() -> None:
    """A note does not carry the conversation: what came after a lost line would be out of sight."""
    tree = tree_without(3, (None, user("a")), (1, NoteRecord(text="n")), (1, user("lost")), (3, user("d")))
    assert branch_ids(tree) == [1, 4]


def test_an_entry_whose_parent_is_lost_stays_on_its_branch_after_an_undo() -> None:
    """What was the leaf when the lost line was written counts, not what stands before it in the file."""
    tree = tree_without(
        4, (None, user("a")), (1, user("undone")), (2, LeafRecord(leaf=1)), (1, user("lost")), (4, user("e"))
    )
    assert branch_ids(tree) == [1, 5]


def test_a_lost_leaf_line_does_not_hide_what_followed_it() -> None:
    """The conversation went on from an older entry; it is the current branch all the same."""
    tree = tree_without(
        3, (None, user("a")), (1, user("undone")), (2, LeafRecord(leaf=1)), (1, user("d")), (4, user("e"))
    )
    assert branch_ids(tree) == [1, 4, 5]


def test_a_lost_first_line_leaves_a_root() -> None:
    """Nothing is nearer than the root."""
    tree = tree_without(1, (None, user("lost")), (1, user("b")), (2, SettingRecord(name="x", value=1)))
    assert branch_ids(tree) == [2, 3]


@patient
@given(batches(short | st.builds(IntentRecord, call=st.just((1, 0)), tool=st.just("x"))), st.data())
def test_spoiling_any_lines_loses_only_those(written: list[tuple[Entry, ...]], data: st.DataObject) -> None:
    """Whatever complete lines are broken, all others load, with parents that exist."""
    lines = lines_of(*written)
    spoilt = data.draw(st.sets(st.integers(1, max(len(lines) - 1, 1))))
    kinds = [b"\0\0\0\n", b"\xff\n", b"{}\n", b'{"id":1,"parent":null,"at":"","type":"note"}\n']
    lines = [data.draw(st.sampled_from(kinds)) if number in spoilt else line for number, line in enumerate(lines)]
    reading = read_session(b"".join(lines))
    assert ids(reading) == [number for number in range(1, len(lines)) if number not in spoilt]
    known = set(ids(reading))
    assert all(entry.parent is None or entry.parent in known for entry in reading.entries)
    assert reading.torn is None
    assert {finding.line for finding in reading.broken if finding.content} == {number + 1 for number in spoilt} - (
        {2} if len(lines) == 1 else set()
    )


def line(number: int, text: str = "text", parent: int | None = None) -> bytes:
    """A line without its newline."""
    return encode_entry(Entry(number, parent or number - 1 or None, AT, user(text)))[:-1]


def test_two_entries_on_one_line_are_both_read(tmp_path: Path) -> None:
    """The fault of the welded line: a newline was lost, and nothing else is."""
    data = file_of(chain(1, 2)) + line(3) + line(4) + b"\n" + line(5) + b"\n"
    reading = reopened(tmp_path / "s.jsonl", data)
    assert ids(reading) == [1, 2, 3, 4, 5]
    (finding,) = reading.broken
    assert (finding.line, finding.offset) == (4, data.index(line(4))) and "both are read" in finding.problem
    assert [data[offset : offset + size] for offset, size in reading.places] == [
        *(each for each in data.splitlines()[1:3]),
        line(3),
        line(4),
        line(5),
    ]


@pytest.mark.parametrize(
    ("damaged", "lost"),
    [
        (b"\0" * 300 + line(3), b"\0" * 300),
        (line(3) + b"\0" * 300, b"\0" * 300),
        (line(9)[:25] + line(3), line(9)[:25]),
        (line(3) + line(9)[:25], line(9)[:25]),
        (line(3) + b"}", None),
        (b"\xff\xfe" + line(3), b"\xff\xfe"),
        (b"garbage " + line(3) + line(4) + b"\0\0", None),
    ],
)
def test_what_is_whole_on_a_damaged_line_is_read(tmp_path: Path, damaged: bytes, lost: bytes | None) -> None:
    """NULs, halves of lines and garbage on either side are kept beside the file, each by its offset."""
    data = file_of(chain(1, 2)) + damaged + b"\n" + line(5, parent=2) + b"\n"
    reading = reopened(tmp_path / "s.jsonl", data)
    found = ids(reading)
    assert found[:2] == [1, 2] and found[-1] == 5
    kept = b"".join(data[offset : offset + size] for offset, size in reading.places)
    broken = b"".join(finding.content for finding in reading.broken)
    assert len(kept) + len(broken) == len(data.replace(b"\n", b"")) - len(HEAD) + 1, "every byte is somewhere"
    if lost is not None:
        assert found == [1, 2, 3, 5] and broken == lost
        (side,) = tmp_path.glob("*.broken-*")
        assert side.read_bytes() == lost
    assert all(finding.line == 4 for finding in reading.broken)


def test_an_object_inside_a_broken_entry_is_no_entry() -> None:
    """An extension may keep anything in its data."""
    inner = line(3).decode()
    bad = f'{{"id":3,"parent":2,"at":"now","type":"extension","name":5,"data":{inner}}}\n'.encode()
    assert ids(read_session(file_of(chain(1, 2)) + bad)) == [1, 2]


def test_a_line_of_a_thousand_beginnings_takes_no_time() -> None:
    """Somebody may have made the file to be slow."""
    bad = b'{"id":' * 200_000 + b"\n"
    reading = read_session(file_of(chain(1, 2)) + bad + line(3) + b"\n")
    assert ids(reading) == [1, 2, 3] and len(reading.broken) == 1


def test_an_id_that_runs_ahead_does_not_hide_what_follows(tmp_path: Path) -> None:
    """The lines after it go on with the old sequence: it is the broken one, and is reported with its line."""
    lines = [line(1), line(2), line(900, parent=2), line(3, parent=2), line(4), line(5)]
    reading = reopened(tmp_path / "s.jsonl", HEAD + b"\n".join(lines) + b"\n")
    assert ids(reading) == [1, 2, 3, 4, 5]
    (finding,) = reading.broken
    assert (finding.line, finding.content) == (4, lines[2])
    assert finding.problem == "its id 900 runs ahead of 3, which comes after it"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([1, 2, 3, 900, 4], [1, 2, 3, 4]),
        ([900, 1, 2, 3], [1, 2, 3]),
        ([1, 2, 900, 901, 3, 4, 5], [1, 2, 3, 4, 5]),
        ([1, 2, 500, 501, 502], [1, 2, 500, 501, 502]),
        ([1, 2, 500, 501, 502, 3], [1, 2, 500, 501, 502]),
        ([1, 900, 2, 800, 3, 700, 4], [1, 2, 3, 4]),
        ([1, 2, 3, 2, 3, 4], [1, 2, 3, 4]),
        ([5, 4, 3], [3]),
    ],
)
def test_as_few_entries_as_possible_are_out_of_order(written: list[int], kept: list[int]) -> None:
    """Gaps are legal (a fork has them); of two entries with one id the first stays."""
    entries = [Entry(number, None, AT, user(f"{number} at {place}")) for place, number in enumerate(written)]
    reading = read_session(HEAD + b"".join(encode_entry(entry) for entry in entries))
    assert ids(reading) == kept
    assert [entry.record for entry in reading.entries] == [
        next(entry.record for entry in entries if entry.id == number) for number in kept
    ]
    assert len(reading.broken) == len(written) - len(kept)


@patient
@given(st.lists(st.integers(1, 30), max_size=40))
def test_the_longest_rising_sequence_is_kept(numbers: list[int]) -> None:
    """By comparison with trying all of them."""
    best: list[int] = []
    for end in numbers:
        place = sum(each < end for each in best)
        best[place : place + 1] = [end]
    entries = [Entry(number, None, AT, user("x")) for number in numbers]
    reading = read_session(HEAD + b"".join(encode_entry(entry) for entry in entries))
    assert len(reading.entries) == len(best)
    assert ids(reading) == sorted(set(ids(reading)))


def test_windows_line_ends_are_told_once() -> None:
    """Not once a line."""
    (finding,) = read_session(file_of(chain(1, 3)).replace(b"\n", b"\r\n")).broken
    assert finding.line == 2 and finding.content == b"" and "CR LF" in finding.problem and "2 lines" in finding.problem


def test_a_byte_order_mark_is_told_and_does_no_harm(tmp_path: Path) -> None:
    """Some editors put one before the header."""
    reading = reopened(tmp_path / "s.jsonl", b"\xef\xbb\xbf" + file_of(chain(1, 2)))
    assert ids(reading) == [1, 2] and reading.header == HEADER
    (finding,) = reading.broken
    assert (finding.line, finding.offset) == (1, 0) and "byte order mark" in finding.problem


def test_an_entry_on_the_headers_line_is_read() -> None:
    """The first newline may be lost as any other."""
    reading = read_session(HEAD[:-1] + line(1) + b"\n" + line(2) + b"\n")
    assert ids(reading) == [1, 2] and reading.header == HEADER
    assert [finding.line for finding in reading.broken] == [1]


def test_a_whole_entry_before_a_half_one_on_the_last_line_is_kept(tmp_path: Path) -> None:
    """Only what was never acknowledged is cut off."""
    data = file_of(chain(1, 2)) + line(3) + line(4)[:30]
    reading = reopened(tmp_path / "s.jsonl", data)
    assert ids(reading) == [1, 2, 3]
    assert reading.torn is not None and reading.torn.content == line(4)[:30] and reading.unterminated
