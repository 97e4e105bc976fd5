"""What a replay found: one line a policy, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .simulate import Run


@dataclass(frozen=True, slots=True)
class Line:
    """One policy over all traces. `tokens` are those of all prompts, `warmed` those that warmings read beside them;
    `hit` is the share of the prompts that was read from the cache; `cost` is in plain input tokens, warmings
    included; `after` is what warmings after the last call of each session would add if nobody came back.
    `dollars` is None unless the model of every session is known; `violations` counts over sessions with text."""

    policy: str
    calls: int
    tokens: int
    hit: float
    cost: float
    warm_breaks: int
    violations: int
    dollars: float | None = None
    warmings: int = 0
    warmed: int = 0
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """`hindsight` is the least cost for who knows the future (None: not asked for)."""

    lines: tuple[Line, ...]
    sessions: int
    with_text: int
    untimed: int
    hindsight: float | None = None


def line_of(policy: str, runs: Sequence[Run], dollars: Sequence[float | None]) -> Line:
    """`dollars` has for each run what a unit of its cost is."""
    rows = [row for run in runs for row in run.rows]
    tokens = sum(row.prompt for row in rows)
    known = [run.cost * unit for run, unit in zip(runs, dollars, strict=True) if unit is not None]
    return Line(
        policy=policy,
        calls=len(rows),
        tokens=tokens,
        hit=sum(row.read for row in rows) / tokens if tokens else 0.0,
        cost=sum(run.cost for run in runs),
        warm_breaks=sum(row.broke for row in rows),
        violations=sum(row.violations for row in rows),
        dollars=sum(known) if len(known) == len(runs) and runs else None,
        warmings=sum(row.warmings for row in rows),
        warmed=sum(row.warmed for row in rows),
        after=sum(run.after for run in runs),
    )


def as_json(report: Report) -> str:
    told: dict[str, object] = {
        "policies": [asdict(line) for line in report.lines],
        "sessions": report.sessions,
        "sessions_with_text": report.with_text,
        "sessions_without_times": report.untimed,
    }
    if report.hindsight is not None:
        told["hindsight"] = report.hindsight
    return json.dumps(told, indent=2)


def as_table(report: Report) -> str:
    """The first policy is the measure of the others."""
    head = ("policy", "calls", "Mtokens", "hit", "cost, M", "", "US$", "warm breaks", "warmings", "violations")
    first = report.lines[0].cost if report.lines else 0.0
    rows = [head, *(_row(line, first) for line in report.lines)]
    if report.hindsight is not None:
        change = _change(report.hindsight, first)
        rows.append(("hindsight", "", "", "", f"{report.hindsight / 1e6:.2f}", change, "", "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *_notes(report)])


def _row(line: Line, first: float) -> tuple[str, ...]:
    share = line.warm_breaks / line.calls if line.calls else 0.0
    return (
        line.policy,
        f"{line.calls:,}",
        f"{line.tokens / 1e6:.2f}",
        f"{line.hit:.1%}",
        f"{line.cost / 1e6:.2f}",
        _change(line.cost, first),
        "-" if line.dollars is None else f"{line.dollars:.2f}",
        f"{line.warm_breaks:,} ({share:.1%})",
        f"{line.warmings:,}",
        f"{line.violations:,}",
    )


def _change(cost: float, first: float) -> str:
    return f"{cost / first - 1:+.1%}" if first else ""


def _notes(report: Report) -> list[str]:
    notes = [
        f"{report.sessions:,} sessions. Cost is of prompts alone, in plain input tokens; warmings are part of it.",
        "Hindsight knows the future: the cheapest times to edit everything editable, lifetimes and warmings."
        if report.hindsight is not None
        else "",
        f"{report.untimed:,} sessions have no times: their calls follow at once." if report.untimed else "",
        f"Violations are counted over the {report.with_text:,} sessions that have text."
        if report.with_text < report.sessions
        else "",
    ]
    return ["", *(note for note in notes if note)]
