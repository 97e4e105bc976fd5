"""What a hook changed of a body: operations that make it again."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.hooks.payload import changed, changes_between
from runtime.session.entries import Entry, PayloadChange, RequestRecord
from runtime.session.format.codec import decode_entry, encode_entry

LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5]) | st.text("ab/~0é", max_size=3)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~01", max_size=2), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(st.text("abc/~", max_size=2), VALUES, max_size=4)


@given(BODIES, BODIES)
def test_the_changes_make_the_other_body(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whatever both hold; `1`, `1.0` and `true` are three values; the old body stays as it was."""
    kept = copy.deepcopy(before)
    changes = changes_between("h", before, after)
    assert canonical(changed(before, changes)) == canonical(after)
    assert canonical(before) == canonical(kept)
    assert bool(changes) == (canonical(before) != canonical(after))


@given(BODIES, BODIES)
def test_they_come_back_from_the_log(before: dict[str, Any], after: dict[str, Any]) -> None:
    changes = changes_between("h", before, after)
    record = RequestRecord(
        purpose="turn", provider="p", model="m", wire="w", prefix="", forecast=1, budget=2, blocks=0, changes=changes
    )
    read, _ = decode_entry(encode_entry(Entry(1, None, "2026-11-30T18:00:00Z", record)))
    assert isinstance(read.record, RequestRecord)
    assert json.dumps(changed(before, read.record.changes)) == json.dumps(changed(before, changes))


def test_an_item_in_the_middle_is_one_operation() -> None:
    """Also in a long list: what is alike at both ends is left alone."""
    before = {"messages": [{"n": number} for number in range(100)]}
    after = {"messages": [*before["messages"][:50], {"n": "new"}, *before["messages"][50:]]}
    assert changes_between("h", before, after) == (
        PayloadChange(hook="h", op="add", path="/messages/50", value={"n": "new"}),
    )
    (change,) = changes_between("h", after, before)
    assert (change.op, change.path) == ("remove", "/messages/50")


@pytest.mark.parametrize("path", ["/a/b", "/list/7", "/list/x", "/text/0", ""])
def test_an_operation_that_does_not_fit_is_an_error(path: str) -> None:
    change = PayloadChange(hook="h", op="remove", path=path)
    with pytest.raises(ValueError, match="body"):
        changed({"list": [1], "text": "abc"}, [change])


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
