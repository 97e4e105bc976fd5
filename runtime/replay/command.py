"""`moonwake replay`: files and policies in, a table, JSON or a picture out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from governors.tokens import TiktokenCounter, load_vocabulary

from ..errors import MoonwakeError
from .hindsight import hindsight
from .legality import checker
from .plot import check_kind, panels, save
from .policies import NAMES, policy_named
from .pricing import pricing_named, pricing_recorded
from .reading import read_traces
from .report import Report, as_json, as_table, line_of
from .simulate import Run, simulate
from .trace import Trace


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to replay. No `policies` means all named ones. `model` sets the prices (by default each session's own
    model), `budget` the tokens of the largest prompt (by default there is no limit)."""

    files: tuple[Path, ...]
    policies: tuple[str, ...] = NAMES
    model: str | None = None
    budget: int | None = None
    hindsight: bool = False


def replay(wanted: Wanted, *, json: bool = False, plot: Path | None = None) -> int:
    """Replay and print to standard output; the exit code is 1 when a policy broke a rule of the wire.

    With `plot` the longest session is drawn as well. Raises `MoonwakeError`.
    """
    if plot is not None:
        check_kind(plot)  # before the work, which takes a while
    report, longest = examine(wanted)
    sys.stdout.write((as_json(report) if json else as_table(report)) + "\n")
    if plot is not None:
        name = next(iter(longest.values())).trace.name
        save(plot, panels(name, longest))
    return int(any(line.violations for line in report.lines))


def examine(wanted: Wanted) -> tuple[Report, dict[str, Run]]:
    """The report, and the session with the most calls under each policy. Raises `MoonwakeError`."""
    policies = {name: policy_named(name) for name in wanted.policies or NAMES}
    traces = _read(wanted.files)
    told = pricing_named(wanted.model) if wanted.model is not None else None
    pricings = [told or pricing_recorded(trace.model) for trace in traces]
    dollars = [pricing.dollars for pricing in pricings]
    longest = max(range(len(traces)), key=lambda number: len(traces[number].calls))
    lines, drawn = [], {}
    for name, policy in policies.items():
        runs = [
            simulate(trace, policy, pricing.prices, budget=wanted.budget, check=checker(trace))
            for trace, pricing in zip(traces, pricings, strict=True)
        ]
        lines.append(line_of(name, runs, dollars))
        drawn[name] = runs[longest]
    report = Report(
        tuple(lines),
        sessions=len(traces),
        with_text=sum(trace.has_text for trace in traces),
        untimed=sum(not trace.timed for trace in traces),
    )
    if wanted.hindsight:
        best = sum(hindsight(trace, pricing.prices) for trace, pricing in zip(traces, pricings, strict=True))
        report = replace(report, hindsight=best)
    return report, drawn


def _read(files: Sequence[Path]) -> list[Trace]:
    if not files:
        raise MoonwakeError("nothing to replay: name session files (.jsonl or .jsonl.gz)")
    load_vocabulary()
    traces = read_traces(files, TiktokenCounter())
    if not traces:
        raise MoonwakeError("none of these files holds a model call: there is nothing to replay")
    return traces
