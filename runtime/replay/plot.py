"""Context size and cost over a session, one line a policy, as an SVG picture.

Written by hand, so that a picture needs no package. PNG is drawn with matplotlib where that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path

from ..errors import MoonwakeError
from .simulate import Run

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#555555")
WIDTH, HEIGHT = 960, 300  # of one panel, in pixels
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 34, 40


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: for each policy a value a call."""

    title: str
    lines: Mapping[str, Sequence[float]]

    @property
    def calls(self) -> int:
        return max((len(line) for line in self.lines.values()), default=0)

    @property
    def top(self) -> float:
        return max((value for line in self.lines.values() for value in line), default=0.0) or 1.0


def panels(name: str, runs: Mapping[str, Run]) -> tuple[Panel, Panel]:
    """The two charts of a session: the tokens of each prompt, and the cost up to each call."""
    sizes = {policy: [float(row.prompt) for row in run.rows] for policy, run in runs.items()}
    costs = {policy: list(accumulate(row.cost for row in run.rows)) for policy, run in runs.items()}
    return Panel(f"{name}: tokens of each prompt", sizes), Panel(f"{name}: cost so far, in plain input tokens", costs)


def svg(charts: Sequence[Panel]) -> str:
    """The charts below each other, as an SVG document."""
    height = HEIGHT * len(charts)
    drawn = "\n".join(_panel(chart, HEIGHT * number) for number, chart in enumerate(charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f"{drawn}\n</svg>\n"
    )


def check_kind(path: Path) -> None:
    """Raises `MoonwakeError` for a file that cannot be drawn here: neither SVG nor PNG, or PNG without matplotlib."""
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise MoonwakeError(f"cannot draw {path}: name a file that ends in .svg (or in .png, with matplotlib)")
    if kind == ".png":
        try:
            import matplotlib.figure  # type: ignore[import-not-found, unused-ignore] # noqa: F401  # optional
        except ImportError:
            svg_path = path.with_suffix(".svg")
            raise MoonwakeError(
                f"a PNG needs matplotlib, which is not installed. Write an SVG instead: --plot {svg_path}"
            ) from None


def save(path: Path, charts: Sequence[Panel]) -> None:
    """Write the charts to a `.svg` or `.png` file. Raises `MoonwakeError`."""
    check_kind(path)
    try:
        if path.suffix.lower() == ".svg":
            path.write_text(svg(charts), encoding="utf-8")
        else:
            _save_png(path, charts)
    except OSError as error:
        raise MoonwakeError(f"cannot write {path}: {error.strerror or error}") from error


def _save_png(path: Path, charts: Sequence[Panel]) -> None:
    from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]  # optional

    figure = Figure(figsize=(WIDTH / 96, HEIGHT * len(charts) / 96), layout="constrained")
    for axes, chart in zip(figure.subplots(len(charts), squeeze=False)[:, 0], charts, strict=True):
        for colour, (policy, line) in zip(_colours(chart), chart.lines.items(), strict=True):
            axes.plot(range(1, len(line) + 1), line, label=policy, color=colour)
        axes.set_title(chart.title)
        axes.set_xlabel("call")
        axes.legend()
    figure.savefig(path)


def _colours(chart: Panel) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(len(chart.lines))]


def _panel(chart: Panel, offset: int) -> str:
    parts = [f'<g transform="translate(0 {offset})">', _text(LEFT, 16, chart.title, weight="bold")]
    for step in range(5):
        value = chart.top * step / 4
        y = _y(value, chart.top)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 6, y + 4, _short(value), anchor="end"))
    parts.append(_text(LEFT, HEIGHT - BOTTOM + 16, "call 1"))
    parts.append(_text(WIDTH - RIGHT, HEIGHT - BOTTOM + 16, f"call {chart.calls}", anchor="end"))
    for number, (colour, (policy, line)) in enumerate(zip(_colours(chart), chart.lines.items(), strict=True)):
        points = " ".join(f"{_x(i, chart.calls):.1f},{_y(value, chart.top):.1f}" for i, value in enumerate(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(LEFT + 150 * number, HEIGHT - 8, policy, colour=colour, weight="bold"))
    return "\n".join([*parts, "</g>"])


def _x(index: int, calls: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (index / (calls - 1) if calls > 1 else 0.5)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f}M"
    return f"{value / 1_000:.0f}k" if value >= 1_000 else f"{value:.0f}"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#333333", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )
