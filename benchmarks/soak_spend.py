"""Spend from several processes that are killed at random, and see that no cap is passed; measure what it takes.

    python benchmarks/soak_spend.py --seeds 0:200 [--minutes 10] [--speed]

Each seed is a trial of `tests/ledger/trials.py`: twice three processes of three tasks each on one ledger, some of them
killed with SIGKILL at a statement drawn from the seed. Then every total must lie where what the processes were told
says, no account may be past its cap by anything, and the file must be sound. `--speed` prints what a reservation and a
settlement take, with one process and with four at once, and without caps. The exit code is 1 when a law was broken.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Usage
from runtime.ledger import Caps, Spender, SpendLedger
from tests.ledger.trials import trial

CALLS = 300
WHO = Spender(agent="assistant", session="s", turn=1, purpose="turn", workspace="/w")
ALL = Caps(day=1e3, month=1e4, session=1e3, turn=1e3)


async def time_calls(path: Path, caps: Caps) -> tuple[float, float]:
    """Wall and processor time of a reservation and its settlement (microseconds)."""
    ledger = SpendLedger(path, caps)
    await ledger.settle(await ledger.reserve(WHO, "a/model", 0.001), 0.0001, Usage())
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        await ledger.settle(await ledger.reserve(WHO, "a/model", 0.001), 0.0001, Usage())
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    await ledger.close()
    return wall / CALLS * 1e6, processor / CALLS * 1e6


async def time_many(path: Path) -> float:
    """A thousand calls at once: wall time of all (milliseconds)."""
    ledger = SpendLedger(path, ALL)

    async def call() -> None:
        await ledger.settle(await ledger.reserve(WHO, "a/model", 0.001), 0.0001, Usage())

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(1_000):
            group.start_soon(call)
    await ledger.close()
    return (time.perf_counter() - began) * 1e3


def print_speed(folder: Path) -> None:
    path = folder / "speed.sqlite"
    for name, caps in (("four caps", ALL), ("no caps", Caps())):
        wall, processor = anyio.run(time_calls, path, caps)
        print(f"1 process, {name}: {wall:,.0f} us a call ({processor:,.0f} us of processor time)")
    print(f"1,000 calls at once, four caps: {anyio.run(time_many, path):,.0f} ms in all")
    command = [sys.executable, __file__, "--one", str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for each in running:
        print(f"4 processes, four caps: {each.communicate()[0].strip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="0:200", help="A:B, from A up to B")
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after so long")
    parser.add_argument("--speed", action="store_true", help="measure instead")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        wall, processor = anyio.run(time_calls, given.one, ALL)
        print(f"{wall:,.0f} us a call ({processor:,.0f} us of processor time)")
        return 0
    first, last = map(int, given.seeds.split(":"))
    end, done, broken = time.monotonic() + 60 * given.minutes, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        if given.speed:
            print_speed(Path(folder))
            return 0
        for seed in range(first, last):
            if time.monotonic() > end:
                break
            done += 1
            try:
                trial(Path(folder), seed)
            except AssertionError as error:
                broken += 1
                print(f"seed {seed}: {error}", flush=True)
    print(f"{done} of {last - first} seeds: {broken} broke a law")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
