"""Calls as they go out: the bytes of a body, and the envelope that the SDK wrote for them once.

Laws:
- A body is never read, and a long one never copied as a whole: what is added stands in a piece of its own.
- An envelope is what the SDK sent, but for the length of the body. Whatever else may differ from call to call (headers
  of a call's own, its time-out) is the key under which an envelope is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from governors.wire.encoded import dump_bytes

# A body up to so many bytes is copied whole, a longer one goes out in such pieces. Of 28 MB sent whole, what the socket
# does not take at once is copied twice more by asyncio: 14 ms against 10 in pieces. 5.7 MB cost 1.9 ms whole, 2.5 so.
_LONG, _PIECE = 8 * 1024 * 1024, 4 * 1024 * 1024

_OF_ONE_CALL = (b"content-length", b"transfer-encoding", b"cookie")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The body of a call: `front` without its last bytes, and `end`, which replaces them."""

    front: memoryview
    end: bytes

    @classmethod
    def of(cls, body: bytes, fields: Mapping[str, Any]) -> Outgoing:
        """The JSON object `body` with more fields at its end, without reading it."""
        if not fields:
            return cls(memoryview(body), b"")
        last = body.rindex(b"}")
        empty = body[: last + 1].strip()[1:-1].strip() == b"" if last < 64 else False
        return cls(memoryview(body)[:last], (b"" if empty else b",") + dump_bytes(fields)[1:])

    @property
    def length(self) -> int:
        """Bytes."""
        return len(self.front) + len(self.end)

    def whole(self) -> bytes:
        return b"".join((self.front, self.end))

    def content(self) -> bytes | AsyncIterator[bytes]:
        """What an HTTP client is given: the bytes, or for a long body its pieces."""
        return self.whole() if self.length <= _LONG else self.pieces()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body in pieces. They are views of it: nobody keeps one after asking for the next."""
        for start in range(0, len(self.front), _PIECE):
            yield self.front[start : start + _PIECE]  # type: ignore[misc]  # a view serves wherever bytes are written
        yield self.end


@dataclass(frozen=True, slots=True)
class Envelope:
    """Method, URL, headers and time-outs of a call that an SDK made."""

    method: str
    url: Any
    headers: tuple[tuple[bytes, bytes], ...]
    extensions: Mapping[str, Any]

    @classmethod
    def of(cls, request: Any) -> Envelope:
        """From the HTTP library's request, as it was sent."""
        headers = (pair for pair in request.headers.raw if pair[0].lower() not in _OF_ONE_CALL)
        return cls(request.method, request.url, tuple(headers), dict(request.extensions))

    def addressed(self, outgoing: Outgoing) -> Any:
        """The HTTP library's request that sends `outgoing` in this envelope."""
        import httpx2

        headers = [*self.headers, (b"Content-Length", b"%d" % outgoing.length)]
        return httpx2.Request(
            self.method, self.url, headers=headers, content=outgoing.content(), extensions=dict(self.extensions)
        )
