"""For how many of the tokens that a cache lost does the log name the right cause?

    python benchmarks/cache_causes.py [--json]

Plays the conversations of `tests/inspecting/scenarios.py` with a provider that keeps prompts by its own rules and knows
why it did not read one, and compares that with what `moonwake inspect --cache` says from the log alone. The last part
makes the tables of a long session, and times it.

Targets: both agree on at least 95 % of the lost tokens, in each scenario; 5,000 requests in under a second.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import anyio

from governors.messages import Usage
from runtime.inspecting import misses_of, summary_of
from runtime.session.entries import Entry, OutcomeRecord, RequestRecord
from tests.inspecting.scenarios import SCENARIOS, agreement, play


def scenarios() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            run = anyio.run(partial(play, name, Path(folder)))
        right, lost = agreement(run)
        found[name] = {"could": run.misses.could, "lost": lost, "right": right, "causes": sorted(set(run.told))}
    return found


def long_session(requests: int = 5_000) -> float:
    """Seconds for all misses of a session with so many requests, a tenth of them misses."""
    entries: list[Entry] = []
    for number in range(requests):
        at = f"2026-11-30T{number // 3_600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
        prompt = 10_000 + 10 * number
        usage = Usage(cache_write_5m=prompt) if number % 10 == 9 else Usage(cache_read=prompt - 10, cache_write_5m=10)
        request = RequestRecord(
            purpose="turn",
            provider="p",
            model="m",
            wire="anthropic",
            prefix="",
            forecast=prompt,
            budget=1,
            blocks=number,
        )
        place = len(entries) + 1
        entries.append(Entry(place, place - 1 or None, at, request))
        entries.append(Entry(place + 1, place, at, OutcomeRecord(request=place, stop="stop", usage=usage)))
    began = time.perf_counter()
    summary_of(misses_of(entries, {}))
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found, seconds = scenarios(), long_session()
    lost = sum(int(str(each["lost"])) for each in found.values())
    right = sum(int(str(each["right"])) for each in found.values())
    if options.json:
        print(json.dumps({"scenarios": found, "named": right / lost, "seconds for 5,000 requests": seconds}, indent=2))
        return 0
    for name, each in found.items():
        print(f"{name:18}could {each['could']:>7,}  lost {each['lost']:>7,}  right {each['right']:>7,}  ", end="")
        print(", ".join(map(str, each["causes"])) if isinstance(each["causes"], list) else "")
    print(f"named rightly: {right / lost:.1%} of {lost:,} lost tokens; 5,000 requests in {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
