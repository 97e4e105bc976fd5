"""The tree, its leaf, and where the records of a batch hang."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Text, ToolCall
from runtime.session.entries import (
    Baseline,
    Entry,
    HeadRecord,
    InboxRecord,
    IntentRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    Record,
    ResultRecord,
    SettingRecord,
    UnknownRecord,
)
from runtime.session.format.reading import read_session
from runtime.session.placing import place
from runtime.session.tree import Tree

from .records import AT, file_of, patient, user


def reply(*tools: str) -> MessageRecord:
    calls = tuple(ToolCall(f"call_{number}", tool) for number, tool in enumerate(tools))
    return MessageRecord(role="assistant", content=(Text("so"), *calls), stop="tool_use" if tools else "stop")


def result(entry: int, number: int = 0) -> ResultRecord:
    return ResultRecord(call=(entry, number), tool="x", content=(Text("done"),))


def grow(tree: Tree, *records: Record) -> tuple[Entry, ...]:
    """Append one batch to the tree."""
    batch = place(tree, records, AT)
    for entry in batch:
        tree.add(entry)
    return batch


def branch(tree: Tree) -> list[int]:
    return [entry.id for entry in tree.branch()]


def grown(*records: Record) -> Tree:
    """A tree of `records`, each appended by itself."""
    tree = Tree()
    for record in records:
        grow(tree, record)
    return tree


small_records = st.one_of(
    st.just(user("hi")),
    st.just(reply("x", "y")),
    st.builds(result, st.integers(1, 12), st.integers(0, 1)),
    st.builds(LeafRecord, leaf=st.none() | st.integers(1, 14)),
    st.just(NoteRecord(text="n")),
    st.just(InboxRecord(state="queued")),
    st.just(SettingRecord(name="model", value="m")),
    st.just(UnknownRecord(raw={"type": "weather"})),
)
batch_lists = st.lists(st.lists(small_records, min_size=1, max_size=4), max_size=8)


@patient
@given(batch_lists)
def test_replay_equals_live(batches: list[list[Record]]) -> None:
    """Reading the file back gives the same leaf, branch and entries as living through it."""
    tree, written = Tree(), []
    for records in batches:
        written.append(grow(tree, *records))
    again = Tree(read_session(file_of(*written)).entries)
    assert (again.leaf, again.entries, again.next_id) == (tree.leaf, tree.entries, tree.next_id)
    assert list(again.branch()) == list(tree.branch()) == tree.branch_to(tree.leaf)


@patient
@given(batch_lists)
def test_a_batch_is_placed_as_its_records_one_by_one(batches: list[list[Record]]) -> None:
    """What a batch looks like does not depend on how many records share a write."""
    together, alone = Tree(), Tree()
    for records in batches:
        grow(together, *records)
        for record in records:
            grow(alone, record)
    assert together.entries == alone.entries and together.leaf == alone.leaf


@patient
@given(batch_lists)
def test_parents_are_older_and_exist(batches: list[list[Record]]) -> None:
    """So that every branch ends at a root."""
    tree = Tree()
    for records in batches:
        grow(tree, *records)
    assert all(entry.parent is None or entry.parent in range(1, entry.id) for entry in tree.entries)


def test_entries_beside_the_branch_do_not_move_the_leaf() -> None:
    """Notes, the inbox and a leaf that stays hang on the tree; the conversation goes past them."""
    tree = grown(user("a"), NoteRecord(text="n"), InboxRecord(state="queued"), user("b"))
    assert branch(tree) == [1, 4]
    assert tree.entries[1].parent == 1


def test_a_leaf_entry_moves_the_leaf() -> None:
    """What comes next hangs there; the branch that was left stays."""
    tree = grown(user("a"), reply(), LeafRecord(leaf=1), user("b"))
    assert branch(tree) == [1, 4]
    assert len(tree) == 4


def test_a_leaf_before_the_first_entry_begins_anew() -> None:
    """None is a place too."""
    tree = grown(user("a"), LeafRecord(leaf=None), user("b"))
    assert branch(tree) == [3]


def test_a_leaf_entry_to_a_missing_id_is_ignored() -> None:
    """The conversation goes on where it was."""
    tree = grown(user("a"), LeafRecord(leaf=99), LeafRecord(leaf=3), user("b"))
    assert branch(tree) == [1, 4]


def test_a_batch_goes_on_from_the_leaf_that_it_moves() -> None:
    """Undo and what follows it may be one batch."""
    tree = grown(user("a"), reply())
    grow(tree, LeafRecord(leaf=1), user("b"), reply())
    assert branch(tree) == [1, 4, 5]


def test_a_head_that_keeps_no_step_resumes_at_itself() -> None:
    """Only the tree knows its id."""
    tree = grown(user("a"), HeadRecord(start=1, resume=0, baseline=Baseline(sections={}), cause="snip", generation=1))
    head = tree.entries[-1].record
    assert isinstance(head, HeadRecord) and head.resume == 2


def test_rule_3_results_hang_on_the_leaf_when_its_branch_holds_the_call() -> None:
    """Results of one reply one after another, and whatever came between."""
    tree = grown(user("a"), reply("x", "y"), IntentRecord(call=(2, 0), tool="x"), result(2, 1), user("b"), result(2, 0))
    assert branch(tree) == [1, 2, 3, 4, 5, 6]


def test_rule_3_a_result_whose_leaf_has_moved_hangs_on_the_branch_of_its_call() -> None:
    """The leaf does not move; both results of the reply stand one after another on the branch that was left."""
    tree = grown(user("a"), reply("x", "y"), IntentRecord(call=(2, 0), tool="x"), LeafRecord(leaf=1), user("b"))
    grow(tree, result(2, 0), result(2, 1))
    grow(tree, reply())
    assert branch(tree) == [1, 5, 8]
    assert [entry.id for entry in tree.branch_to(7)] == [1, 2, 3, 6, 7]


def test_rule_3_a_result_hangs_on_the_newest_branch_that_holds_its_call() -> None:
    """Of two branches that went on from the reply, the one that was written to last."""
    tree = grown(user("a"), reply("x"), user("old"), LeafRecord(leaf=2), user("new"), LeafRecord(leaf=1), user("b"))
    (entry,) = grow(tree, result(2))
    assert entry.parent == 5 and tree.leaf == 7


def test_a_result_of_no_known_reply_hangs_on_the_leaf() -> None:
    """It is recorded, whatever it answers."""
    tree = grown(user("a"), result(77))
    assert branch(tree) == [1, 2]


def test_a_note_on_a_left_branch_is_not_its_tip() -> None:
    """Notes carry nothing, results neither hang on them."""
    tree = grown(user("a"), reply("x"), NoteRecord(text="n"), LeafRecord(leaf=1), user("b"))
    (entry,) = grow(tree, result(2))
    assert entry.parent == 2


def test_unknown_entries_beside_the_branch_do_not_end_it() -> None:
    """A newer version may hang a type beside the branch that this version takes for a part of it."""
    entries = (
        Entry(1, None, AT, user("a")),
        Entry(2, 1, AT, UnknownRecord(raw={"type": "label"})),
        Entry(3, 1, AT, user("b")),
        Entry(4, 3, AT, reply()),
    )
    assert branch(Tree(entries)) == [1, 3, 4]


def calls_for(count: int) -> int:
    """How many calls it takes to grow, read back and fork a session of `count` entries, each reply's result late."""
    made = 0

    def count_call(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count_call)
    tree = grown(user("a"))
    written = []
    for _ in range(count // 8):
        entry = grow(tree, reply("x"))[0]
        written += [grow(tree, result(entry.id)), grow(tree, user("u"), NoteRecord(text="n"))]
        grow(tree, LeafRecord(leaf=entry.parent), user("fork"))
        grow(tree, result(entry.id))
        tree.branch()[-1]
    again = Tree(tree.entries)
    sys.setprofile(None)
    assert again.leaf == tree.leaf
    return made


def test_twenty_thousand_entries_take_linear_time() -> None:
    """Four times the entries take about four times as many calls, forks and late results included."""
    small, large = calls_for(5_000), calls_for(20_000)
    assert large < 5 * small, f"5,000 entries took {small:,} calls, 20,000 took {large:,}"
