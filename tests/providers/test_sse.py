"""Server-sent events from bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.sse import LineTooLong, SseDecoder, SseEvent


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_may_be_any_of_three(end: bytes) -> None:
    """Names, comments and data over two lines."""
    stream = end.join([b": hi", b"event: a", b"data: one", b"data:two", b"", b"data: [DONE]", b"", b""])
    assert decode(stream) == [SseEvent("one\ntwo", "a"), SseEvent("[DONE]")]


def test_the_last_event_may_lack_its_blank_line() -> None:
    """Servers forget it."""
    assert decode(b"\xef\xbb\xbfdata: x") == [SseEvent("x")]
    assert decode(b"data: x\n") == [SseEvent("x")]


def test_an_error_field_is_an_event() -> None:
    """Older llama.cpp sends `error: {...}` in place of data."""
    assert decode(b'error: {"code":500}\n\n') == [SseEvent('{"code":500}', "error")]


def test_bytes_that_are_no_utf8_do_not_end_the_stream() -> None:
    """They become replacement characters."""
    assert decode(b"data: \xff!\n\n") == [SseEvent("\ufffd!")]


def test_a_line_without_end_is_refused() -> None:
    """A peer that never ends a line cannot fill the memory."""
    decoder = SseDecoder(longest=10)
    decoder.feed(b"x" * 6)
    with pytest.raises(LineTooLong):
        decoder.feed(b"x" * 6)


@given(st.lists(st.integers(0, 60), max_size=8))
def test_packets_do_not_matter(points: list[int]) -> None:
    """However the bytes are cut, the same events come out."""
    stream = "event: é\r\ndata: 😀\r\n\r\n: c\ndata: a\ndata: b\n\ndata: [DONE]\r\r".encode()
    cuts = sorted(min(point, len(stream)) for point in points)
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == decode(stream)
