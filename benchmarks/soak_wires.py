"""Random tool-using conversations over each wire, against servers that refuse what their providers refuse.

    python benchmarks/soak_wires.py [--seeds 0:500] [--wires anthropic,openai_chat,openai_responses] [--processes 2]

One seed is one conversation on each wire: a model that calls tools in every odd way, a person who interrupts, steers,
undoes, takes out and switches models, files and tools that change, small windows (`tests/strict/conversation.py`). All
of it goes through a whole runtime with its log, and the real providers over loopback. The servers (`tests/strict`) are
written from the providers' documentation, not from our own checkers.

Prints what was done, and every refusal with its seed. Ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path[:0] = [str(Path(__file__).parents[1])]

import anyio

from tests.strict.conversation import WIRES, hold

CHUNK = 10  # seeds that a process takes at once


def soak(wire: str, seeds: range) -> tuple[Counter[str], list[str]]:
    """What was done with these seeds, and what was wrong."""
    logging.disable(logging.CRITICAL)
    done: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                report = anyio.run(hold, seed, wire, Path(folder))
            except Exception:  # whatever ends a conversation is a finding itself
                wrong.append(f"{wire} seed {seed}: {traceback.format_exc(limit=-4)}")
                continue
        done += report.done
        wrong += [f"{wire} seed {seed}: {each}" for each in report.wrong]
    return done, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:500", help="first:end")
    parser.add_argument("--wires", default=",".join(WIRES), help="which, with commas between")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    start, end = map(int, given.seeds.split(":"))
    bad = 0
    for wire in given.wires.split(","):
        began, done = time.monotonic(), Counter[str]()
        chunks = [range(at, min(at + CHUNK, end)) for at in range(start, end, CHUNK)]
        with ProcessPoolExecutor(given.processes) as pool:
            for counts, wrong in pool.map(soak, [wire] * len(chunks), chunks):
                done += counts
                bad += len(wrong)
                print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
        said = ", ".join(f"{name} {count:,}" for name, count in sorted(done.items()))
        print(f"{wire}: {time.monotonic() - began:.0f} s; {said}", flush=True)
    print(f"{bad} refusals and faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
