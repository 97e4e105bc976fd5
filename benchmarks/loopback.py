"""What the benchmarks of model calls share: the server process, a conversation in three forms, a runtime, peers.

Everything is sent to 127.0.0.1. A folder of peers is somebody's comparison with other runtimes (`peers/README.md`).
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text, ToolCall
from governors.wire.base import Abilities
from runtime.agent.agent import Agent
from runtime.app import Runtime
from runtime.providers.base import ChosenModel, ModelInfo, Price, Provider
from runtime.session.entries import MessageRecord, ResultRecord
from runtime.tools.base import Tool

HERE = Path(__file__).parent
PROMPT = "Please do the task."
SYSTEM = "You are a helpful assistant. Use tools when needed."
_WORDS = """the archive import fails twice because reader value branch path caller passes unchecked test keeps line
return None self.offset = data[place:] raise ValueError(f'{name}') # why not 2026-11-30T10:00:00Z status=200 took=3ms
"""


@contextmanager
def server() -> Iterator[str]:
    """The URL of a model's server in a process of its own."""
    command = [sys.executable, str(HERE / "model_server.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()  # it serves until then
        process.wait(10)


def conversation(size: int, seed: int = 1) -> list[dict[str, Any]]:
    """About `size` messages as Chat Completions has them, 5.7 KB each: turns of three calls with long results, of a
    tool whose old results are not shortened."""
    rng, messages = random.Random(seed), list[dict[str, Any]]()
    words = _WORDS.split()

    def text(characters: int) -> str:
        return " ".join(rng.choices(words, k=max(1, characters // 7)))

    while len(messages) < size:
        messages.append({"role": "user", "content": text(200)})
        for _ in range(3):
            function = {"name": "look_up", "arguments": json.dumps({"path": f"src/{len(messages)}.py"})}
            calls = [{"id": f"call_{len(messages)}", "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": text(80), "tool_calls": calls})
            messages.append(
                {"role": "tool", "tool_call_id": calls[0]["id"], "content": text(rng.randint(6_000, 21_000))}
            )
        messages.append({"role": "assistant", "content": text(1_600)})
    return messages


def model_info(name: str) -> ModelInfo:
    """A model that nothing has to be cut for."""
    free = Price(0.0, 0.0, 0.0, 0.0, 0.0)
    return ModelInfo(name, "bench", "openai_chat", 100_000_000, 1_000, Abilities(), price=free)


@asynccontextmanager
async def runtime(
    folder: Path, model: ModelInfo, provider: Provider, tools: Sequence[Tool] = ()
) -> AsyncIterator[Runtime]:
    """A runtime as people have it, with its sessions in `folder`."""
    chosen = ChosenModel(model, provider)
    home = {"HOME": str(folder / "home")}
    async with Runtime.open(
        folder / "workspace", model=chosen, tools=tools, settings={"tools.exec": "off"}, environ=home
    ) as opened:
        yield opened


async def remember(agent: Agent, messages: Sequence[dict[str, Any]]) -> None:
    """Put a conversation into the session of an agent."""
    replies: dict[str, tuple[int, int]] = {}
    for message in messages:
        content = (Text(message["content"]),)
        if message["role"] == "user":
            await agent.session.append(MessageRecord(role="user", content=content))
        elif message["role"] == "tool":
            call = replies[message["tool_call_id"]]
            await agent.session.append(ResultRecord(call=call, tool="look_up", content=content))
        else:
            called = message.get("tool_calls", ())
            calls = [ToolCall(each["id"], each["function"]["name"], each["function"]["arguments"]) for each in called]
            stop = "tool_use" if calls else "stop"
            record = MessageRecord(
                role="assistant", content=(*content, *calls), stop=stop, model="fake", wire="openai_chat"
            )
            (entry,) = await agent.session.append(record)
            replies.update({call.id: (entry.id, index) for index, call in enumerate(calls)})


async def take_turn(agent: Agent) -> None:
    """One turn, to its end. Raises what went wrong."""
    last = [event async for event in agent.send(PROMPT)][-1]
    if getattr(last, "error", None) or "42" not in getattr(last, "text", ""):
        raise RuntimeError(f"the turn failed: {last}")


def peers_in(folder: Path | None, wanted: Sequence[str]) -> dict[str, list[str]]:
    """The peers of a folder by name, each with the command that runs it."""
    if folder is None:
        return {}
    listing = "import json, peers; print(json.dumps({name: it[1] for name, it in peers.PEERS.items()}))"
    told = subprocess.run([sys.executable, "-c", listing], cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(told.stdout)
    commands = {}
    for name, venv in found.items():
        python = folder / venv / "bin" / "python"
        if python.exists() and (not wanted or name in wanted):
            commands[name] = [str(python), str(HERE / "peers" / "run_peer.py"), str(folder), name]
    return commands


def run_child(command: Sequence[str], seconds: float, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """The lines of JSON that a child prints; what went wrong as the last of them, under `failed`."""
    environ = dict(os.environ)
    if folder is not None:
        environ |= {"HOME": str(folder / "home"), "TIKTOKEN_CACHE_DIR": str(folder / "tiktoken_cache")}
        environ |= {"LANGSMITH_TRACING": "false", "OPENAI_API_KEY": "x", "NB_WINDOW": "100000000"}
    try:
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=seconds)
        output, failed = done.stdout, done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        failed = [f"not done after {seconds:.0f} seconds"]
    yield from (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    if failed:
        yield {"failed": failed[0]}


def calibrate() -> float:
    """CPU milliseconds of a fixed loop, the best of three: how fast the machine is at this moment."""
    best = float("inf")
    for _ in range(3):
        began, total = time.process_time(), 0
        for number in range(300_000):
            total += number * number % 7
        best = min(best, (time.process_time() - began) * 1e3)
    return best


def middle(values: Sequence[float]) -> float:
    return statistics.median(values)


def open_many_files() -> None:
    """Sessions have files and connections: as many as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
