"""Records that need not be decoded to know what their lines hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Image, Text, Usage
from runtime.session.entries import (
    Blob,
    Entry,
    IntentRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    Record,
    ResultRecord,
    SettingRecord,
    UnknownRecord,
)
from runtime.session.format.codec import decode_batch, encode_batch
from runtime.session.format.faithful import reads_back

from .records import AT, KNOWN, patient, user

odd: st.SearchStrategy[Any] = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(),
    st.none(),
    st.binary(max_size=2),
    st.just(("a",)),
    st.just([1]),
)


@patient
@given(st.one_of(*KNOWN.values()))
def test_what_reads_back_comes_back_equal(record: Record) -> None:
    """Whatever record it is: to the last type, so that 1 is not 1.0 or true."""
    if reads_back(record):
        (entry,) = decode_batch(encode_batch((Entry(1, None, AT, record),)))
        assert repr(entry.record) == repr(record)


@patient
@given(odd, odd, odd)
def test_wrong_values_never_pass_for_right_ones(one: Any, two: Any, three: Any) -> None:
    """Where a value is of another type than declared, decoding decides."""
    records = (
        NoteRecord(text=one, data=two),
        SettingRecord(name=one, value=two),
        OutcomeRecord(request=one, stop=two, cost=three),
        MessageRecord(role="user", content=(Text(one),), inbox=two, steered=three),
        IntentRecord(call=(one, two), tool=three),
        ResultRecord(call=(1, 2), tool="x", content=(Image("image/png", "", one, two),), seconds=three),
    )
    for record in records:
        if reads_back(record):
            (entry,) = decode_batch(encode_batch((Entry(1, None, AT, record),)))
            assert repr(entry.record) == repr(record)


@pytest.mark.parametrize(
    "record",
    [
        user("half \ud83d"),
        user("x" * 65_536),
        MessageRecord(role="user", content=(Image("image/png", "x" * 16_384),)),
        MessageRecord(role="user", content=[Text("a list")]),  # type: ignore[arg-type]  # wrong on purpose
        OutcomeRecord(request=1, stop="stop", cost=float("nan")),
        OutcomeRecord(request=1, stop="stop", usage=Usage(True)),
        OutcomeRecord(request=2**70, stop="stop"),
        NoteRecord(text="n", data={"numbers": [1]}),
        ResultRecord(call=(1, 0), tool="x", content=(), whole="text"),
        ResultRecord(call=(1, 0), tool="x", content=(), whole=Blob("0" * 64, 1)),
        UnknownRecord(raw={"type": "weather"}),
    ],
)
def test_what_may_come_back_otherwise_is_decoded(record: Record) -> None:
    """What JSON changes, what goes to a file of its own, and what its owner could change later."""
    assert not reads_back(record)


@pytest.mark.parametrize(
    "record",
    [user("é🙂"), IntentRecord(call=(1, 0), tool="x"), OutcomeRecord(request=1, stop="stop", usage=Usage(1), cost=0.1)],
)
def test_what_is_written_all_the_time_need_not_be_decoded(record: Record) -> None:
    """Otherwise the whole check were for nothing."""
    assert reads_back(record)
    assert isinstance(getattr(record, "data", {}), Mapping)
