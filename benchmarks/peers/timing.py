"""What every contender's process shares: timing calls, counting the characters that a call tokenises, printing lines.

The standard library only, as it runs in each virtual environment. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

Given = TypeVar("Given")

MAX_OUTPUT, MARGIN = 8_192, 1_024  # tokens that every contender keeps free of its window
ROUNDS_OF_LOOP = 300_000


def calibrate() -> dict[str, float]:
    """Milliseconds of one fixed loop, the best of three: how fast the machine is at this moment."""
    best = {"wall": float("inf"), "cpu": float("inf")}
    for _ in range(3):
        wall, cpu, total = time.perf_counter(), time.process_time(), 0
        for number in range(ROUNDS_OF_LOOP):
            total += number * number % 7
        best["cpu"] = min(best["cpu"], (time.process_time() - cpu) * 1e3)
        best["wall"] = min(best["wall"], (time.perf_counter() - wall) * 1e3)
    return best


def stay_offline() -> None:
    """Raise when anything in this process connects: a figure must not contain a network's delays."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo"):
            raise RuntimeError(f"the benchmark is offline, but something asked for {arguments!r}")

    sys.addaudithook(refuse)


@contextmanager
def counted_characters() -> Iterator[list[int]]:
    """The lengths of all texts that tiktoken encodes inside."""
    import tiktoken

    lengths: list[int] = []
    originals = {name: getattr(tiktoken.Encoding, name) for name in ("encode", "encode_ordinary")}

    def wrapped(original: Callable[..., list[int]]) -> Callable[..., list[int]]:
        def encode(self: Any, text: str, **options: Any) -> list[int]:
            lengths.append(len(text))
            return original(self, text, **options)

        return encode

    for name, original in originals.items():
        setattr(tiktoken.Encoding, name, wrapped(original))
    try:
        yield lengths
    finally:
        for name, original in originals.items():
            setattr(tiktoken.Encoding, name, original)


class Bench:
    """Measures cases and prints each as a line of JSON."""

    def __init__(self, who: str, packages: list[str]) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("folder", type=Path, help="with history-SIZE.json in it")
        parser.add_argument("--size", type=int, required=True, help="messages")
        parser.add_argument("--windows", type=int, nargs="+", required=True, help="tokens")
        options = parser.parse_args()
        self.windows: list[int] = options.windows
        self.size: int = options.size
        self._who = who
        self.found: dict[str, Any] = json.loads((options.folder / f"history-{self.size}.json").read_text("utf-8"))
        stay_offline()
        self._print(versions={name: version(name) for name in packages}, calibration=calibrate())

    def measure(
        self,
        case: str,
        window: int,
        prepare: Callable[[], Given],
        action: Callable[[Given], int],
        *,
        least: int = 2,
        most: int = 40,
        seconds: float = 2.0,
    ) -> None:
        """Time `action(prepare())`, at least `least` and at most `most` times, and no longer than `seconds` after
        that. `action` gives the number of messages in the request. The first call warms up: its characters are
        counted, its time is not."""
        given = prepare()
        with counted_characters() as lengths:
            kept = action(given)
        wall: list[float] = []
        cpu: list[float] = []
        gc.collect()
        began = time.perf_counter()
        while len(wall) < least or (len(wall) < most and time.perf_counter() - began < seconds):
            given = prepare()
            cpu_before = time.process_time()
            wall_before = time.perf_counter()
            action(given)
            wall.append((time.perf_counter() - wall_before) * 1e3)
            cpu.append((time.process_time() - cpu_before) * 1e3)
        self._print(case=case, window=window, size=self.size, wall=wall, cpu=cpu, characters=sum(lengths), kept=kept)

    def close(self) -> None:
        self._print(calibration=calibrate())

    def _print(self, **fields: Any) -> None:
        print(json.dumps({"who": self._who, **fields}), flush=True)
