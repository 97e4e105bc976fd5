"""The laws of the governor over random histories, and over every prefix of recorded sessions.

    python benchmarks/soak_governors.py [--seeds 0:1000] [--minutes M] [--processes 2] [--traces FOLDER]

One seed is one history: a conversation in which everything goes wrong (late, doubled, early and lost results, replies
that broke off, ids used again, text that UTF-8 cannot hold, pictures over the limit), fed in random batches to a
governor with a random budget, wire, cache and policy, which is another one now and then. `tests/growing.py` makes
the histories, `tests/governor_runs.py` feeds them, `tests/governor_laws.py` holds the laws. The same seed is the same
history, so that runs add up.

With `--traces`, the session files in a folder are read as `moonwake replay` reads them, and fed message by message,
for each wire and two budgets: every prefix is a request.

Prints what was done, and every violation with its seed. Ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from tests.governor_runs import FIGURES, Run
from tests.governor_trials import Trial, trial_of

CHUNK = 50  # seeds that a process takes at once


def soak(seeds: range) -> tuple[Counter[str], list[str]]:
    """What was done with these seeds, and what was wrong."""
    done: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        try:
            run = Run(seed)
        except Exception:  # whatever comes out of a governor but an overflow is a violation itself
            wrong.append(f"seed {seed}: {traceback.format_exc(limit=-4)}")
            continue
        done.update(run.figures())
        wrong += [f"seed {seed}: {violation}" for violation in run.violations]
    done["histories"] += len(seeds)
    return done, wrong


def chunks(seeds: range, minutes: float | None) -> Iterator[range]:
    ends = time.monotonic() + 60 * minutes if minutes is not None else None
    for start in range(seeds.start, seeds.stop, CHUNK):
        if ends is not None and time.monotonic() > ends:
            return
        yield range(start, min(start + CHUNK, seeds.stop))


def soak_all(seeds: range, minutes: float | None, processes: int) -> int:
    began, done, wrong, last = time.monotonic(), Counter[str](), 0, seeds.start
    with ProcessPoolExecutor(processes) as pool:
        waiting = chunks(seeds, minutes)
        running = {pool.submit(soak, part): part for _, part in zip(range(2 * processes), waiting, strict=False)}
        while running:
            future = next(iter(running))
            counted, violations = future.result()
            last = running.pop(future).stop
            done += counted
            wrong += len(violations)
            for violation in violations:
                print(violation, flush=True)
            for part in waiting:
                running[pool.submit(soak, part)] = part
                break
    figures = ", ".join(f"{done[name]:,} {name}" for name in ("histories", *FIGURES))
    print(f"seeds {seeds.start}:{last} in {(time.monotonic() - began) / 60:.1f} minutes: {figures}")
    print(f"{wrong} violations")
    return wrong


def replay_all(folder: Path, processes: int) -> int:
    """Every prefix of every recorded session."""
    trials = list(trials_in(folder))
    wrong = requests = overflows = 0
    with ProcessPoolExecutor(processes) as pool:
        for trial, result in zip(trials, pool.map(trial_of, trials, chunksize=4), strict=True):
            requests += result.requests
            overflows += result.overflows
            wrong += len(result.violations)
            for violation in result.violations[:5]:
                print(f"{trial.name} on {trial.wire}, {trial.room:,} tokens: {violation}", flush=True)
    sessions = len({trial.name for trial in trials})
    print(f"{sessions:,} conversations, {len(trials):,} trials, {requests:,} prefixes, {overflows:,} over budget")
    print(f"{wrong} violations")
    return wrong


def trials_in(folder: Path) -> Iterator[Trial]:
    from governors.tokens import ByteCounter
    from governors.wire import WIRES
    from runtime.errors import MoonwakeError
    from runtime.replay import read_traces

    for path in sorted(each for each in folder.rglob("*") if each.name.endswith((".jsonl", ".jsonl.gz"))):
        try:
            traces = read_traces([path], ByteCounter())
        except MoonwakeError as error:
            print(f"passed over: {error}")
            continue
        for trace in traces:
            if trace.has_text:
                messages = tuple(
                    item.message for call in trace.calls for item in call.items if item.message is not None
                )
                for wire in WIRES:
                    yield from (Trial(trace.name, wire, room, messages) for room in (30_000, 10_000_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=None, help="A:B, by default 0:1000 (without end with --minutes)")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--traces", type=Path)
    options = parser.parse_args()
    wrong = 0
    if options.traces is not None:
        wrong += replay_all(options.traces, options.processes)
    if options.seeds is not None or options.traces is None:
        default = "0:1000" if options.minutes is None else "0:1000000000"
        first, last = map(int, (options.seeds or default).split(":"))
        wrong += soak_all(range(first, last), options.minutes, options.processes)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
