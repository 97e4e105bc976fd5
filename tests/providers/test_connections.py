"""The pool of connections, against real servers on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpcore2
import httpx2
import pytest

from runtime.providers.connections import Connections
from tests.servers import Connection, Handler, Seen, Server, serve, status

OK = status(200, {"ok": True})


@asynccontextmanager
async def client(**options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=Connections(**options), timeout=5.0) as made:
        yield made


def after(event: anyio.Event) -> Handler:
    """Answers when `event` is set."""

    async def handle(request: Seen, connection: Connection) -> None:
        await event.wait()
        await OK(request, connection)

    return handle


async def seen(server: Server, count: int) -> None:
    """Wait until so many requests have come."""
    while len(server.seen) < count:  # noqa: ASYNC110  # the server tells nobody
        await anyio.sleep(0.001)


async def test_a_connection_is_used_again() -> None:
    """One after the other, calls share one."""
    async with serve(OK) as server, client() as http:
        for _ in range(5):
            assert (await http.get(server.url)).json() == {"ok": True}
        assert server.connections == 1


async def test_calls_at_once_have_a_connection_each() -> None:
    """And those are kept for the next calls."""
    go = anyio.Event()
    async with serve(after(go)) as server, client() as http:
        for _ in range(2):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(http.get, server.url)
                await seen(server, 10)
                go.set()
        assert server.connections == 10
        assert len(server.seen) == 20


async def test_no_more_than_so_many_wait_idle() -> None:
    """The rest is closed as soon as its answer was read."""
    go = anyio.Event()
    async with serve(after(go)) as server, client(kept=2) as http:
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(http.get, server.url)
            await seen(server, 6)
            go.set()
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(http.get, server.url)
        assert 6 < server.connections <= 10


async def test_a_call_over_the_limit_waits_for_a_connection() -> None:
    """As long as it is told to; then the error says why, and the others are not disturbed."""
    go = anyio.Event()
    async with serve(after(go)) as server, client(most=1) as http, anyio.create_task_group() as group:
        group.start_soon(http.get, server.url)
        await seen(server, 1)
        with pytest.raises(httpx2.PoolTimeout, match=r"0\.05 seconds"):
            await http.get(server.url, timeout=httpx2.Timeout(5.0, pool=0.05))
        group.start_soon(http.get, server.url)
        go.set()
    assert (server.connections, len(server.seen)) == (1, 2)


async def test_waiting_to_connect_is_not_counted_as_connecting() -> None:
    """A storm of calls behind one slow handshake: none of them times out, and all are answered."""
    async with serve(OK) as server, client(connects=1) as http:
        slow = SlowBackend(0.05)
        http._transport._backend = slow  # type: ignore[attr-defined]  # the edge of the network
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(get, http, server.url, 0.1)
        assert len(server.seen) == 8
        assert slow.most == 1
        assert server.connections < 8  # some took a connection that had become free meanwhile


async def get(http: httpx2.AsyncClient, url: str, connect: float) -> None:
    assert (await http.get(url, timeout=httpx2.Timeout(5.0, connect=connect))).status_code == 200


class SlowBackend:
    """Connects after a while, if the time-out allows that."""

    def __init__(self, delay: float) -> None:
        self.inner, self.delay, self.now, self.most = httpcore2.AnyIOBackend(), delay, 0, 0

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # its port
        self.now += 1
        self.most = max(self.most, self.now)
        with anyio.fail_after(timeout):
            await anyio.sleep(self.delay)
        self.now -= 1
        return await self.inner.connect_tcp(host, port, timeout=timeout)


async def test_an_answer_that_was_not_read_closes_its_connection() -> None:
    """The server sees it, and the next call gets a new one."""

    async def half(_: Seen, connection: Connection) -> None:
        await connection.start()
        await connection.piece(b"half")
        await connection.hang()

    async with serve(half) as server, client() as http:
        for place in range(2):
            async with http.stream("GET", server.url):
                pass
            with anyio.fail_after(2):
                await server.gone.wait()
            assert server.connections == place + 1


@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_gives_the_place_back(begun: bool) -> None:
    """While it waits for an answer, and while it reads one."""

    arrived = anyio.Event()

    async def stall(_: Seen, connection: Connection) -> None:
        if begun:
            await connection.start()
        arrived.set()
        await connection.hang()

    async with serve(stall) as server, client(most=1) as http:
        for place in range(3):
            arrived = anyio.Event()
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(http.get, server.url)
                    await arrived.wait()
                    group.cancel_scope.cancel()
            assert len(server.seen) == place + 1
        with anyio.fail_after(20):
            await server.gone.wait()


async def test_a_connection_that_the_server_closed_is_not_used() -> None:
    """It is found out before anything is sent on it."""

    async def once(request: Seen, connection: Connection) -> None:
        await OK(request, connection)
        await connection.drop()

    async with serve(once) as server, client() as http:
        for _ in range(3):
            assert (await http.get(server.url)).status_code == 200
            await anyio.wait_all_tasks_blocked()
        assert server.connections == 3


async def test_an_old_connection_is_not_used() -> None:
    """Load balancers drop what was idle for long without a word."""
    async with serve(OK) as server, client(expiry=0.0) as http:
        await http.get(server.url)
        await anyio.sleep(0.002)
        await http.get(server.url)
        assert server.connections == 2


async def test_errors_are_those_of_the_http_library() -> None:
    """Whatever breaks below."""

    async def drop(_: Seen, connection: Connection) -> None:
        await connection.drop()

    async with client() as http:
        async with serve(drop) as server:
            with pytest.raises(httpx2.RemoteProtocolError):
                await http.get(server.url)
        with pytest.raises(httpx2.ConnectError):
            await http.get(server.url)
        with pytest.raises(httpx2.UnsupportedProtocol):
            await http.get("ftp://127.0.0.1:1")
