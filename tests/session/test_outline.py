"""The tree as people see it: turns, and what leaves them."""

from __future__ import annotations

from hypothesis import given

from governors.messages import Image
from runtime.channels.tree_lines import tree_lines
from runtime.session.entries import (
    BranchSummaryRecord,
    EditRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    PinRecord,
    RedactRecord,
)
from runtime.session.moving.outline import Branch, Outline, Row, outline
from runtime.session.moving.rewind import before_turn, retry, switch, undo
from runtime.session.moving.turns import opens

from .logs import Log
from .records import patient
from .test_rewind import exchange, go, wanderings


def drawn(log: Log, *, whole: bool = False) -> list[str]:
    return tree_lines(outline(log.tree), whole=whole)


def test_a_conversation_is_a_line_a_turn() -> None:
    """Numbered by its message, with the first line that says something."""
    log = Log()
    exchange(log, "\n\n  what is this?\nSecond line.")
    exchange(log, "and that?")
    assert drawn(log) == ["    #1  what is this?", "    #4  and that?  ← you are here"]
    assert drawn(Log()) == []


def test_what_was_undone_and_tried_again_hangs_where_it_left() -> None:
    """A branch is one line with its turns counted; all of it is shown on demand."""
    log = Log()
    exchange(log, "a", "bad answer")
    go(log, retry(log.tree))
    log.reply("good answer")
    b = exchange(log, "b")
    exchange(log, "c")
    go(log, before_turn(log.tree, b))
    exchange(log, "other b")
    assert drawn(log) == [
        "    #1  a",
        "        ├ #3  again: bad answer",
        "        ├ #6  b  · 2 turns",
        "   #13  other b  ← you are here",
    ]
    assert "        │ #9  c" in drawn(log, whole=True)
    go(log, switch(log.tree, b))
    assert drawn(log)[2:] == ["        ├ #13  other b", "    #6  b", "    #9  c  ← you are here"]


def test_other_beginnings_come_first() -> None:
    log = Log()
    exchange(log, "a")
    go(log, undo(log.tree))
    assert drawn(log) == ["    ├ #1  a"]
    exchange(log, "b")
    assert drawn(log) == ["    ├ #1  a", "    #5  b  ← you are here"]


def test_marks_stand_at_their_turn() -> None:
    """Names, notes, pins, redactions, what is left out, heads, summaries; other entries of the turn by number."""
    log = Log()
    first = exchange(log, "a secret")
    reply = log.tree.leaf
    assert reply is not None
    log.add(LabelRecord(text="beans", target=reply))
    log.add(LabelRecord(text="old", target=first))
    log.add(LabelRecord(text="old", target=first, on=False))
    note = log.add(NoteRecord(text="look here"))
    log.add(NoteRecord(text="a program's", data={"kind": "error"}))
    log.add(PinRecord(target=reply))
    log.add(PinRecord(target=first))
    log.add(PinRecord(target=first, on=False))
    log.add(EditRecord(action="omit", target=reply, cause="user"))
    log.add(RedactRecord(target=first))
    second = exchange(log, "b")
    log.add(BranchSummaryRecord(text="t", tip=7))
    head = log.head(second, summary="They said a.")
    assert drawn(log) == [
        f"    #1  [redacted]  [beans #{reply}, note #{note}: look here, pinned #{reply}, left out #{reply}]",
        "        ─── the model sees from here on; a summary stands for what is above ───",
        f"{'#' + str(second):>6}  b  [head #{head}, told of the branch to #7]  ← you are here",
    ]


def test_a_long_session_is_folded_but_for_its_ends_and_what_is_marked() -> None:
    log = Log()
    numbers = [exchange(log, f"question {number}") for number in range(60)]
    log.add(LabelRecord(text="here it was", target=numbers[20]))
    lines = drawn(log)
    assert len(lines) == 1 + 1 + 1 + 1 + 12
    assert "… 19 turns" in lines[1].replace("  ", " ")
    assert "question 20  [here it was]" in lines[2]
    assert "27 turns (/tree all shows them)" in lines[3]
    assert len(drawn(log, whole=True)) == 60


def test_a_message_without_words() -> None:
    """What it holds is said instead."""
    log = Log()
    log.add(MessageRecord(role="user", content=(Image("image/png", "aGk="),)))
    log.reply("ok")
    log.add(MessageRecord(role="user", content=()))
    assert [row.text for row in outline(log.tree).rows] == ["(1 picture)", "(nothing)"]


def rows_of(shown: Outline) -> list[Row]:
    found: list[Row] = []

    def take(rows: tuple[Row, ...]) -> None:
        for row in rows:
            found.append(row)
            for branch in row.branches:
                take(branch.rows)

    branches: tuple[Branch, ...] = shown.beginnings
    for branch in branches:
        take(branch.rows)
    take(shown.rows)
    return found


@given(wanderings())
@patient
def test_every_turn_is_shown_once(log: Log) -> None:
    """However one wandered: each message that opened a turn has one row, and the leaf is in the last of its branch."""
    rows = rows_of(outline(log.tree))
    numbers = [row.entry for row in rows if not row.again]
    entries = log.tree.entries
    opened = [each.id for each in entries if opens(each, None if each.parent is None else log.tree.get(each.parent))]
    assert sorted(numbers) == opened
    assert len({row.entry for row in rows}) == len(rows)
    assert [row.here for row in outline(log.tree).rows][:-1].count(True) == 0
    assert len(drawn(log, whole=True)) >= len(rows)
