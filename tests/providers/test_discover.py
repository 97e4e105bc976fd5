"""Servers on this machine, found and told apart from other programs."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from runtime.providers.discover import FoundServer, ask_server, find_servers
from tests.servers import Connection, Handler, Seen, serve


def routes(**answers: Any) -> Handler:
    """Answers by path (its slashes as underscores) with JSON; anything else is a 404."""

    async def handle(seen: Seen, connection: Connection) -> None:
        name = seen.path.strip("/").replace("/", "_").replace("-", "_")
        if name == "api_show":
            answer = answers.get("api_show", {}).get(seen.json["model"])
        else:
            answer = answers.get(name)
        await connection.respond(404 if answer is None else 200, answer or {"error": "no"})

    return handle


def listed(*ids: str, **more: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": id, "object": "model", **more} for id in ids]}


async def find(kind: str, handler: Handler, within: float = 3.0) -> FoundServer | None:
    async with serve(handler) as server:
        found = await find_servers(((kind, server.port),), within=within)
        for each in found:
            assert each.url == f"{server.url}/v1"
    return found[0] if found else None


async def test_llama_cpp_tells_its_real_window_and_whether_its_template_has_tools() -> None:
    """The window is what it was started with."""
    props = {
        "default_generation_settings": {"n_ctx": 4096},
        "chat_template": "{% if tools %}...",
        "modalities": {"vision": True, "audio": False},
    }
    found = await find("llama.cpp", routes(v1_models=listed("m.gguf", owned_by="llamacpp"), props=props))
    assert found is not None
    assert (found.kind, found.models) == ("llama.cpp", ("m.gguf",))
    assert found.told("m.gguf") == {"window": 4096, "tools": True, "images": True, "reasons": None}


async def test_llama_cpp_says_it_outright_in_newer_versions() -> None:
    """`chat_template_caps` outranks the template's text."""
    props = {"chat_template": "tools", "chat_template_caps": {"supports_tools": False}}
    found = await find("llama.cpp", routes(v1_models=listed("m"), props=props))
    assert found is not None
    assert (found.windows, found.tools) == ({}, {"m": False})


async def test_ollama_windows_are_what_models_run_with() -> None:
    """Running, set in the model's file, or Ollama's own default: it cuts longer prompts silently."""
    show = {
        "a": {"capabilities": ["completion", "tools"], "model_info": {"qwen.context_length": 262144}},
        "b": {"capabilities": ["completion"], "parameters": "stop  x\nnum_ctx    16384\n"},
        "c": {"model_info": {"general.architecture": "gemma"}},
        "d": {"model_info": {"llama.context_length": 131072}},
    }
    running = {"models": [{"name": "d", "context_length": 32768}]}
    handler = routes(v1_models=listed("a", "b", "c", "d", owned_by="library"), api_show=show, api_ps=running)
    found = await find("ollama", handler)
    assert found is not None
    assert found.windows == {"a": 4096, "b": 16384, "d": 32768}
    assert found.tools == {"a": True, "b": False}


async def test_what_ollama_tells_of_one_model_is_not_said_of_another() -> None:
    """A model that takes no tools would refuse every request with some; one that only makes vectors cannot chat."""
    show = {
        "vectors": {"capabilities": ["embedding"]},
        "plain": {"capabilities": ["completion"]},
        "able": {"capabilities": ["completion", "tools", "vision", "thinking"]},
        "silent": {"capabilities": []},
    }
    found = await find("ollama", routes(v1_models=listed(*show, owned_by="library"), api_show=show))
    assert found is not None
    assert found.models == ("plain", "able", "silent")
    assert found.told("plain") == {"window": None, "tools": False, "images": False, "reasons": False}
    assert found.told("able") == {"window": None, "tools": True, "images": True, "reasons": True}
    assert set(found.told("silent").values()) == {None}


async def test_vllm_tells_its_window_in_the_list() -> None:
    """`max_model_len`; on a port that another kind usually has, it is known by its name."""
    found = await find("llama.cpp", routes(v1_models=listed("org/model", owned_by="vllm", max_model_len=8192)))
    assert found == FoundServer(found.url if found else "", "vllm", ("org/model",), {"org/model": 8192})


async def test_lm_studio_puts_loaded_models_first() -> None:
    """Embedding models cannot chat; a loaded model's window is the loaded one."""
    data = [
        {"id": "cold", "type": "llm", "state": "not-loaded", "max_context_length": 131072},
        {"id": "hot", "type": "llm", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 4096,
         "capabilities": ["tool_use"]},
        {"id": "vectors", "type": "embeddings", "state": "loaded", "max_context_length": 512},
    ]  # fmt: skip
    models = listed("cold", "hot", "vectors", owned_by="organization_owner")
    found = await find("lm_studio", routes(v1_models=models, api_v0_models={"data": data}))
    assert found is not None
    assert (found.models, found.windows) == (("hot", "cold"), {"hot": 4096, "cold": 131072})
    assert (found.tools, found.images) == ({"hot": True}, {"cold": False, "hot": False})


async def test_a_server_that_tells_no_more_is_still_found() -> None:
    """Everything beyond the list of models is extra."""
    for kind in ("ollama", "llama.cpp", "lm_studio", "vllm"):
        found = await find(kind, routes(v1_models=listed("m")))
        assert found is not None
        assert (found.models, found.windows, found.tools) == (("m",), {}, {})


async def page(_: Seen, connection: Connection) -> None:
    await connection.respond(200, b"<!doctype html><h1>It works!</h1>", kind="text/html")


async def garbage(_: Seen, connection: Connection) -> None:
    await connection.send(b"\x00\xff SSH-2.0 nonsense\r\n\r\n")
    await connection.drop()


async def hang(_: Seen, connection: Connection) -> None:
    await connection.hang()


async def other_json(_: Seen, connection: Connection) -> None:
    await connection.respond(200, {"data": {"id": "x"}, "status": "fine"})


async def deep(_: Seen, connection: Connection) -> None:
    await connection.respond(200, b"[" * 100_000)


async def redirect(_: Seen, connection: Connection) -> None:
    await connection.respond(302, b"", {"location": "/login"})


@pytest.mark.parametrize("handler", [page, garbage, other_json, deep, redirect, routes()])
async def test_something_else_on_the_port_is_no_server(handler: Handler) -> None:
    """Pages, noise, streams without end, other people's JSON."""
    assert await find("ollama", handler) is None


async def test_an_answer_without_end_is_not_read_for_long() -> None:
    """Some megabytes are enough to know that it is no model server."""
    sent = 0

    async def endless(_: Seen, connection: Connection) -> None:
        nonlocal sent
        await connection.start("application/json")
        while True:
            await connection.piece(b" " * 65_536)
            sent += 65_536

    assert await find("ollama", endless, within=10.0) is None
    assert sent < 32 * 1024 * 1024


async def test_a_program_that_hangs_costs_no_more_than_the_limit() -> None:
    """And does not keep the others from being found; a server that hangs after its list counts."""

    async def slow_extras(seen: Seen, connection: Connection) -> None:
        if seen.path == "/v1/models":
            await connection.respond(200, listed("m"))
        else:
            await connection.hang()

    async with AsyncExitStack() as stack:
        hanging = [await stack.enter_async_context(serve(hang)) for _ in range(3)]
        good = await stack.enter_async_context(serve(slow_extras))
        ports = [*(("vllm", each.port) for each in hanging), ("llama.cpp", good.port)]
        started = time.monotonic()
        found = await find_servers(ports, within=0.3)
        took = time.monotonic() - started
    assert [each.models for each in found] == [("m",)]
    assert took < 3


async def test_nothing_listens_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment would answer for every port."""
    async with serve(routes(v1_models=listed("m"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as closed:
            port = closed.extra(anyio.abc.SocketAttribute.local_port)
        assert await find_servers((("ollama", port),), within=2) == ()
        assert proxy.seen == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://127.0.0.1:99999/v1", "nonsense"])
async def test_a_server_that_cannot_be_asked_tells_nothing(url: str) -> None:
    """Whatever is wrong with it, the first call says so better."""
    assert await ask_server(url, "a key\nof two lines") is None
    assert await ask_server(url) is None


async def test_a_named_server_is_known_by_what_it_says_of_itself() -> None:
    """Behind any path, and whoever it says it is may be asked more."""

    async def handle(seen: Seen, connection: Connection) -> None:
        if seen.path == "/llm/v1/models":
            await connection.respond(body={"object": "list", "data": [{"id": "m", "owned_by": "llamacpp"}]})
        elif seen.path == "/llm/props":
            await connection.respond(body={"default_generation_settings": {"n_ctx": 5_000}})
        else:
            await connection.respond(404)

    async with serve(handle) as server:
        found = await ask_server(f"{server.url}/llm/v1/")
    assert found is not None
    assert (found.kind, found.told("m")["window"]) == ("llama.cpp", 5_000)
