"""What calls did cost, as a table with bars, in whatever columns there are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..channels.sanitize import one_line
from ..channels.wording import dollars, plural, tokens
from ..ledger import Left
from ..reckoning import Sum
from ..reckoning.saving import Saving
from .printing import cut, table, wrapped

_WIDE = 72  # columns from which on all figures are shown
_LONGEST_NAME = 34
_LONGEST_BAR = 40
_SHORT_BAR = 10  # where a title follows
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `name` is how screens show the key, where that is not itself."""

    key: str
    sum: Sum
    name: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is printed. `elsewhere` is what imported sessions did cost in other programs, in tokens."""

    by: str
    rows: Sequence[Row]
    total: Sum
    elsewhere: Sum | None = None
    saving: Saving | None = None
    unpriced: tuple[str, ...] = ()
    caps: tuple[Left, ...] = field(default=())
    since: datetime | None = None
    until: datetime | None = None


def report_lines(report: Report, columns: int) -> Iterator[str]:
    """The report, at most `columns` wide (40 are enough)."""
    if not report.total.calls and not (report.elsewhere and report.elsewhere.calls):
        yield f"No model was asked {_span(report)}."
    if report.total.calls:
        yield from wrapped(f"US dollars by {report.by}, {_span(report)}", columns)
        yield ""
        yield from _table(report, columns)
        yield ""
    for line in _conclusion(report):
        yield from wrapped(line, columns)
    for each in report.caps:
        yield from wrapped(_cap(each), columns)


def bar(share: float, columns: int) -> str:
    """A bar as long as `share` (0 to 1) of `columns`; what is not nothing is seen."""
    eighths = round(share * columns * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, rest = divmod(min(eighths, columns * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def _table(report: Report, columns: int) -> Iterator[str]:
    wide, titled = columns >= _WIDE, report.by == "session"
    head = (report.by, "cost", "calls", "prompt", "cached", "out") if wide else (report.by, "cost", "calls")
    rows = [(*_cells(row, wide=wide, columns=columns), row) for row in report.rows]
    cells = [head, *(tuple(str(cell) for cell in row[:-1]) for row in rows)]
    taken = sum(max(len(row[place]) for row in cells) for place in range(len(head))) + 2 * len(head)
    room = _SHORT_BAR if titled and wide else min(_LONGEST_BAR, columns - taken)
    most = max((row.sum.cost for row in report.rows), default=0.0)
    shown = [(*head, "", "title") if titled and wide else (*head, "")]
    for line, row in zip(cells[1:], report.rows, strict=True):
        drawn = bar(row.sum.cost / most if most else 0.0, max(1, room))
        shown.append((*line, drawn, row.title) if titled and wide else (*line, row.title if titled else drawn))
    yield from table(shown, columns, right=frozenset(range(1, len(head))))


def _cells(row: Row, *, wide: bool, columns: int) -> tuple[str, ...]:
    name = cut(row.name or row.key, min(_LONGEST_NAME, columns // 2)) or "?"
    sum_ = row.sum
    first = (name, _cost(sum_), f"{sum_.calls:,}" if sum_.calls else "")
    if not wide:
        return first
    cached = f"{100 * sum_.cached:.0f} %" if sum_.prompt else ""
    return (*first, tokens(sum_.prompt) if sum_.calls else "", cached, tokens(sum_.output) if sum_.calls else "")


def _cost(sum_: Sum) -> str:
    """What is known of the cost; a question mark where that is not all."""
    doubt = "?" if sum_.unknown or sum_.unpriced else " "
    known = sum_.calls > sum_.unknown + sum_.unpriced
    return (dollars(sum_.cost) if known else "") + doubt if sum_.calls else ""


def _conclusion(report: Report) -> Iterator[str]:
    total = report.total
    if total.calls:
        parts = [f"{tokens(total.read)} tokens read from the cache", f"{tokens(total.written)} written to it"]
        share = f" ({100 * total.cached:.0f} % of prompts cached)" if total.prompt else ""
        thought = f" ({tokens(total.reasoning)} of it reasoning)" if total.reasoning else ""
        yield (
            f"{dollars(total.cost)} in {plural(total.calls, 'call')}: {', '.join(parts)}, {tokens(total.plain)} "
            f"plain{share}, {tokens(total.output)} out{thought}."
        )
    if report.saving is not None and report.saving.calls:
        yield _saved(report.saving)
    if total.unpriced:
        models = ", ".join(one_line(model, 60) for model in report.unpriced)
        named = f" ({models})" if models else ""
        yield (
            f"Not in the sum: {plural(total.unpriced, 'call')} to models without a known price{named}. "
            '[models."ID"] price in moonwake.toml gives one, for calls to come.'
        )
    if total.unknown:
        most = f"; at most {dollars(total.most)} was reserved" if total.most else ""
        yield f"Not in the sum: {plural(total.unknown, 'call')} that ended before the provider told the cost{most}."
    if report.elsewhere is not None and report.elsewhere.calls:
        other = report.elsewhere
        yield (
            f"Imported sessions hold {plural(other.calls, 'reply').replace('replys', 'replies')} that other programs "
            f"paid for ({tokens(other.prompt)} tokens in, {tokens(other.output)} out); they are not counted."
        )


def _saved(saving: Saving) -> str:
    warmed = (
        f" What {plural(saving.warmings, 'request')} to keep it warm cost ({dollars(saving.warming)}) is taken off."
        if saving.warmings
        else ""
    )
    if saving.saved >= 0:
        return f"The cache saved {dollars(saving.saved)} against paying every prompt in full.{warmed}"
    return (
        f"The cache cost {dollars(-saving.saved)} more than paying every prompt in full: more was written than was "
        f"read again.{warmed}"
    )


def _cap(left: Left) -> str:
    held = f", {dollars(left.held)} reserved" if left.held else ""
    share = 100 * (left.spent + left.held) / left.cap if left.cap else 100
    return f"Cap of {dollars(left.cap)} {left.what}: {dollars(left.spent)} spent{held} ({share:.0f} %)."


def _span(report: Report) -> str:
    if report.since is None and report.until is None:
        return "since the beginning"
    since = "the beginning" if report.since is None else f"{report.since:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
    until = "" if report.until is None else f" until {report.until:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
    return f"since {since}{until}"
