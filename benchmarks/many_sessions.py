"""Many sessions in a turn at once, against a server that takes 200 ms for each answer: side by side.

    python benchmarks/many_sessions.py [--counts 100 1000] [--peers FOLDER] [--only NAME...] [--patience 300]

Each session makes one turn of two calls: the model asks for a tool, gets its result and answers, so that nobody can be
done before 0.4 seconds. Every contender runs in a process of its own; the server is another. Printed for each:
wall and CPU seconds, how late the event loop was at most, peak memory (MB), what each turn took of it, and errors.

    bare HTTP     httpx2 as it comes, with room for 2,000 connections
    bare SDK      openai's `chat.completions.create`
    moonwake      agents with their sessions on disk: opened before, the turn measured

`--peers` is a folder of adapters with their environments (`peers/README.md`). Nothing leaves this machine. Target:
1,000 of Moonwake's sessions in at most 12 seconds on a quiet machine of two cores, without an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.loopback import (
    PROMPT,
    SYSTEM,
    calibrate,
    model_info,
    open_many_files,
    peers_in,
    run_child,
    runtime,
    server,
    take_turn,
)
from benchmarks.peers.run_peer import under_load

MODEL, QUICK, TARGET = "fake-k1-n1-d200", "fake-k1-n1-d0", 12.0
PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"type": "function", "function": {"name": "bench_echo", "description": "Echo.", "parameters": PARAMETERS}}


async def loop_over(ask: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], model: str) -> None:
    """A turn as one writes it by hand; `ask` gives the reply to a body."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        reply = await ask({"model": model, "messages": messages, "tools": [TOOL]})
        messages.append(reply)
        if not reply.get("tool_calls"):
            assert "42" in reply["content"]
            return
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "item"} for call in reply["tool_calls"]]


async def bare_http(url: str, count: int) -> dict[str, Any]:
    import httpx2

    limits = httpx2.Limits(max_connections=2000, max_keepalive_connections=2000)
    async with httpx2.AsyncClient(limits=limits, timeout=120, trust_env=False) as http:

        async def ask(body: dict[str, Any]) -> dict[str, Any]:
            response = await http.post(f"{url}/v1/chat/completions", json=body)
            message: dict[str, Any] = response.json()["choices"][0]["message"]
            return message

        await loop_over(ask, QUICK)
        return await under_load(count, lambda number: loop_over(ask, MODEL))


async def bare_sdk(url: str, count: int) -> dict[str, Any]:
    import openai

    async with openai.AsyncOpenAI(api_key="x", base_url=f"{url}/v1") as sdk:

        async def ask(body: dict[str, Any]) -> dict[str, Any]:
            reply = await sdk.chat.completions.create(**body)
            message: dict[str, Any] = reply.choices[0].message.model_dump(exclude_none=True)
            return message

        await loop_over(ask, QUICK)
        return await under_load(count, lambda number: loop_over(ask, MODEL))


async def moonwake(url: str, count: int) -> dict[str, Any]:
    from runtime.providers.openai_chat import OpenAIChat
    from runtime.tools.function import tool

    @tool
    def bench_echo(text: str) -> str:
        """Echo.

        text: what to echo
        """
        return text

    provider = OpenAIChat("bench", "x", f"{url}/v1")
    with tempfile.TemporaryDirectory() as folder:
        async with runtime(Path(folder), model_info(MODEL), provider, [bench_echo]) as opened:
            agents = [await opened.supervisor.agent("assistant", f"s{number}") for number in range(count + 1)]
            await take_turn(agents.pop())  # imports, the vocabulary, the first connection
            return await under_load(count, lambda number: take_turn(agents[number]))


CONTENDERS = {"bare HTTP": bare_http, "bare SDK": bare_sdk, "moonwake": moonwake}


def show(name: str, count: int, lines: list[dict[str, Any]]) -> None:
    found: dict[str, Any] = {}
    for line in lines:
        found |= line
    if "wall" not in found:
        print(f"{name:20s} {count:6,}  {found.get('failed', 'said nothing')[:120]}", flush=True)
        return
    each = (found["peak"] - found["before"]) * 1e3 / count
    errors = sum(found["errors"].values())
    print(
        f"{name:20s} {count:6,} {found['wall']:9.2f} {found['cpu']:9.2f} {found['lag'] * 1e3:9.0f} "
        f"{found['peak']:9.0f} {each:9.0f} {errors:7,}",
        *(f"({number:,} times {said})" for said, number in found["errors"].items()),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 1000], help="sessions")
    parser.add_argument("--peers", type=lambda text: Path(text).resolve(), help="a folder of adapters")
    parser.add_argument("--only", nargs="+", default=[], help="of the peers")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds that a contender may take")
    parser.add_argument("--child", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    open_many_files()
    if options.child:
        print(json.dumps(asyncio.run(CONTENDERS[options.child](options.url, options.counts[0]))))
        return
    print(f"a fixed loop takes {calibrate():.1f} ms of CPU")
    print(
        f"{'':20s} {'at once':>6s} {'wall s':>8s} {'CPU s':>9s} {'late ms':>9s} {'peak MB':>9s} {'KB each':>9s}  errors"
    )
    wall = 0.0
    with server() as url:
        for count in options.counts:
            for name in CONTENDERS:
                child = [sys.executable, __file__, "--child", name, "--url", url, "--counts", str(count)]
                lines = list(run_child(child, options.patience))
                show(name, count, lines)
                if name == "moonwake" and lines and "wall" in lines[0]:
                    wall = lines[0]["wall"]
            for name, command in peers_in(options.peers, options.only).items():
                show(
                    name,
                    count,
                    list(run_child([*command, "sessions", url, str(count)], options.patience, options.peers)),
                )
    print(f"a fixed loop takes {calibrate():.1f} ms of CPU; Moonwake's target is {TARGET:.0f} s: {wall:.2f} s")


if __name__ == "__main__":
    main()
