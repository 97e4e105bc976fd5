"""nanobot-ai: what building its system prompt costs, for `benchmarks/prompt_speed.py`.

    PYTHON_WITH_NANOBOT bench_nanobot_prompt.py WORKSPACE CALLS

`ContextBuilder.build_system_prompt` is what nanobot calls for each turn. Prints JSON: milliseconds of each call (wall
and processor), files opened by one call, characters of the prompt. Only the standard library and nanobot are needed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from loguru import logger
from nanobot.agent.context import ContextBuilder

logger.remove()  # its log lines are not what is measured


def opened_by(builder: ContextBuilder) -> int:
    opened: list[object] = []
    listening = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if listening and event == "open" and not isinstance(arguments[0], int):
            opened.append(arguments[0])

    sys.addaudithook(hook)
    builder.build_system_prompt(channel="cli")
    listening = False
    return len(opened)


def main() -> None:
    workspace, calls = Path(sys.argv[1]), int(sys.argv[2])
    builder = ContextBuilder(workspace)
    text = builder.build_system_prompt(channel="cli")  # templates are compiled, modules loaded
    wall, processor = [], []
    for _ in range(calls):
        began, began_cpu = time.perf_counter(), time.process_time()
        builder.build_system_prompt(channel="cli")
        wall.append((time.perf_counter() - began) * 1e3)
        processor.append((time.process_time() - began_cpu) * 1e3)
    print(json.dumps({"wall": wall, "cpu": processor, "opened": opened_by(builder), "characters": len(text)}))


if __name__ == "__main__":
    main()
