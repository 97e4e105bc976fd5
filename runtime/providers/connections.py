"""Connections to models' servers, kept for reuse: a transport for the HTTP client that the SDKs and we share.

The HTTP library's own pool looks through all connections and all calls whenever a call begins or ends, so 1,000 calls
at once cost it a million looks, and its connect time-out runs for all of them while one loop shakes every hand.
Laws:
- Finding a connection takes the same time however many there are; the one used last is used next.
- No more than `connects` are being made at once. Waiting for one's turn is not counted in the connect time-out, and a
  connection that becomes free meanwhile is taken instead.
- A connection is used again only after its answer was read to the end; any other is closed.
- HTTP/1.1 over TCP or TLS, without proxies: where one stands between, the library's transport does it.

Imported on first use only, as it brings the HTTP library.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpcore2
import httpx2


class Connections(httpx2.AsyncBaseTransport):
    """A pool of connections to any number of servers.

    `most` are open at once; a call beyond that waits as long as its pool time-out says. `kept` may wait idle, each for
    `expiry` seconds; those that nobody asks for are closed when a later call ends.
    """

    def __init__(
        self,
        *,
        most: int = 1000,
        kept: int = 1000,
        expiry: float = 30.0,
        connects: int = 128,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._kept, self._expiry, self._context = kept, expiry, context
        self._backend = httpcore2.AnyIOBackend()
        self._idle: dict[tuple[bytes, bytes, int], deque[httpcore2.AsyncHTTP11Connection]] = {}
        self._waiting = 0  # how many are idle
        self._slots = anyio.Semaphore(most, fast_acquire=True)
        self._connecting = anyio.Semaphore(connects, fast_acquire=True)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises what the HTTP library's transport raises."""
        url, timeouts = request.url, request.extensions.get("timeout", {})
        if url.scheme not in ("http", "https"):
            raise httpx2.UnsupportedProtocol(f"no connection can be made to {url.scheme or 'no scheme'}://")
        core = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        origin = core.url.origin
        with told_as_the_library_does():
            await self._slot(timeouts.get("pool"))
            connection: httpcore2.AsyncHTTP11Connection | None = None
            try:
                connection = await self._take(origin) or await self._connect(origin, timeouts.get("connect"))
                response = await connection.handle_async_request(core)
            except BaseException:
                self._slots.release()
                if connection is not None:
                    with anyio.CancelScope(shield=True):
                        await connection.aclose()
                raise
        assert isinstance(response.stream, AsyncIterable)
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Answer(self, origin, connection, response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when its answer is."""
        self._kept = 0
        idle, self._idle, self._waiting = self._idle, {}, 0
        for connections in idle.values():
            for connection in connections:
                await connection.aclose()

    async def give_back(self, origin: httpcore2.Origin, connection: httpcore2.AsyncHTTP11Connection) -> None:
        """What an answer does when it is closed."""
        self._slots.release()
        if not connection.is_idle():
            return
        if self._waiting >= self._kept:
            await connection.aclose()
            return
        idle = self._idle.setdefault(_key(origin), deque())
        idle.append(connection)
        self._waiting += 1
        while len(idle) > 1 and idle[0].has_expired():
            self._waiting -= 1
            await idle.popleft().aclose()

    async def _slot(self, seconds: float | None) -> None:
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(seconds):
                await self._slots.acquire()
                return
            raise httpx2.PoolTimeout(f"no connection became free within {seconds:g} seconds") from None

    async def _take(self, origin: httpcore2.Origin) -> httpcore2.AsyncHTTP11Connection | None:
        """An idle connection that still stands."""
        idle = self._idle.get(_key(origin))
        while idle:
            connection = idle.pop()
            self._waiting -= 1
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _connect(self, origin: httpcore2.Origin, seconds: float | None) -> httpcore2.AsyncHTTP11Connection:
        async with self._connecting:
            if (free := await self._take(origin)) is not None:
                return free
            host = origin.host.decode("ascii")
            stream = await self._backend.connect_tcp(host, origin.port, timeout=seconds)
            if origin.scheme == b"https":
                try:
                    stream = await stream.start_tls(self._secured(), host, seconds)
                except BaseException:
                    with anyio.CancelScope(shield=True):
                        await stream.aclose()
                    raise
        return httpcore2.AsyncHTTP11Connection(origin, stream, self._expiry)

    def _secured(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = httpcore2.default_ssl_context()
        return self._context


class _Answer(httpx2.AsyncByteStream):
    """The body of an answer; closing it gives its connection back."""

    def __init__(
        self,
        pool: Connections,
        origin: httpcore2.Origin,
        connection: httpcore2.AsyncHTTP11Connection,
        stream: AsyncIterable[bytes],
    ) -> None:
        self._pool, self._origin, self._connection = pool, origin, connection
        self._stream: Any = stream
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with told_as_the_library_does():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            try:
                await self._stream.aclose()
            finally:
                await self._pool.give_back(self._origin, self._connection)


def _key(origin: httpcore2.Origin) -> tuple[bytes, bytes, int]:
    return origin.scheme, origin.host, origin.port


@contextmanager
def told_as_the_library_does() -> Iterator[None]:
    """What goes wrong below, as the error of the same name that the HTTP library raises."""
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error
