"""Conversations of thousands of turns with tools on a small window: what overflows, what is lost, what the log takes.

    python benchmarks/long_conversation.py [--seeds 0:2] [--turns 3000] [--facts 200] [--window 32000]

One seed is one conversation with a scripted model, whose summaries keep every planted fact (even seeds) or forget some
(odd ones), on each wire in turn. `tests/long_runs.py` makes it and holds the laws: no overflow, nothing illegal, room
that lasts for a fifth of the budget, a log that grows with the turns alone, and every planted fact in view, in a
summary, or found by `recall` and the search. Prints the figures, and every violation with its
seed. Ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import anyio

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.long_runs import Run, forgetful, keeping_all, run

_MEMORY = Path("/dev/shm")  # a folder in memory, where the system has one: a disk's syncs would be measured
_WIRES = ("anthropic", "openai_chat", "openai_responses")


async def _one(seed: int, folder: Path, given: argparse.Namespace) -> Run:
    keeps = forgetful if seed % 2 else keeping_all
    return await run(
        seed, folder, turns=given.turns, facts=given.facts, window=given.window, keeps=keeps, wire=given.wires[seed % 3]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", default="0:2", help="FIRST:LAST, without LAST")
    parser.add_argument("--turns", type=int, default=3_000)
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--window", type=int, default=32_000)
    given = parser.parse_args()
    given.wires = _WIRES
    first, last = map(int, given.seeds.split(":"))
    wrong = 0
    for seed in range(first, last):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
            os.environ["XDG_STATE_HOME"] = folder  # nothing goes to where the user keeps theirs
            it = anyio.run(_one, seed, Path(folder, "workspace"), given)
        grown = sorted(it.grown) or [0.0]
        print(f"seed {seed}: {', '.join(f'{value:,} {name}' for name, value in it.figures.items())}")
        print(
            f"  between two compactions {grown[0]:.0%} of the budget at least, {grown[len(grown) // 2]:.0%} mostly; "
            f"the log has {it.sizes[-1]:,} bytes; {time.perf_counter() - began:.0f} s"
        )
        for violation in it.violations:
            print(f"  seed {seed}: {violation}")
        wrong += len(it.violations)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
