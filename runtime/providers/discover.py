"""Model servers on this machine: which there are, what they serve, and how large their real windows are.

All ports are asked at once, within one time limit. Whatever does not answer in the protocol's form is no server:
other programs listen on these ports too. No proxy stands between (the environment's are ignored).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from .reply import BROKEN, run_out
from .transport import is_loopback

if TYPE_CHECKING:
    import httpx2

#: Kind of server and its usual port, in order of preference.
PORTS: tuple[tuple[str, int], ...] = (("ollama", 11434), ("llama.cpp", 8080), ("lm_studio", 1234), ("vllm", 8000))

_LARGEST_ANSWER = 4 * 1024 * 1024  # bytes
_MOST_ASKED = 8  # models whose windows are asked one by one


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that speaks Chat Completions at `url` (it ends in /v1).

    What it tells of its models stands by model, for those of which it tells anything: `windows` in tokens, and whether
    it is made to call tools, to see images, to think. `kind` is a key of `PORTS`, or `openai` for a compatible server
    of no known kind.
    """

    url: str
    kind: str
    models: tuple[str, ...]
    windows: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, bool] = field(default_factory=dict)
    images: Mapping[str, bool] = field(default_factory=dict)
    reasons: Mapping[str, bool] = field(default_factory=dict)

    def told(self, model: str) -> dict[str, Any]:
        """What the server says of `model`, as `lookup` takes it; None for what it does not say."""
        parts = {"window": self.windows, "tools": self.tools, "images": self.images, "reasons": self.reasons}
        return {name: part.get(model) for name, part in parts.items()}


async def find_servers(
    ports: Sequence[tuple[str, int]] = PORTS, *, host: str = "127.0.0.1", within: float = 0.5
) -> tuple[FoundServer, ...]:
    """The servers found, in the order of `ports`. Takes about `within` seconds at most; what is late is left out."""
    found: dict[int, FoundServer] = {}
    client = await anyio.to_thread.run_sync(_make_client)
    async with client:
        with anyio.move_on_after(within):
            async with anyio.create_task_group() as group:
                for place, (kind, port) in enumerate(ports):
                    group.start_soon(_probe, client, kind, f"http://{host}:{port}/v1", place, found)
    return tuple(found[place] for place in sorted(found))


async def ask_server(url: str, key: str = "", *, within: float = 2.0) -> FoundServer | None:
    """What the server at `url`, wherever it is, tells of its models; None if nothing came within `within` seconds."""
    found: dict[int, FoundServer] = {}
    try:
        client = await anyio.to_thread.run_sync(_make_client, url, key)
    except (
        ValueError,
        ImportError,
    ):  # no URL, a key that no header can hold, a proxy of a kind: the first call tells it
        return None
    async with client:
        with anyio.move_on_after(within):
            await _probe(client, "openai", url.rstrip("/"), 0, found)
    return found.get(0)


def _make_client(url: str | None = None, key: str = "") -> httpx2.AsyncClient:
    """Its import and making are slow, so this runs in a thread, before the clock starts. Without `url` it is for plain
    http on this machine only. Raises `ValueError`."""
    import httpx2

    if url is not None:
        _ = urlsplit(url).port  # raises ValueError where connecting would raise something else
    if url is None or is_loopback(url):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx2.AsyncClient(trust_env=False, verify=False, follow_redirects=False, headers=headers)
    return httpx2.AsyncClient(follow_redirects=False, headers={"authorization": f"Bearer {key}"} if key else {})


async def _probe(client: httpx2.AsyncClient, kind: str, url: str, place: int, found: dict[int, FoundServer]) -> None:
    """Ask for the models first; what else the server tells improves the entry while there is time."""
    root = url.removesuffix("/v1")
    answer = await _ask(client, "GET", f"{url}/models")
    listed = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        return
    entries = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("id"), str)]
    models = tuple(str(each["id"]) for each in entries)
    if entries or answer.get("object") == "list":
        windows = {str(each["id"]): size for each in entries if (size := _listed(each))}
        server = FoundServer(url, _kind(kind, entries), models, windows)
        found[place] = server
        if ask := _MORE.get(server.kind):
            found[place] = await ask(client, root, server)


def _listed(entry: Mapping[str, Any]) -> int | None:
    """The window of a model in a list: vLLM, gateways, Groq and Mistral each have a name for it."""
    names = ("max_model_len", "context_length", "context_window", "max_context_length")
    return next((size for name in names if (size := _size(entry.get(name)))), None)


def _kind(expected: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """A server says who it is in `owned_by`; a port is only a guess."""
    owners = {"llamacpp": "llama.cpp", "vllm": "vllm", "library": "ollama", "organization_owner": "lm_studio"}
    for each in entries:
        if kind := owners.get(str(each.get("owned_by"))):
            return kind
    return expected


async def _ask_llama(client: httpx2.AsyncClient, root: str, server: FoundServer) -> FoundServer:
    props = await _ask(client, "GET", f"{root}/props")
    if not isinstance(props, Mapping):
        return server
    settings = props.get("default_generation_settings")
    size = _size(settings.get("n_ctx")) if isinstance(settings, Mapping) else None
    caps = props.get("chat_template_caps")
    tools = caps.get("supports_tools") if isinstance(caps, Mapping) else None
    if tools is None and isinstance(props.get("chat_template"), str):
        tools = "tools" in props["chat_template"]
    modalities = props.get("modalities")
    images = modalities.get("vision") if isinstance(modalities, Mapping) else None
    return replace(
        server,
        windows=dict.fromkeys(server.models, size) if size else {},
        tools=dict.fromkeys(server.models, tools) if isinstance(tools, bool) else {},
        images=dict.fromkeys(server.models, images) if isinstance(images, bool) else {},
    )


async def _ask_lm_studio(client: httpx2.AsyncClient, root: str, server: FoundServer) -> FoundServer:
    answer = await _ask(client, "GET", f"{root}/api/v0/models")
    listed = answer.get("data") if isinstance(answer, Mapping) else None
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    entries = [each for each in entries if each.get("id") in server.models]
    chatting = [each for each in entries if each.get("type") != "embeddings"]
    chatting.sort(key=lambda each: each.get("state") != "loaded")  # loaded ones first: they answer at once
    windows = {
        str(each["id"]): size
        for each in chatting
        if (size := _size(each.get("loaded_context_length")) or _size(each.get("max_context_length")))
    }
    models = tuple(str(each["id"]) for each in chatting) or server.models
    tools = {str(each["id"]): "tool_use" in told for each in chatting if (told := _capabilities(each)) is not None}
    images = {str(each["id"]): each["type"] == "vlm" for each in chatting if each.get("type") in ("llm", "vlm")}
    return replace(server, models=models, windows=windows, tools=tools, images=images)


async def _ask_ollama(client: httpx2.AsyncClient, root: str, server: FoundServer) -> FoundServer:
    """A model's window is what it is run with (`num_ctx`), not what it was trained for: Ollama cuts silently."""
    shown: dict[str, Mapping[str, Any]] = {}

    async def show(model: str) -> None:
        answer = await _ask(client, "POST", f"{root}/api/show", {"model": model})
        if isinstance(answer, Mapping):
            shown[model] = answer

    async def running() -> None:
        answer = await _ask(client, "GET", f"{root}/api/ps")
        for each in answer.get("models") or () if isinstance(answer, Mapping) else ():
            if isinstance(each, Mapping) and (size := _size(each.get("context_length"))):
                loaded[str(each.get("name"))] = size

    loaded: dict[str, int] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(running)
        for model in server.models[:_MOST_ASKED]:
            group.start_soon(show, model)
    windows = {model: size for model in shown if (size := loaded.get(model) or _num_ctx(shown[model]))}
    told = {model: told for model in shown if (told := _capabilities(shown[model])) is not None}
    chatting = tuple(model for model in server.models if model not in told or "completion" in told[model])
    return replace(
        server,
        models=chatting or server.models,
        windows=windows,
        tools={model: "tools" in told[model] for model in told},
        images={model: "vision" in told[model] for model in told},
        reasons={model: "thinking" in told[model] for model in told},
    )


_MORE = {"ollama": _ask_ollama, "llama.cpp": _ask_llama, "lm_studio": _ask_lm_studio}

_OLLAMA_WINDOW = 4096  # what Ollama runs a model with when nobody says otherwise (docs/faq)


def _num_ctx(shown: Mapping[str, Any]) -> int | None:
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx":
            return _size(value.strip())
    info = shown.get("model_info")
    trained = [_size(info[key]) for key in info if key.endswith(".context_length")] if isinstance(info, Mapping) else []
    return min(_OLLAMA_WINDOW, trained[0] or _OLLAMA_WINDOW) if trained else None


def _capabilities(entry: Mapping[str, Any]) -> frozenset[str] | None:
    """The capabilities that an entry lists; None where it lists none, which says nothing."""
    told = entry.get("capabilities")
    return frozenset(str(each) for each in told) if isinstance(told, list) and told else None


def _size(value: Any) -> int | None:
    """A number of tokens, if it is one."""
    try:
        size = int(value)
    except (TypeError, ValueError):
        return None
    return size if 0 < size < 1_000_000_000 and not isinstance(value, bool) else None


async def _ask(client: httpx2.AsyncClient, method: str, url: str, body: Any = None) -> Any:
    """The parsed JSON of a good answer, else None."""
    import httpx2

    try:
        async with client.stream(method, url, json=body) as response:
            if response.status_code != 200:
                return None
            return json.loads(await _read(response))
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        return None
    except BROKEN:
        return None


async def _read(response: httpx2.Response) -> bytes:
    """The body; raises `ValueError` for one that never ends."""
    content = bytearray()
    chunks = response.aiter_bytes()
    async for chunk in chunks:
        content += chunk
        if len(content) > _LARGEST_ANSWER:
            await response.aclose()
            await run_out(chunks)
            raise ValueError("no model server answers with so much")
    return bytes(content)
