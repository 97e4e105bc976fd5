"""Small sessions with a provider in chaos: every turn must end, and every cent be accounted for.

    python benchmarks/soak_calls.py [--seeds 0:1000] [--processes 2]

One seed is one session of a few turns with tools, through the whole agent with its log, its spend ledger (in two of
five with caps that bind), retries, a gate, and a provider that fails at about every third call: refusals with and
without a Retry-After, stalls, streams that break off, arguments that are no JSON, ids used twice, empty answers, wrong
usage, false alarms of overflow. Time is a fake clock's. `tests/chaos_runs.py` makes the sessions and holds the laws.
The same seed is the same session, so that runs add up; asyncio and trio take turns.

Prints what was done, and every violation with its seed. Ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import anyio

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.chaos_runs import Run, run

CHUNK = 25  # seeds that a process takes at once
_MEMORY = Path("/dev/shm")  # a folder in memory, where the system has one: a disk's syncs would be measured


async def _runs(seeds: range, folder: Path) -> list[Run]:
    done = []
    for seed in seeds:
        try:
            done.append(await run(seed, folder))
        except Exception:  # whatever comes out of a turn but its events is a violation itself
            done.append(Run(seed, violations=[traceback.format_exc(limit=-4)]))
    return done


def soak(seeds: range) -> tuple[Counter[str], list[str]]:
    """What was done with these seeds, and what was wrong."""
    done, wrong = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        os.environ["XDG_STATE_HOME"] = folder  # nothing goes to where the user keeps theirs
        backend = ("asyncio", "trio")[seeds.start // CHUNK % 2]
        for each in anyio.run(_runs, seeds, Path(folder, "workspace"), backend=backend):
            done += each.figures
            wrong += [f"seed {each.seed}: {violation}" for violation in each.violations]
    return done, wrong


def chunks(seeds: range) -> Iterator[range]:
    for start in range(seeds.start, seeds.stop, CHUNK):
        yield range(start, min(start + CHUNK, seeds.stop))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:1000", help="A:B (default 0:1000)")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    began, done, wrong = time.monotonic(), Counter[str](), 0
    with ProcessPoolExecutor(options.processes) as pool:
        for counted, violations in pool.map(soak, chunks(range(first, last))):
            done += counted
            wrong += len(violations)
            for violation in violations:
                print(violation, flush=True)
    figures = ", ".join(f"{number:,} {name}" for name, number in done.items())
    print(f"seeds {first}:{last} in {(time.monotonic() - began) / 60:.1f} minutes: {figures}")
    print(f"{wrong} violations")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
