"""`moonwake cost`: what model calls did cost, by the logs of a workspace, or by the ledger of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

from ..channels.sanitize import one_line
from ..channels.wording import plural
from ..config import Config, load_config
from ..errors import MoonwakeError
from ..ledger import Left
from ..ledger.spend import local_day
from ..providers.base import Price
from ..reckoning import Bill, Sum, summed
from ..reckoning.keeping import caps_of, make_ledger
from ..reckoning.logs import reckon
from ..reckoning.saving import saving_of
from ..reckoning.sums import grouped
from ..session.entries import RequestRecord
from ..session.index.listing import Filter
from ..session.naming import short_id
from .base import Shelf, columns, put, put_json, say
from .cost_lines import Report, Row, report_lines
from .showing import known_model
from .times import moment_asked, moment_asked_until

By = Literal["day", "month", "agent", "session", "model", "kind", "workspace"]

#: What people call the requests of a purpose.
KINDS: Mapping[str, str] = {"turn": "chat", "branch_summary": "branch summary"}
_MOST_EMPTY_DAYS = 62  # that are shown between others


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` on and before `until`, as a person asked; None: without an end on that side."""

    since: datetime | None
    until: datetime | None

    @property
    def start(self) -> float:
        return self.since.timestamp() if self.since is not None else 0.0

    def holds(self, at: float) -> bool:
        return at >= self.start and (self.until is None or at < self.until.timestamp())


def period_asked(since: str | None, until: str | None, last: str | None, now: datetime) -> Period:
    """What `--since`, `--until` and `--last` mean: `--last 7d` is today and the six days before, whole; `all` is all.

    Raises `MoonwakeError`.
    """
    end = None if until is None else moment_asked_until(until, now)
    if since is not None:
        return Period(moment_asked(since, now), end)
    last = last or ("all" if until is not None else "30d")
    if last == "all":
        return Period(None, end)
    if not last[:1].isdigit():
        raise MoonwakeError(f"--last {last!r} is no span: give hours, days or weeks (12h, 7d, 4w), or all")
    begin = moment_asked(last, now)
    if not last.strip().endswith("h"):
        begin = (begin + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return Period(begin, end)


def print_cost(on: Shelf, by: By, period: Period, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print what the sessions of a workspace did cost. Blocks."""
    config = load_config(on.workspace.root, environ, {})
    found = reckon(on.workspace.sessions, on.agent, period.start)
    bills = [bill for bill in found.bills if period.holds(bill.at)]
    own = [bill for bill in bills if bill.state != "elsewhere"]
    report = Report(
        by=by,
        rows=_rows(on, own, by, grouped(own, _key(by))),
        total=summed(own),
        elsewhere=summed(bill for bill in bills if bill.state == "elsewhere"),
        saving=saving_of(own, _prices(config)),
        unpriced=tuple(sorted({bill.model for bill in own if bill.state == "unpriced"})),
        caps=_caps(config, environ),
        since=period.since,
        until=period.until,
    )
    _print(report, as_json=as_json, unread=found.unread, broken=found.broken)
    for each in found.unread:
        say(f"not counted, as it cannot be read: {each}")
    if found.broken:
        say(f"not counted: {plural(found.broken, 'line')} of calls that cannot be read (moonwake sessions verify)")
    return 0


def print_machine(by: By, period: Period, environ: Mapping[str, str], config: Config, *, as_json: bool) -> int:
    """Print what the ledger knows of all workspaces of this user on this machine. Blocks."""
    if by == "session":
        raise MoonwakeError("the ledger does not know sessions: leave --everywhere out, or ask --by day or workspace")
    until = None if period.until is None else local_day(period.until.timestamp() - 1)
    since = None if period.since is None else local_day(period.start)
    totals = make_ledger(config, environ).days(since, until)
    groups: dict[str, Sum] = {}
    for each in totals:
        key = {"day": each.day, "month": each.day[:7], "agent": each.agent, "model": each.model,
               "kind": kind_of(each.purpose), "workspace": each.workspace}[by]  # fmt: skip
        groups[key] = groups.get(key, Sum()) + Sum(**each.counts)
    total = Sum()
    for group in groups.values():
        total += group
    rows = _days(groups) if by == "day" else tuple(Row(key, group) for key, group in _largest_first(groups, by))
    caps = _caps(config, environ)
    report = Report(by=by, rows=rows, total=total, caps=caps, since=period.since, until=period.until)
    _print(report, as_json=as_json)
    return 0


def kind_of(purpose: str) -> str:
    """What people call requests of a purpose."""
    return KINDS.get(purpose, purpose.replace("_", " "))


def _print(report: Report, *, as_json: bool, unread: tuple[str, ...] = (), broken: int = 0) -> None:
    if as_json:
        put_json({**report_as_json(report), "unread": list(unread), "broken": broken})
    else:
        put(report_lines(report, columns()))


def report_as_json(report: Report) -> dict[str, Any]:
    """The report, JSON-ready: costs in US dollars, the rest in tokens and calls."""
    return {
        "by": report.by,
        "since": None if report.since is None else report.since.isoformat(),
        "until": None if report.until is None else report.until.isoformat(),
        "groups": [
            {"key": row.key, **({"title": row.title} if report.by == "session" else {}), **_sum_as_json(row.sum)}
            for row in report.rows
        ],
        "total": _sum_as_json(report.total),
        "saving": None if report.saving is None else asdict(report.saving),
        "elsewhere": None if report.elsewhere is None else _sum_as_json(report.elsewhere),
        "unpriced_models": list(report.unpriced),
        "caps": [{**asdict(each), "left": each.left} for each in report.caps],
    }


def _sum_as_json(sum_: Sum) -> dict[str, Any]:
    return {**asdict(sum_), "cached": round(sum_.cached, 4)}


def _key(by: By) -> Callable[[Bill], str]:
    match by:
        case "day":
            return lambda bill: local_day(bill.at)
        case "month":
            return lambda bill: local_day(bill.at)[:7]
        case "agent":
            return lambda bill: bill.agent
        case "session":
            return lambda bill: f"{bill.agent}\n{bill.session}"
        case "model":
            return lambda bill: bill.model
        case "kind":
            return lambda bill: kind_of(bill.purpose)
        case "workspace":
            raise MoonwakeError("--by workspace needs --everywhere: without it, one workspace is counted")


def _rows(on: Shelf, bills: list[Bill], by: By, groups: Mapping[str, Sum]) -> tuple[Row, ...]:
    if by == "day":
        return _days(groups)
    rows = [Row(key, group) for key, group in _largest_first(groups, by)]
    if by != "session":
        return tuple(rows)
    wanted = {row.key for row in rows}
    listing = on.store.list(on.agent, Filter(archived=None)) if bills else ()
    titles = {f"{info.agent}\n{info.id}": one_line(info.title, 200) for info in listing}
    return tuple(_named(row, titles.get(row.key, "")) for row in rows if row.key in wanted)


def _named(row: Row, title: str) -> Row:
    return replace(row, key=row.key.split("\n", 1)[1], name=short_id(row.key.split("\n", 1)[1]), title=title)


def _days(groups: Mapping[str, Sum]) -> tuple[Row, ...]:
    """A row a day, those without a call between others, too, as long as they are not many."""
    days = sorted(groups)
    if not days:
        return ()
    first, last = (datetime.strptime(day, "%Y-%m-%d") for day in (days[0], days[-1]))
    if (last - first).days < _MOST_EMPTY_DAYS:
        days = [(first + timedelta(days=step)).strftime("%Y-%m-%d") for step in range((last - first).days + 1)]
    return tuple(Row(day, groups.get(day, Sum())) for day in days)


def _largest_first(groups: Mapping[str, Sum], by: By) -> list[tuple[str, Sum]]:
    if by == "month":
        return sorted(groups.items())
    return sorted(groups.items(), key=lambda each: (-each[1].cost, -each[1].prompt, each[0]))


def _prices(config: Config) -> Callable[[Bill], Price | None]:
    @cache
    def price(model: str, wire: str) -> Price | None:
        provider, _, name = model.partition("/")
        asked = RequestRecord(
            purpose="", provider=provider, model=name, wire=wire, prefix="", forecast=0, budget=0, blocks=0
        )
        info = known_model(config, asked) if wire else None
        return info.price if info is not None else None

    return lambda bill: price(bill.model, bill.wire)


def _caps(config: Config, environ: Mapping[str, str]) -> tuple[Left, ...]:
    """How the caps of days and months stand; nothing where there are none."""
    if not caps_of(config).any:
        return ()
    try:
        return make_ledger(config, environ).standing()
    except MoonwakeError as error:
        say(str(error))
        return ()
