"""What became of every line of an imported file, for people to read.

Laws: each line is carried over, left with a reason, or unexplained; of a known format none is unexplained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_MOST_NAMED = 12  # runs of line numbers in one sentence


@dataclass(frozen=True, slots=True)
class Report:
    """`carried`: the session (by its place among those made) and the first entry that a line became; `left`: why a line
    was not carried over; `partly`: what a line lost that was."""

    format: str
    lines: int
    carried: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    left: Mapping[int, str] = field(default_factory=dict)
    partly: tuple[tuple[int, str], ...] = ()

    @property
    def unexplained(self) -> tuple[int, ...]:
        """Lines that nothing is said about."""
        return tuple(n for n in range(1, self.lines + 1) if n not in self.carried and n not in self.left)

    @property
    def reasons(self) -> dict[str, list[int]]:
        """The lines that were left, by their reason, the commonest first."""
        return _grouped((reason, line) for line, reason in sorted(self.left.items()))

    @property
    def losses(self) -> dict[str, list[int]]:
        """The lines that lost something, by what it was, the commonest first."""
        return _grouped((what, line) for line, what in self.partly)

    def text(self) -> str:
        """The report in words, with line numbers."""
        told = [f"{_lines(self.lines)} ({self.format}): {len(self.carried):,} carried over, {len(self.left):,} left."]
        told += [f"  left, {_lines(len(which))}: {reason} ({runs(which)})" for reason, which in self.reasons.items()]
        told += [f"  carried over without {what}, {_lines(len(w))} ({runs(w)})" for what, w in self.losses.items()]
        if self.unexplained:
            told.append(f"  unexplained, {_lines(len(self.unexplained))} ({runs(self.unexplained)})")
        return "\n".join(told)


def runs(numbers: Sequence[int]) -> str:
    """Line numbers with their runs drawn together: `line 3`, `lines 4-9, 12`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in found[:_MOST_NAMED]]
    more = ", …" if len(found) > _MOST_NAMED else ""
    return f"line{'s' if len(set(numbers)) != 1 else ''} {', '.join(shown)}{more}"


def _lines(number: int) -> str:
    return f"{number:,} line{'' if number == 1 else 's'}"


def _grouped(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, line in pairs:
        found.setdefault(name, []).append(line)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))
