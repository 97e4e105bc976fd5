"""Measure every contender on the same histories in one run, and print tables.

    python compare.py WORKDIR [--rounds 5] [--sizes 50 1000 5000] [--minutes 8] [--json FILE]

WORKDIR is what `setup.sh` made. In every round each contender runs once for each size, as a process of its own in its
own virtual environment; the order turns from round to round. A figure is the median over the rounds of the median over
a round's calls. A fixed loop is timed before and after each process, and in it: when its times differ much, so may the
figures.
Exit status 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from histories import history
from timing import calibrate

HERE = Path(__file__).resolve().parent
CONTENDERS = ("moonwake", "nanobot", "langchain")
LARGE, USUAL = 4_000_000, 128_000
TITLES = {LARGE: "A window that holds everything (4,000,000 tokens)", USUAL: "A window of 128,000 tokens"}
STEP, STEP_KNOWN = "Governor.step, reply + result", "Governor.step, one new message, counts known"
GOVERN = "govern(), counts known"
NOISY = 1.25  # ratio of the fixed loop's times
SMALL, MOST_GROWTH, MOST_STEP, MOST_GOVERN = 50, 2.0, 0.050, 5.0  # messages, ratio, milliseconds, milliseconds

Row = dict[str, Any]
Key = tuple[str, str, int, int]  # who, case, window, size


def environment(work: Path, who: str) -> dict[str, str]:
    """Nothing of the user's: a home of its own, the vocabularies, and for ours where `governors` is."""
    own = {"HOME": str(work / "home"), "TIKTOKEN_CACHE_DIR": str(work / "vocabularies"), "LANGSMITH_TRACING": "false"}
    if who == "moonwake":
        own["PYTHONPATH"] = str(HERE.parents[1])
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **own}


def run(work: Path, who: str, size: int) -> list[Row]:
    """The lines of one contender's process."""
    command = [work / who / "bin" / "python", HERE / f"bench_{who}.py", work, "--size", size, "--windows", *TITLES]
    done = subprocess.run(
        [str(part) for part in command], env=environment(work, who), stdout=subprocess.PIPE, text=True, timeout=120
    )
    if done.returncode:
        sys.exit(f"bench_{who}.py failed with status {done.returncode}; its message stands above")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(work: Path, sizes: list[int], rounds: int, seconds: float) -> tuple[list[Row], list[dict[str, float]]]:
    rows: list[Row] = []
    loops = [calibrate()]
    began, longest = time.monotonic(), 0.0
    for number in range(rounds):
        round_began = time.monotonic()
        if number and round_began - began + longest > seconds:
            print(f"stopped after {number} of {rounds} rounds: another would take too long", file=sys.stderr)
            break
        turn = number % len(CONTENDERS)
        for size in sizes:
            for who in CONTENDERS[turn:] + CONTENDERS[:turn]:
                rows += [{**row, "round": number} for row in run(work, who, size)]
                loops.append(calibrate())
        longest = max(longest, time.monotonic() - round_began)
        print(f"round {number + 1}: {time.monotonic() - round_began:.0f} s", file=sys.stderr)
    loops += [row["calibration"] for row in rows if "calibration" in row]
    return rows, loops


def summed_up(rows: list[Row]) -> dict[Key, Row]:
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        if "case" in row:
            groups.setdefault((row["who"], row["case"], row["window"], row["size"]), []).append(row)
    return {
        key: {
            "wall": statistics.median(statistics.median(row["wall"]) for row in group),
            "cpu": statistics.median(statistics.median(row["cpu"]) for row in group),
            "worst": statistics.median(max(row["wall"]) for row in group),
            "characters": group[0]["characters"],
            "kept": group[0]["kept"],
            "calls": sum(len(row["wall"]) for row in group),
        }
        for key, group in groups.items()
    }


def shown(milliseconds: float) -> str:
    digits = 3 if milliseconds < 1 else 1 if milliseconds < 100 else 0
    return f"{milliseconds:,.{digits}f}"


def table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables(found: dict[Key, Row], sizes: list[int]) -> Iterable[str]:
    cases = list(dict.fromkeys((who, case) for who, case, _, _ in found))
    cases.sort(key=lambda pair: CONTENDERS.index(pair[0]))
    for window, title in TITLES.items():
        yield f"### {title}"
        yield "Milliseconds a call, wall / CPU; the slowest call at the largest size."
        body = []
        for who, case in cases:
            rows = [found[who, case, window, size] for size in sizes]
            times = [f"{shown(row['wall'])} / {shown(row['cpu'])}" for row in rows]
            body.append([f"{who}: {case}", *times, shown(rows[-1]["worst"])])
        yield table(["messages", *(f"{size:,}" for size in sizes), "slowest"], body)
        yield "CPU time as a multiple of `Governor.step` with a reply and its result / of `govern()` with counts known."
        body = []
        for who, case in cases:
            if who == "moonwake":
                continue
            ratios = []
            for size in sizes:
                own, bases = found[who, case, window, size]["cpu"], (STEP, GOVERN)
                step, whole = (own / found["moonwake", base, window, size]["cpu"] for base in bases)
                ratios.append(f"{step:,.3g} / {whole:,.3g}" if step < 1_000 else f"{step:,.0f} / {whole:,.3g}")
            body.append([f"{who}: {case}", *ratios])
        yield table(["messages", *(f"{size:,}" for size in sizes)], body)
        yield "Characters tokenised by the first call, and messages in its request."
        body = [
            [f"{who}: {case}", *(f"{row['characters']:,} ({row['kept']:,})" for row in rows)]
            for who, case in cases
            for rows in [[found[who, case, window, size] for size in sizes]]
        ]
        yield table(["messages", *(f"{size:,}" for size in sizes)], body)


def targets(found: dict[Key, Row], sizes: list[int]) -> list[tuple[bool, str]]:
    """What the governors promise, in wall time."""
    largest = max(sizes)
    step = found["moonwake", STEP_KNOWN, LARGE, largest]["wall"]
    whole, full = (found["moonwake", GOVERN, window, largest]["wall"] for window in (LARGE, USUAL))
    micro, most = step * 1e3, MOST_STEP * 1e3
    verdicts = [
        (step < MOST_STEP, f"step with one new message at {largest:,}: {micro:.1f} us (under {most:.0f})"),
        (whole < MOST_GOVERN, f"govern() with counts known at {largest:,}: {whole:.2f} ms (under {MOST_GOVERN:.0f})"),
        (full < MOST_GOVERN, f"the same in a window that is full: {full:.2f} ms (under {MOST_GOVERN:.0f})"),
    ]
    if SMALL in sizes:
        growth = step / found["moonwake", STEP_KNOWN, LARGE, SMALL]["wall"]
        verdicts.append((growth <= MOST_GROWTH, f"step at {largest:,} by step at {SMALL}: {growth:.2f} (at most 2)"))
    return verdicts


def noise(loops: list[dict[str, float]]) -> str:
    """Judged by the middle 80 %: medians do not mind single bad moments, but they do mind bad rounds."""
    cpu = sorted(loop["cpu"] for loop in loops)
    waited = sorted(loop["wall"] / loop["cpu"] for loop in loops)
    tenth = len(cpu) // 10
    low, high, most_waited = cpu[tenth], cpu[-1 - tenth], waited[-1 - tenth]
    quiet = high / low <= NOISY and most_waited <= NOISY
    return (
        f"Fixed loop, {len(cpu)} times: CPU {cpu[0]:.1f} to {cpu[-1]:.1f} ms, the middle 80 % {low:.1f} to {high:.1f} "
        f"(ratio {high / low:.2f}), wall by CPU at most {most_waited:.2f} in 90 %: "
        + ("QUIET." if quiet else f"NOISY (over {NOISY}): trust CPU times and ratios, not wall times.")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="the folder that setup.sh made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 1_000, 5_000], help="messages")
    parser.add_argument("--minutes", type=float, default=8.0, help="no new round is begun that would end later")
    parser.add_argument("--json", type=Path, help="write every line and the sums here")
    options = parser.parse_args()
    work, sizes = options.work.resolve(), sorted(options.sizes)
    for size in sizes:
        (work / f"history-{size}.json").write_text(json.dumps(history(size)), "utf-8")
    rows, loops = measure(work, sizes, options.rounds, options.minutes * 60)
    found = summed_up(rows)
    versions = {name: number for row in rows for name, number in row.get("versions", {}).items()}
    print(f"Python {sys.version.split()[0]}, " + ", ".join(f"{name} {number}" for name, number in versions.items()))
    print(noise(loops))
    for part in tables(found, sizes):
        print(f"\n{part}")
    if options.json:
        sums = [{"who": w, "case": c, "window": n, "size": s, **row} for (w, c, n, s), row in found.items()]
        options.json.write_text(json.dumps({"sums": sums, "lines": rows, "loops": loops}, indent=1), "utf-8")
    print()
    verdicts = targets(found, sizes)
    for met, text in verdicts:
        print(f"{'met' if met else 'MISSED'}: {text}")
    if not all(met for met, _ in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
