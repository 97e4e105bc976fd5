"""Tool calls out of the streams of many servers."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import ToolCall
from runtime.providers.assemble_chat import ChatAssembler
from runtime.providers.base import CallPiece, TextPiece, ThinkingPiece

from .chat_chunks import MODEL, A, B, C, call, calls, delta, fold, whole


def test_deltas_by_index_are_joined() -> None:
    """The protocol as OpenAI speaks it: id and name once, then pieces."""
    assert calls(
        [call("", name="f", id="a", index=0)],
        [call('{"x":', index=0)],
        [call('"a"}', index=0)],
        [call("", name="f", id="b", index=1)],
        [call('{"x":"b"}', index=1)],
    ) == (A, B)


def test_interleaved_deltas_are_told_apart_by_index() -> None:
    """Pieces of two calls may alternate."""
    assert calls(
        [call('{"x":', name="f", id="a", index=0), call('{"x"', name="f", id="b", index=1)],
        [call(':"b"}', index=1), call('"a"}', index=0)],
    ) == (A, B)


@pytest.mark.parametrize("indexed", [True, False])
def test_fault_13_cumulative_snapshots_are_no_deltas(indexed: bool) -> None:
    """[a], [a, b], [a, b, c] are three calls, not six."""
    place = (lambda number: number) if indexed else (lambda number: None)
    snapshots = [[whole(item, place(n)) for n, item in enumerate((A, B, C)[:size])] for size in (1, 2, 3)]
    assert calls(*snapshots) == (A, B, C)


def test_fault_13_snapshots_of_growing_arguments() -> None:
    """A call that is resent with ever more of its arguments is one call."""
    assert calls(*([call(A.arguments[:size], name="f", id="a", index=0)] for size in (1, 3, 5, 9))) == (A,)


def test_fault_13_snapshots_without_ids_or_indexes() -> None:
    """Even with nothing to tell calls apart but their content, a list that is sent anew adds nothing."""
    bare = [call(item.arguments, name=item.name) for item in (A, B)]
    assert [each.arguments for each in calls(bare[:1], bare)] == [A.arguments, B.arguments]


def test_a_delta_that_looks_like_a_snapshot_is_still_a_delta() -> None:
    """Nested objects may repeat the outer key just where a piece begins."""
    pieces = ['{"a":', '{"a":1}}']
    got = calls(*([call(piece, name="f", id="a", index=0)] for piece in pieces))
    assert [each.arguments for each in got] == ['{"a":{"a":1}}']


def test_index_reuse_with_new_ids_opens_new_calls() -> None:
    """Some servers send each call whole, all at index 0."""
    assert calls([whole(A, 0)], [whole(B, 0)], [whole(C, 0)]) == (A, B, C)


def test_index_reuse_without_ids_opens_new_calls() -> None:
    """The same, without ids: the second begins when the first is whole."""
    got = calls([call(A.arguments, name="f", index=0)], [call(B.arguments, name="f", index=0)])
    assert [each.arguments for each in got] == [A.arguments, B.arguments]
    assert [each.id for each in got] == ["call_0", "call_1"]


def test_an_id_repeated_with_every_piece_is_one_call() -> None:
    """Some servers send id and name with each delta."""
    assert calls(*([call(piece, name="f", id="a", index=0)] for piece in ('{"x"', ':"a', '"}'))) == (A,)


def test_fault_11_one_id_for_different_calls_keeps_both() -> None:
    """Different calls under one id are all kept; the repair tells them apart."""
    got = calls([call('{"x":1}', name="f", id="dup", index=0)], [call('{"x":2}', name="f", id="dup", index=1)])
    assert [each.arguments for each in got] == ['{"x":1}', '{"x":2}']


def test_fault_5_identical_calls_under_one_id_collapse() -> None:
    """The same call twice within a reply is a stream assembled wrongly."""
    assert calls([whole(A, 0)], [whole(A, 1)], [whole(B, 2)]) == (A, B)


def test_a_name_may_come_late() -> None:
    """Arguments first, name after."""
    assert calls([call('{"x":', id="a", index=0)], [call('"a"}', name="f", index=0)]) == (A,)


def test_ids_made_up_here_avoid_those_of_the_reply() -> None:
    """A server that sends an id for one call only cannot be made to clash."""
    got = calls([call("{}", name="f", id="call_1", index=0)], [call("{}", name="g", index=1)])
    assert [each.id for each in got] == ["call_1", "call_2"]


def test_arguments_as_an_object_and_missing_arguments() -> None:
    """Arguments may come as an object or not at all."""
    got = calls([call({"x": "é"}, name="f", id="a")], [call(name="g", id="b")])
    assert [each.arguments for each in got] == ['{"x": "é"}', "{}"]


def test_phantom_calls_are_left_out() -> None:
    """An entry with neither name nor arguments is no call."""
    assert calls([call("", id="a", index=0)], finish="stop") == ()


def test_a_call_cut_by_the_length_limit_is_incomplete() -> None:
    """Half-written arguments never run; whole ones beside them may."""
    got = calls([whole(A, 0)], [call('{"x": "ha', name="f", id="b", index=1)], finish="length")
    assert [each.complete for each in got] == [True, False]


def test_broken_arguments_of_a_finished_reply_stay_as_written() -> None:
    """Whether they can be mended is for the toolset."""
    assert calls([call('{"path": "C:\\x"}', name="f", id="a", index=0)]) == (ToolCall("a", "f", '{"path": "C:\\x"}'),)


def test_calls_of_an_aborted_stream_are_incomplete_unless_whole() -> None:
    """A name without arguments is no whole call when the stream was cut."""
    message = fold(delta(tool_calls=[whole(A, 0), call("", name="g", id="b", index=1)]), cut="aborted")
    assert [each.complete for each in message.calls] == [True, False]
    assert message.stop == "aborted"


@st.composite
def streams(draw: st.DrawFn) -> tuple[tuple[ToolCall, ...], str, list[dict[str, Any]]]:
    """Calls and text, cut into chunks in one of the ways that servers use."""
    objects = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4), max_size=3)
    found = tuple(
        ToolCall(f"id{n}", draw(st.sampled_from(["f", "get", "f_g"])), json.dumps(draw(objects)))
        for n in range(draw(st.integers(0, 4)))
    )
    text = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    chunks = [delta(content=piece) for piece in cut(draw, text)]
    style = draw(st.sampled_from(["deltas", "repeating", "whole", "zero", "snapshots"]))
    if style == "snapshots":
        chunks += [
            delta(tool_calls=[whole(each, n) for n, each in enumerate(found[:k])]) for k in range(1, len(found) + 1)
        ]
        return found, text, chunks
    for n, each in enumerate(found):
        if style in ("whole", "zero"):
            chunks.append(delta(tool_calls=[whole(each, 0 if style == "zero" else n)]))
            continue
        chunks.append(delta(tool_calls=[call("", name=each.name, id=each.id, index=n)]))
        for piece in cut(draw, each.arguments):
            again = {"name": each.name, "id": each.id} if style == "repeating" else {}
            chunks.append(delta(tool_calls=[call(piece, index=n, **again)]))
    return found, text, chunks


def cut(draw: st.DrawFn, text: str) -> list[str]:
    points = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:stop] for start, stop in zip([0, *points], [*points, len(text)], strict=True)]


@given(streams())
def test_any_way_of_cutting_gives_the_same_reply(
    stream: tuple[tuple[ToolCall, ...], str, list[dict[str, Any]]],
) -> None:
    """Text, calls, ids and arguments come out as they were, and the pieces shown add up to them."""
    found, text, chunks = stream
    assembler = ChatAssembler(MODEL)
    pieces = [piece for chunk in [*chunks, delta("stop")] for piece in assembler.feed(chunk)]
    message = assembler.finish()
    assert message.calls == found
    assert message.text == text
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == text
    for index, each in enumerate(found):
        shown = [piece for piece in pieces if isinstance(piece, CallPiece) and piece.index == index]
        assert "".join(piece.arguments for piece in shown) == each.arguments
        assert {piece.tool for piece in shown} == {each.name}
    assert not any(isinstance(piece, ThinkingPiece) for piece in pieces)


@pytest.mark.parametrize("again", [{}, {"id": "a", "name": "f"}])
def test_long_arguments_take_linear_time(again: dict[str, Any]) -> None:
    """A file written in pieces of a few characters, each of which might begin a snapshot."""
    text = json.dumps({"content": "{x} " * 25_000})
    entries = [[call(text[at : at + 4], index=0, **again)] for at in range(0, len(text), 4)]
    started = time.process_time()
    got = calls([call("", name="f", id="a", index=0)], *entries)
    assert time.process_time() - started < 2
    assert got[0].arguments == text
