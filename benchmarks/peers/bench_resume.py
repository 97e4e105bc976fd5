"""How long another runtime takes to load a stored conversation: run by `benchmarks/resume_speed.py --peer NAME=PYTHON`.

    python bench_resume.py agents|nanobot MESSAGES.json RUNS

The messages are Chat Completions dicts. They are stored with the runtime's own store, in the current folder, and loaded
again RUNS times as it resumes a session: `SQLiteSession(...).get_items()` of openai-agents, and
`SessionManager.get_or_create(...)` of nanobot with its cache emptied. Runs in the peer's own interpreter.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any


def items_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as items of the Responses protocol, which openai-agents keeps."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            call = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **call})
            continue
        items.append({"role": message["role"], "content": message["content"]})
        for each in message.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": each["id"], **each["function"]})
    return items


def agents(messages: list[dict[str, Any]], folder: Path) -> tuple[Callable[[], int], Path, str]:
    from agents import SQLiteSession

    items = items_of(messages)

    async def write() -> None:
        session = SQLiteSession("bench", folder / "agents.db")
        await session.add_items(items)  # type: ignore[arg-type]
        session.close()

    async def load() -> int:
        session = SQLiteSession("bench", folder / "agents.db")
        found = len(await session.get_items())
        session.close()
        return found

    asyncio.run(write())
    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(load()), folder, f"openai-agents {version('openai-agents')}, SQLiteSession"


def nanobot(messages: list[dict[str, Any]], folder: Path) -> tuple[Callable[[], int], Path, str]:
    from loguru import logger
    from nanobot.session.manager import SessionManager

    logger.remove()
    (folder / "workspace").mkdir()
    manager = SessionManager(folder / "workspace", sessions_root=folder / "sessions")
    session = manager.get_or_create("cli:bench")
    session.messages = [{**message, "timestamp": "2026-11-30T18:00:01.250000"} for message in messages]
    manager.save(session)

    def load() -> int:
        manager.invalidate("cli:bench")
        return len(manager.get_or_create("cli:bench").messages)

    return load, folder / "sessions", f"nanobot-ai {version('nanobot-ai')}, SessionManager"


def main() -> None:
    name, source, runs = sys.argv[1:]
    messages = json.loads(Path(source).read_text())
    with tempfile.TemporaryDirectory(dir=".") as made:
        load, stored, what = {"agents": agents, "nanobot": nanobot}[name](messages, Path(made))
        found = load()
        walls, used = [], []
        for _ in range(int(runs)):
            wall, cpu = time.perf_counter(), time.process_time()
            load()
            walls.append((time.perf_counter() - wall) * 1e3)
            used.append((time.process_time() - cpu) * 1e3)
        size = sum(path.stat().st_size for path in stored.rglob("*") if path.is_file())
    print(
        f"{what}: {min(walls):9.1f} min {statistics.median(walls):9.1f} median   CPU {min(used):9.1f} min   "
        f"{found:,} messages, {size / found:5.0f} bytes a message"
    )


if __name__ == "__main__":
    main()
