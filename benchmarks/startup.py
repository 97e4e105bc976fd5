"""What importing and starting costs, in one run against its own baselines.

    python benchmarks/startup.py [--rounds 15]

Prints medians in milliseconds: interpreters are started in turn (baseline, ours, baseline, ours ...), so that a
machine that slows down slows both. Targets: `import runtime` at most 60 ms beyond pydantic's TypeAdapter and anyio,
`moonwake --version` at most 150 ms beyond `python -c pass`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

BASE = "from pydantic import TypeAdapter; import anyio"
CASES = {
    "python -c pass": ["-c", "pass"],
    "pydantic TypeAdapter + anyio": ["-c", BASE],
    "... and import runtime": ["-c", f"{BASE}; import runtime"],
    "... and Runtime, tool, Scripted": ["-c", f"{BASE}; from runtime import Runtime, Scripted, tool"],
    "... and import governors": ["-c", f"{BASE}; import governors"],
    "moonwake --version": [str(Path(sys.executable).with_name("moonwake")), "--version"],
    "moonwake --help": [str(Path(sys.executable).with_name("moonwake")), "--help"],
}
LIMITS = {
    "... and import runtime": ("pydantic TypeAdapter + anyio", 60.0),
    "moonwake --version": ("python -c pass", 150.0),
}
HEAVY = ("openai", "anthropic", "typer", "rich", "jinja2", "prompt_toolkit", "tiktoken", "httpx2", "tenacity")


def once(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1_000


def heavy_modules() -> list[str]:
    """Which heavy packages the public names pull in."""
    code = f"import sys; {BASE}; from runtime import Runtime, Scripted, tool; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    return [name for name in HEAVY if name in loaded]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(options.rounds + 1):
        for name, arguments in CASES.items():
            times[name].append(once(arguments))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    beyond = {name: medians[name] - medians[base] for name, (base, _) in LIMITS.items()}
    if options.json:
        print(json.dumps({"medians_ms": medians, "beyond_ms": beyond, "heavy": heavy_modules()}))
        return
    for name, value in medians.items():
        print(f"{name:<34} {value:8.1f} ms")
    for name, (base, limit) in LIMITS.items():
        print(f"{name.lstrip('. ')}: {beyond[name]:.1f} ms beyond {base} (target: at most {limit:.0f})")
    print(f"heavy packages loaded by the public names: {', '.join(heavy_modules()) or 'none'}")


if __name__ == "__main__":
    main()
