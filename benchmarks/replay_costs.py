"""What policies cost on recorded coding sessions, and on a long run that fills its window.

    python benchmarks/replay_costs.py FOLDER [--seeds 5] [--json]

FOLDER holds `coding-sessions.jsonl.gz` (sizes and times, no text; other session files in it and below are replayed
for comparison). Prints the cost of each policy against never editing with a five-minute cache, by these rules: a
cached prefix is read at 0.1 of a plain token, written at 1.25 (five minutes) or 2 (an hour); a warming reads the
whole prefix; editable are results over 500 characters older than the newest ten. Then

- the two halves of the sessions each for themselves, and with the priors of the economy fitted to the other half;
- prices that nobody looked at while the rule was made;
- what warmings after the last call of every session would add, if nobody ever came back;
- a run of 60 turns in a window of 128,000 tokens, the newest ten results always whole, against stubs on every call.

Targets: moonwake at most -22 %, warm prefix breaks in at most 2 % of calls, the long run at most 0.35 of every-call.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from governors.economy import UNIT, Cache, Experience, Prices, Rates, Waiting
from governors.tokens import TiktokenCounter, load_vocabulary
from runtime.replay import Call, Item, Policy, Run, Trace, hindsight, policy_named, read_traces, simulate
from runtime.replay.policies import Moonwake

FIXED = ("append-only", "append-only-1h", "every-call", "cold-only", "pays-10", "pays-15", "pays-15-warm-4")
OTHER_PRICES = {
    "reads at 0.05": Prices(Rates(read=0.05)),
    "reads at 0.025": Prices(Rates(read=0.025)),
    "writes at 1, five minutes, no warming": Prices(Rates(write_5m=1.0), lifetimes=(300,), warming=False),
    "five minutes only": Prices(lifetimes=(300,)),
    "five minutes only, no warming": Prices(lifetimes=(300,), warming=False),
    "no warming": Prices(warming=False),
}
WINDOW_BUDGET = 128_000 - 8_192 - 1_024


class Resting(Moonwake):
    """Keeps the cache warm after a turn alone, not while a tool takes long."""

    def warmings(self, cache: Cache, rested: bool, waiting: int) -> tuple[float, ...]:
        return super().warmings(cache, rested, 0) if rested else ()


def runs(traces: Sequence[Trace], policy: Policy, prices: Prices = UNIT, budget: int | None = None) -> list[Run]:
    return [simulate(trace, policy, prices, budget=budget) for trace in traces]


def cost(found: Sequence[Run]) -> float:
    return sum(run.cost for run in found)


def breaks(found: Sequence[Run]) -> float:
    """The share of calls in which the policy moved a warm prefix."""
    rows = [row for run in found for row in run.rows]
    return sum(row.broke for row in rows) / len(rows)


def fitted(traces: Sequence[Trace]) -> Experience:
    """Priors from sessions: median gaps, how often nobody comes back, how often a reply ends its turn."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    left = {True: 0, False: 0}
    for trace in traces:
        for before, after in pairwise(trace.calls):
            gaps[before.rests].append(after.at - before.at)
        left[trace.calls[-1].rests] += 1

    def waiting(rested: bool, weight: float) -> Waiting:
        return Waiting.expected(statistics.median(gaps[rested]), weight, len(gaps[rested]) / max(1, left[rested]))

    replies = sum(map(len, gaps.values()))
    return Experience(waiting(False, 20), waiting(True, 10), 20.0, 20.0 * len(gaps[True]) / replies)


def compare(traces: Sequence[Trace], policy: Policy, prices: Prices = UNIT) -> dict[str, float]:
    base = cost(runs(traces, policy_named("append-only"), prices))
    found = runs(traces, policy, prices)
    best = sum(hindsight(trace, prices) for trace in traces)
    return {
        "change": cost(found) / base - 1,
        "warm_breaks": breaks(found),
        "with_warmings_after_the_end": (cost(found) + sum(run.after for run in found)) / base - 1,
        "hindsight": best / base - 1,
        "over_hindsight": cost(found) / best - 1,
        "warmings": sum(row.warmings for run in found for row in run.rows),
    }


def coding(traces: Sequence[Trace]) -> dict[str, object]:
    base = cost(runs(traces, policy_named("append-only")))
    table = {}
    for name in (*FIXED, "moonwake"):
        found = runs(traces, policy_named(name))
        table[name] = {"change": cost(found) / base - 1, "warm_breaks": breaks(found)}
    freedoms: dict[str, Callable[[Trace, Prices], float]] = {
        "edits, 5 minutes": partial(hindsight, warming=False, lifetimes=(300,)),
        "edits, 1 hour": partial(hindsight, warming=False, lifetimes=(3_600,)),
        "edits, lifetimes": partial(hindsight, warming=False),
        "lifetimes, warmings": partial(hindsight, edits=False),
        "edits, lifetimes, warmings": hindsight,
    }
    known = {name: sum(best(trace, UNIT) for trace in traces) / base - 1 for name, best in freedoms.items()}
    halves = {"even": traces[::2], "odd": traces[1::2]}
    validated: dict[str, object] = {}
    for name, half in halves.items():
        other = halves["odd" if name == "even" else "even"]
        validated[name] = compare(half, policy_named("moonwake"))
        experienced: Callable[..., Moonwake] = partial(Moonwake, experience=fitted(other))
        validated[f"{name}, priors fitted to the other half"] = compare(half, experienced)
    return {
        "policies": table,
        "hindsight": known,
        "moonwake": compare(traces, policy_named("moonwake")),
        "halves": validated,
        "warming only while the agent rests, as live sessions do": {
            name: compare(traces, Resting, prices)
            for name, prices in (("five minutes and an hour", UNIT), ("five minutes only", Prices(lifetimes=(300,))))
        },
        "prices": {name: compare(traces, policy_named("moonwake"), prices) for name, prices in OTHER_PRICES.items()},
    }


def long_run(seed: int, cold: float, turns: int = 60) -> Trace:
    """A session that fills its window: 1 to 5 tool rounds a turn, results of 1,000 to 8,000 tokens. A new turn finds
    the cache expired with the chance `cold`."""
    chance = random.Random(seed)
    calls: list[Call] = []
    at = 0.0
    answer: tuple[Item, ...] = ()
    for _ in range(turns):
        items = (*answer, Item(chance.randint(30, 110), boundary=True))
        rounds = chance.randint(1, 5)
        for _ in range(rounds):
            calls.append(Call(at, items, rests=False))
            at += 10
            items = (Item(chance.randint(30, 150)), Item(chance.randint(1_000, 8_000), 35))
        calls.append(Call(at, items, rests=True))
        at += 1_000_000 if chance.random() < cold else 60
        answer = (Item(chance.randint(200, 650)),)
    return Trace(f"long run {seed}", 6_000, tuple(calls))


def window_bound(seeds: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for cold in (0.0, 0.5, 1.0):
        traces = [long_run(seed, cold) for seed in range(seeds)]
        costs = {
            name: [run.cost for run in runs(traces, policy_named(name), UNIT, WINDOW_BUDGET)]
            for name in ("append-only", "every-call", "moonwake")
        }
        shares = [a / b for a, b in zip(costs["moonwake"], costs["every-call"], strict=True)]
        found[f"cold starts {cold:.0%}"] = {
            **{name: statistics.median(each) for name, each in costs.items()},
            "moonwake / every-call": statistics.median(shares),
            "worst": max(shares),
        }
    return found


def recorded(folder: Path) -> dict[str, object]:
    """Session files with text, each for itself."""
    load_vocabulary()
    counter = TiktokenCounter()
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*.jsonl.gz")):
        if path.name == "coding-sessions.jsonl.gz":
            continue
        traces = read_traces([path], counter)
        base = cost(runs(traces, policy_named("append-only")))
        found[str(path.relative_to(folder))] = {
            name: cost(runs(traces, policy_named(name))) / base - 1 for name in ("every-call", "cold-only", "moonwake")
        }
    return found


def show(value: object, indent: str = "") -> None:
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if isinstance(inner, dict) and any(isinstance(each, dict) for each in inner.values()):
            print(f"\n{indent}{name}")
            show(inner, indent + "  ")
        elif isinstance(inner, dict):
            print(f"{indent}{name:42}" + "  ".join(f"{key} {_figure(each)}" for key, each in inner.items()))
        else:
            print(f"{indent}{name:42}{_figure(inner)}")


def _figure(value: object) -> str:
    if isinstance(value, float) and abs(value) < 10:
        return f"{value:+.2%}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    traces = read_traces([options.folder / "coding-sessions.jsonl.gz"], TiktokenCounter())
    found = {
        "coding sessions": coding(traces),
        "long run in a window of 128,000": window_bound(options.seeds),
        "other sessions": recorded(options.folder),
    }
    print(json.dumps(found, indent=2)) if options.json else show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
