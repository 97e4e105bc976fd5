"""Small traces, and strategies for more of them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from runtime.replay import Call, Item, Trace

SEGMENTS = Path(__file__).parents[1] / "data" / "replay" / "coding-segments.jsonl.gz"


def result(tokens: int, stub: int = 20) -> Item:
    return Item(tokens, stub)


def said(tokens: int) -> Item:
    return Item(tokens, boundary=True)


def steady(calls: int, *, gap: float = 10.0, tokens: int = 1_000, base: int = 5_000) -> Trace:
    """A user's message, and then a result of `tokens` before every call."""
    first = Call(0.0, (said(100),), rests=False)
    rest = (Call(gap * number, (Item(50), result(tokens)), rests=False) for number in range(1, calls))
    return Trace("steady", base, (first, *rest))


items = st.one_of(
    st.builds(Item, st.integers(1, 400)),
    st.builds(said, st.integers(1, 400)),
    st.builds(result, st.integers(100, 9_000)),
)


@st.composite
def traces(draw: st.DrawFn, most: int = 30, results: int = 3) -> Trace:
    """Sessions with gaps on both sides of the lifetimes."""
    at = 0.0
    calls = []
    for _ in range(draw(st.integers(1, most))):
        at += draw(st.sampled_from([1.0, 30.0, 299.0, 310.0, 900.0, 3_700.0, 90_000.0]))
        added = tuple(draw(st.lists(items, max_size=results)))
        calls.append(Call(at, added, rests=draw(st.booleans())))
    return Trace("random", draw(st.integers(0, 20_000)), tuple(calls))
