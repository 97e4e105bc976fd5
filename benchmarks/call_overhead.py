"""What a model call costs beside a bare HTTP client that sends the same bytes: CPU of the whole process, side by side.

    python benchmarks/call_overhead.py [--sizes 50 1000 5000] [--rounds 5] [--seconds 1.5]
                                       [--peers FOLDER] [--only NAME...] [--json FILE]

A tool-heavy conversation of so many messages (0.3, 5.7 and 28 MB) is in a session on disk. Each turn is one call that
is answered at once with a short text. The contenders take turns, `--rounds` times, for at most `--seconds` each time;
figures are medians over the rounds, in milliseconds of CPU a call, with the multiple of the bare client's:

    bare HTTP        httpx2, the bytes that Moonwake sent last
    SDK create       openai's `chat.completions.create(messages=...)`
    SDK extra_body   the same with the messages in `extra_body`
    provider         Moonwake's, with the finished bytes
    turn             Moonwake's whole turn: message, request, outcome and reply on disk, prompt, governors, checks

`--peers` is a folder of adapters with their environments (`peers/README.md`); each peer runs in a process of its own
after that, with the same conversation as message dicts. Nothing leaves this machine. Targets: at most 1.5 times
the bare client at every size; for a short turn at most 2 ms beyond it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.loopback import (
    calibrate,
    conversation,
    middle,
    model_info,
    peers_in,
    remember,
    run_child,
    runtime,
    server,
    take_turn,
)
from runtime.providers.base import Request, StreamEvent
from runtime.providers.openai_chat import OpenAIChat

FACTOR, BEYOND = 1.5, 2.0  # the targets: times the bare client; milliseconds beyond it for a short turn
Run = Callable[[], Awaitable[object]]


class Watched(OpenAIChat):
    """Keeps what it was given last."""

    last: Request | None = None

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        self.last = request
        return super().stream(request)


async def drain(response: Any) -> None:
    async for _ in response.aiter_bytes():
        pass
    await response.aclose()


@asynccontextmanager
async def contenders(url: str, content: bytes, *, stream: bool) -> AsyncIterator[dict[str, Run]]:
    """The bare client and the SDK, sending `content`."""
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=2000, max_keepalive_connections=2000)
    bare = httpx2.AsyncClient(limits=limits, timeout=120, trust_env=False)
    options = b',"stream":true,"stream_options":{"include_usage":true}}'
    sent = content[:-1] + options if stream else content
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    sdk = openai.AsyncOpenAI(api_key="x", base_url=f"{url}/v1", max_retries=0)
    body = json.loads(content)
    extra = {key: value for key, value in body.items() if key != "model"}
    streaming: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}

    async def bare_call() -> None:
        request = bare.build_request("POST", f"{url}/v1/chat/completions", content=sent, headers=headers)
        response = await bare.send(request, stream=stream)
        if stream:
            await drain(response)
        else:
            response.json()

    async def sdk_call(**fields: Any) -> None:
        reply = await sdk.chat.completions.create(**fields, **streaming)
        if stream:
            async for _ in reply:
                pass

    async with bare, sdk:
        yield {
            "bare HTTP": bare_call,
            "SDK create": partial(sdk_call, **body),
            "SDK extra_body": partial(sdk_call, model=body["model"], messages=[], extra_body=extra),
        }


async def provider_call(provider: OpenAIChat, request: Request) -> None:
    async with provider.stream(request) as events:
        async for _ in events:
            pass


async def timed(run: Run, seconds: float) -> float:
    """CPU milliseconds of one call, over as many as fit."""
    cpu, began, done = time.process_time(), time.perf_counter(), 0
    while not done or (done < 200 and time.perf_counter() - began < seconds):
        await run()
        done += 1
    return (time.process_time() - cpu) * 1e3 / done


async def measure(url: str, size: int, options: argparse.Namespace, *, stream: bool) -> dict[str, list[float]]:
    """CPU milliseconds a call, by contender, one figure a round."""
    model = model_info("fake-k0")
    provider = Watched("bench", "x", f"{url}/v1", streams=stream)
    with tempfile.TemporaryDirectory() as folder:
        async with runtime(Path(folder), model, provider) as opened:
            agent = await opened.supervisor.agent("assistant")
            await remember(agent, conversation(size))
            await take_turn(agent)  # counts and encodes the whole conversation: once in a session's life
            await take_turn(agent)
            assert provider.last is not None
            content = provider.last.content
            async with contenders(url, content, stream=stream) as runs:
                runs["provider"] = partial(provider_call, provider, Request(model, content))
                runs["turn"] = partial(take_turn, agent)
                found: dict[str, list[float]] = {name: [] for name in runs}
                for run in runs.values():
                    await run()
                for _ in range(options.rounds):
                    for name, run in runs.items():
                        found[name].append(await timed(run, options.seconds))
    print(f"\n{size:,} messages, {len(content) / 1e6:.1f} MB, streaming {'on' if stream else 'off'}", flush=True)
    bare = middle(found["bare HTTP"])
    for name, figures in found.items():
        show(name, middle(figures), bare)
    return found


def show(name: str, cpu: float, bare: float) -> None:
    print(f"  {name:22s} {cpu:10.3f} ms  {cpu / bare:7.2f}x  {cpu - bare:+10.3f} ms", flush=True)


def measure_peers(url: str, options: argparse.Namespace, bare: dict[tuple[int, bool], float]) -> dict[str, Any]:
    """CPU milliseconds a turn of each peer, by size and streaming."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        histories = Path(folder) / "histories.json"
        histories.write_text(json.dumps({size: conversation(size) for size in options.sizes}), "utf-8")
        for name, command in peers_in(options.peers, options.only).items():
            for stream in (False, True):
                flags = ["--stream"] if stream else []
                child = [*command, "calls", url, str(histories), "--seconds", str(options.seconds * 3), *flags]
                print(f"\n{name}, streaming {'on' if stream else 'off'}")
                for line in run_child(child, options.patience, options.peers):
                    if "failed" in line:
                        print(f"  {line['failed'][:160]}", flush=True)
                        continue
                    results[f"{name} {line['size']} {stream}"] = line["cpu"]
                    show(f"{line['size']:,} messages", middle(line["cpu"]), bare[line["size"], stream])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 1000, 5000], help="messages")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="for each contender in each round")
    parser.add_argument("--peers", type=lambda text: Path(text).resolve(), help="a folder of adapters")
    parser.add_argument("--only", nargs="+", default=[], help="of the peers")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that a peer may take")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    options = parser.parse_args()
    print(f"a fixed loop takes {calibrate():.1f} ms of CPU")
    bare: dict[tuple[int, bool], float] = {}
    figures: dict[str, Any] = {}
    missed = []
    with server() as url:
        for size in options.sizes:
            for stream in (False, True):
                found = asyncio.run(measure(url, size, options, stream=stream))
                bare[size, stream] = floor = middle(found["bare HTTP"])
                figures |= {f"{name} {size} {stream}": values for name, values in found.items()}
                for name in ("provider", "turn"):
                    cpu = middle(found[name])
                    if cpu > FACTOR * floor and (name == "provider" or cpu - floor > BEYOND):
                        missed.append(f"{name}, {size:,} messages, streaming {'on' if stream else 'off'}")
        figures |= measure_peers(url, options, bare)
    print(f"\na fixed loop takes {calibrate():.1f} ms of CPU")
    print(f"over {FACTOR} times the bare client (a turn: and over {BEYOND} ms more): {'; '.join(missed) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
