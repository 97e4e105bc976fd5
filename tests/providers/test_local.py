"""The embedded model, for real: llama.cpp in a child process, on both backends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from governors.messages import AssistantMessage, Message, Text, UserMessage
from governors.wire import WIRES
from runtime.providers.base import Finished, Provider, Request, TextPiece
from runtime.providers.local import Local, is_installed
from runtime.providers.openai_responses import OpenAIResponses
from runtime.providers.weights import find_model

WEIGHTS = find_model()
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not is_installed() or WEIGHTS is None, reason="the embedded model is not there"),
]


@pytest.fixture(scope="module")
async def local(anyio_backend: str) -> AsyncIterator[Local]:
    """One server for each backend: starting it costs a second."""
    assert WEIGHTS is not None
    provider = Local(WEIGHTS, window=512, threads=1)
    yield provider
    await provider.close()


def ask(local: Local, *texts: str, most: int = 8) -> Request:
    """A request whose messages alternate between user and assistant, behind a short system message."""
    roles = ("user", "assistant")
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    messages += [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    info = local.model_info()
    return Request.of(info, {"model": info.id, "messages": messages, "max_tokens": most, "temperature": 0})


async def answer(local: Provider, request: Request) -> tuple[str, Finished]:
    """The text as it streamed, and the end."""
    text, last = "", None
    with anyio.fail_after(120):
        async with local.stream(request) as events:
            async for event in events:
                assert not isinstance(last, Finished)
                last = event
                text += event.text if isinstance(event, TextPiece) else ""
    assert isinstance(last, Finished)
    return text, last


async def kill(local: Local) -> None:
    """kill -9 for the server, and wait until it is gone."""
    assert local.pid is not None
    os.kill(local.pid, signal.SIGKILL)
    with anyio.fail_after(10):
        while local.pid is not None:
            await anyio.lowlevel.checkpoint()


async def test_an_answer_streams(local: Local) -> None:
    """Text comes in pieces, the pieces are the message, and the server counted its tokens."""
    text, end = await answer(local, ask(local, "Say hello."))
    assert end.problem is None
    assert text and end.message.text == text
    assert end.message.stop in ("stop", "length")
    assert end.message.usage is not None and end.message.usage.output > 0 and end.message.usage.prompt > 10
    assert end.message.wire == "openai_chat"


async def test_an_answer_streams_over_responses(local: Local) -> None:
    """The same server speaks the newer protocol, with usage, and reads a repeated prefix from its cache."""
    child = (await local.ready()).child
    info = replace(local.model_info(), wire="openai_responses")
    wire = WIRES["openai_responses"]
    history: list[Message] = [UserMessage((Text("My name is Ada and I like long walks and green tea. Say hello."),))]
    # This server breaks some connections that are used again (see `Local`).
    provider = OpenAIResponses("local", child.key, f"{child.url}/v1", headers={"connection": "close"})
    for _ in range(2):
        parts = wire.encode(history, system="Be brief.", tools=(), abilities=info.abilities, model=info.id)
        body = wire.body(parts, model=info.id, max_output=16, abilities=info.abilities)
        text, end = await answer(provider, Request.of(info, wire.mark_cache({**body, "temperature": 0})))
        assert end.problem is None
        assert text and end.message.text == text
        assert end.message.usage is not None and end.message.usage.output > 0
        history += [end.message, UserMessage((Text("What is my name?"),))]
    assert end.message.usage.cache_read > 20
    assert end.message.wire == "openai_responses"
    await provider.close()


async def test_a_repeated_prefix_is_read_from_the_cache(local: Local) -> None:
    """The second request of a conversation pays for its new tail alone."""
    opening = "My name is Ada and I like long walks, chess and green tea. Remember that."
    first, _ = await answer(local, ask(local, opening))
    _, end = await answer(local, ask(local, opening, first, "What is my name?"))
    assert end.message.usage is not None
    assert end.message.usage.cache_read > 20
    assert end.message.usage.plain < end.message.usage.cache_read


async def test_a_call_cancelled_in_mid_stream_leaves_the_server_usable(local: Local) -> None:
    """Leaving a stream early closes its connection, and the next call is answered by the same process."""
    with anyio.fail_after(120), anyio.CancelScope() as scope:
        async with local.stream(ask(local, "Count from one to a hundred.", most=300)) as events:
            async for event in events:
                if isinstance(event, TextPiece):
                    scope.cancel()
    assert scope.cancelled_caught
    before = local.pid
    text, end = await answer(local, ask(local, "Say hello."))
    assert text and end.problem is None
    assert local.pid == before


async def test_a_killed_server_is_started_anew(local: Local) -> None:
    """kill -9 of the child between two calls costs a restart and nothing else."""
    await local.warm()
    before = local.pid
    await kill(local)
    text, end = await answer(local, ask(local, "Say hello."))
    assert text and end.problem is None
    assert local.pid not in (None, before)


async def test_a_server_killed_under_a_call_is_told(local: Local) -> None:
    """After text was shown the call is not repeated: it ends with what happened, and the next one works."""
    last: object = None
    with anyio.fail_after(120):
        async with local.stream(ask(local, "Count from one to a hundred.", most=300)) as events:
            async for event in events:
                if isinstance(event, TextPiece) and local.pid is not None:
                    os.kill(local.pid, signal.SIGKILL)
                last = event
    assert isinstance(last, Finished) and last.problem is not None
    assert last.problem.kind == "network" and "signal 9" in last.problem.text
    _, end = await answer(local, ask(local, "Say hello."))
    assert end.problem is None


async def test_a_prompt_over_the_window_is_an_overflow_with_its_numbers(local: Local) -> None:
    """The server's refusal carries the window and the prompt in tokens."""
    _, end = await answer(local, ask(local, "word " * 700))
    assert end.problem is not None
    assert end.problem.kind == "overflow"
    assert end.problem.window == 512
    assert end.problem.prompt is not None and end.problem.prompt > 700


async def test_first_calls_share_one_start(anyio_backend: str) -> None:
    """Calls that come together while nothing runs wait for one server, and `close` leaves no process."""
    assert WEIGHTS is not None
    local = Local(WEIGHTS, window=512, threads=1)
    seen: list[int | None] = []

    async def call(number: int) -> None:
        await local.warm()
        seen.append(local.pid)

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(call, number)
    assert seen[0] is not None and len(set(seen)) == 1
    await local.close()
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)
    _, end = await answer(local, ask(local, "Hello?"))
    assert end.problem is not None and "closed" in end.problem.text
    assert end.message == AssistantMessage((), "error", "smollm2-135m", "openai_chat")


PARENT = """
import os, signal, sys, anyio
from pathlib import Path
from runtime.providers.local import Local

async def main():
    local = Local(Path(sys.argv[1]), window=512, threads=1)
    await local.warm()
    copy = os.fork()  # it keeps every pipe of its parent open, as a forked worker would
    if not copy:
        signal.pause()
    print(local.pid, copy, flush=True)
    await anyio.sleep_forever()

anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="watches the process through Linux's pidfd")
def test_the_server_dies_with_a_killed_parent(anyio_backend_name: str) -> None:
    """A parent that had no time to clean up leaves no server behind, though a copy of it holds the pipe open."""
    import select

    command = [sys.executable, "-W", "ignore", "-c", PARENT, str(WEIGHTS), anyio_backend_name]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server, copy = (int(number) for number in parent.stdout.readline().split())
        watched = os.pidfd_open(server)
        parent.kill()
        ended, _, _ = select.select([watched], [], [], 10)
        os.close(watched)
        os.kill(copy, signal.SIGKILL)
    assert ended


def test_the_key_is_in_no_argument_list_and_needed() -> None:
    """Another user of the machine can neither read the key nor do without it."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    from runtime.providers.local_child import SERVER

    settings = {
        "model": str(WEIGHTS),
        "key": "s3cret",
        "window": 512,
        "threads": 1,
        "parent": os.getpid(),
        "sampling": {},
    }
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps(settings).encode() + b"\n")
        child.stdin.flush()
        url = json.loads(child.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{url}/props", timeout=60)
        refused.value.close()
        assert refused.value.code == 401
        child.stdin.close()
        try:
            assert child.wait(timeout=20) == 0
        finally:
            child.kill()
