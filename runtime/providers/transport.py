"""One call over an SDK's client: what the providers of all wires share.

The SDK brings authentication, headers, URLs and their rules: the first call of a provider goes through its `post`,
and what it made of that call is the envelope of those that follow. They cost what the HTTP client costs, as the SDK's
own way takes another half of that for each call. The body goes out as the bytes that were encoded and checked, and the
reply comes in as bytes, so that a reply that strict types would refuse can still be read.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from .assemble import Assembler
from .base import ModelInfo, Request, StreamEvent
from .envelope import Envelope, Outgoing
from .problems import Target
from .reply import Reply

CONNECT_TIMEOUT = 10.0  # seconds

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})

_MOST_ENVELOPES = 32  # one for each set of headers and time-out that is in use


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine (no proxy may stand between)."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.") or host.endswith(".localhost")


class NetworkProvider:
    """A provider behind an SDK. Subclasses say which client, path and assembler.

    The key is masked in errors; `clock` gives seconds since 1970 (for a Retry-After that is a date). Without `streams`
    replies come as one document, for hosts that cannot stream (or not with tools): the same events, all at its end, and
    a request's time-out is then for all of the reply.
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
        streams: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self.api_key = api_key
        self.base_url = base_url
        self.key_variable = key_variable
        self.headers = dict(headers or {})
        self.streams = streams
        self.clock = clock
        self._client: Any = None
        self._http: Any = None
        self._envelopes: dict[tuple[object, ...], Envelope] = {}
        self._making = anyio.Lock()

    @property
    def name(self) -> str:
        return self._name

    def make_client(self) -> Any:
        """Import the SDK and make its client, with `http_client()`; slow, so it runs in a thread."""
        raise NotImplementedError

    def http_client(self) -> Any:
        """The HTTP client for the SDK's client. Raises `ValueError` for a URL that is none."""
        if self._http is None:
            self._http = http_client(self.base_url)
        return self._http

    def make_assembler(self, model: ModelInfo) -> Assembler:
        raise NotImplementedError

    def transport_fields(self, request: Request) -> dict[str, Any]:
        """What the body gets because of how it is sent."""
        return {"stream": True} if self.streams else {}

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
        self._http = None
        self._envelopes.clear()
        if client is not None:
            await client.close()

    async def _post(self, request: Request) -> Any:
        """The response, its body unread, whatever its status. Raises what the SDK and its HTTP client raise."""
        client, headers = await self.client(), self.request_headers(request)
        outgoing = Outgoing.of(request.content, self.transport_fields(request))
        key = (request.timeout, *headers.items())
        envelope = self._envelopes.get(key)
        if envelope is None or self._http is None:
            return await self._through_sdk(client, request, outgoing, headers, key)
        response = await self._http.send(envelope.addressed(outgoing), stream=True)
        if not response.is_success:
            self._envelopes.clear()  # the SDK is asked again, as it may know a key better by now
        return response

    async def _through_sdk(
        self, client: Any, request: Request, outgoing: Outgoing, headers: dict[str, str], key: tuple[object, ...]
    ) -> Any:
        """A call as the SDK makes it, and what it made of it kept for the next."""
        import httpx2

        timeout = httpx2.Timeout(request.timeout, connect=CONNECT_TIMEOUT)
        response = await client.post(
            self.path,
            cast_to=httpx2.Response,
            content=outgoing.content(),
            options={"timeout": timeout, "headers": {**headers, "content-length": str(outgoing.length)}},
            stream=True,
        )
        if len(self._envelopes) >= _MOST_ENVELOPES:
            self._envelopes.clear()
        self._envelopes[key] = Envelope.of(response.request)
        return response

    def _target(self, request: Request) -> Target:
        url = self.base_url or str(getattr(self._client, "base_url", "")) or self._name
        secrets = (self.api_key,) if self.api_key else ()
        return Target(self._name, url, request.model.id, self.key_variable, secrets)


def http_client(base_url: str | None) -> Any:
    """The HTTP client for an SDK: no redirects (a key must not follow one), no proxy to this machine, HTTP/1.1.

    Where the environment names a proxy the HTTP library's own pool is used, else `Connections`. Raises `ValueError`
    for a URL that is none.
    """
    import httpx2

    from .connections import Connections

    if base_url is not None:
        _ = urlsplit(base_url).port  # raises ValueError where the HTTP library would fail late, or wrap it round
    timeout = httpx2.Timeout(60.0, connect=CONNECT_TIMEOUT)
    if urllib.request.getproxies() and not is_loopback(base_url or ""):
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000, keepalive_expiry=30.0)
        return httpx2.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
    plain = base_url is not None and base_url.startswith("http:")
    context = None if plain else httpx2.create_ssl_context()  # slow, and needless on this machine
    transport = Connections(context=context)
    return httpx2.AsyncClient(timeout=timeout, transport=transport, follow_redirects=False, trust_env=False)
