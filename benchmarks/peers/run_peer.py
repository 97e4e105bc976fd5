"""Run one peer of a folder of adapters against a model's server; started by `call_overhead.py` and `many_sessions.py`.

    PYTHON run_peer.py FOLDER NAME calls URL HISTORIES [--stream] [--seconds 10]
    PYTHON run_peer.py FOLDER NAME sessions URL COUNT

The standard library only, as it runs in each peer's environment. Prints lines of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any


async def calls(make: Any, options: argparse.Namespace) -> None:
    """CPU milliseconds of a turn with one call, for each history of a file."""
    run = make("fake-k0", options.stream)
    for number in range(3):
        await run(f"warm{number}")
    for size, history in options.histories.items():
        cpu, began = list[float](), time.perf_counter()
        await run(f"first{size}", history)
        while len(cpu) < 3 or (len(cpu) < 50 and time.perf_counter() - began < options.seconds):
            before = time.process_time()
            await run(f"h{size}_{len(cpu)}", history)
            cpu.append((time.process_time() - before) * 1e3)
        print(json.dumps({"size": int(size), "cpu": cpu}), flush=True)


async def sessions(make: Any, options: argparse.Namespace) -> None:
    """So many sessions in a turn of two calls at once."""
    run = make("fake-k1-n1-d200", options.stream)
    await run("warm")
    print(json.dumps(await under_load(int(options.argument), lambda number: run(f"s{number}"))), flush=True)


async def under_load(count: int, turn: Any) -> dict[str, Any]:
    """What `count` turns at once cost this process."""
    errors: dict[str, int] = {}
    lag, over = 0.0, False

    async def watch() -> None:
        nonlocal lag
        while not over:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            lag = max(lag, time.perf_counter() - before - 0.01)

    async def one(number: int) -> None:
        try:
            await turn(number)
        except Exception as error:  # whatever a peer raises is what the figure is about
            said = f"{type(error).__name__}: {error}"[:80]
            errors[said] = errors.get(said, 0) + 1

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    before, cpu, wall = memory("VmRSS"), time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    over = True
    await watching
    return {"wall": wall, "cpu": cpu, "lag": lag, "before": before, "peak": memory("VmHWM"), "errors": errors}


def memory(field: str) -> float:
    """Megabytes."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(field))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("folder", "name", "what", "url", "argument"):
        parser.add_argument(name)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    options.histories = json.loads(Path(options.argument).read_text("utf-8")) if options.what == "calls" else {}
    sys.path.insert(0, options.folder)
    import common  # type: ignore[import-not-found]  # both are the folder's

    common.BASE = f"{options.url}/v1"
    import peers  # type: ignore[import-not-found]

    asyncio.run({"calls": calls, "sessions": sessions}[options.what](peers.PEERS[options.name][0], options))


if __name__ == "__main__":
    main()
