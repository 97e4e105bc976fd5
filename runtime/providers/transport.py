"""One streamed call over an SDK's client: what `anthropic` and `openai_chat` share.

The SDK brings authentication, headers, URLs, the connection pool and error types. The body goes through it as
bytes and the reply comes out of it as bytes, so it neither walks nor alters what was encoded and checked, and a
reply that strict types would refuse can still be read.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from governors.wire.encoded import dump_bytes

from .assemble import Assembler
from .base import ModelInfo, Request, StreamEvent
from .problems import Target
from .reply import Reply

CONNECT_TIMEOUT = 10.0  # seconds

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine (no proxy may stand between)."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.") or host.endswith(".localhost")


class NetworkProvider:
    """A provider behind an SDK. Subclasses say which client, path and assembler.

    `secrets` in errors are masked; `clock` gives seconds since 1970 (for a Retry-After that is a date).
    """

    path: str

    def __init__(
        self,
        name: str,
        api_key: str | None,
        base_url: str | None = None,
        *,
        key_variable: str | None = None,
        headers: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self.api_key = api_key
        self.base_url = base_url
        self.key_variable = key_variable
        self.headers = dict(headers or {})
        self.clock = clock
        self._client: Any = None
        self._making = anyio.Lock()

    @property
    def name(self) -> str:
        return self._name

    def make_client(self) -> Any:
        """Import the SDK and make its client; slow, so it runs in a thread."""
        raise NotImplementedError

    def make_assembler(self, model: ModelInfo) -> Assembler:
        raise NotImplementedError

    def transport_fields(self, request: Request) -> dict[str, Any]:
        """What the body gets because it is streamed."""
        return {"stream": True}

    def request_headers(self, request: Request) -> dict[str, str]:
        return dict(self.headers)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """Send `request`; see `Provider.stream`."""
        reply = Reply(
            post=lambda: self._post(request),
            assembler=self.make_assembler(request.model),
            target=lambda: self._target(request),
            timeout=request.timeout,
            clock=self.clock,
        )
        try:
            yield reply
        finally:
            await reply.aclose()

    async def client(self) -> Any:
        """The SDK's client, made on first use."""
        async with self._making:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(self.make_client)
        return self._client

    async def warm(self) -> None:
        try:
            await self.client()
        except (ImportError, OSError, ValueError, TypeError):
            return  # the first call meets the same error and tells it as a problem

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, request: Request) -> Any:
        """The response, its body unread."""
        import httpx2

        content = with_fields(request.content, self.transport_fields(request))
        client = await self.client()
        timeout = httpx2.Timeout(request.timeout, connect=CONNECT_TIMEOUT)
        options = {"timeout": timeout, "headers": self.request_headers(request)}
        return await client.post(self.path, cast_to=httpx2.Response, content=content, options=options, stream=True)

    def _target(self, request: Request) -> Target:
        url = self.base_url or str(getattr(self._client, "base_url", "")) or self._name
        secrets = (self.api_key,) if self.api_key else ()
        return Target(self._name, url, request.model.id, self.key_variable, secrets)


def http_client(base_url: str | None) -> Any:
    """The HTTP client for an SDK: generous pool, no redirects (a key must not follow one), no proxy
    to this machine. Raises `ValueError` for a URL that is none."""
    import httpx2

    if base_url is not None:
        _ = urlsplit(base_url).port  # raises ValueError where the HTTP library would fail late, or wrap it round
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(60.0, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=30.0),
        follow_redirects=False,
        trust_env=not is_loopback(base_url or ""),
    )


def with_fields(content: bytes, fields: Mapping[str, Any]) -> bytes:
    """The JSON object `content` with more fields at its end, without reading it."""
    if not fields:
        return content
    closed = content.rstrip()
    joint = b"" if closed[1:-1].strip() == b"" else b","
    return closed[:-1] + joint + dump_bytes(fields)[1:]
