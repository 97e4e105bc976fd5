"""The outline of a session as lines of text, for /tree. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..session.moving.outline import Branch, Outline, Row
from .sanitize import one_line
from .wording import plural

_LAST = 12  # turns at the end that are always shown
_REMARKABLE = 12  # of the others: so many of the newest with marks or branches
_BRANCHES = 5  # of one turn
_WIDTH = 64  # characters of what was said


def tree_lines(outline: Outline, *, whole: bool = False) -> list[str]:
    """A line for each turn of the current branch, with the branches that leave it under it. `whole` folds nothing."""
    lines: list[str] = []
    for branch in outline.beginnings:
        lines.extend(_branch(branch, " " * 4, whole))
    shown = set(range(len(outline.rows))) if whole else _unfolded(outline.rows)
    skipped = 0
    begun = outline.start is None
    for number, row in enumerate(outline.rows):
        if not begun and row.tip >= (outline.start or 0):
            begun = True
            if number or outline.summarised:
                lines.extend([*_skip(skipped), _view(summarised=outline.summarised)])
                skipped = 0
        if number not in shown:
            skipped += 1
            continue
        lines.extend(_skip(skipped))
        skipped = 0
        lines.append(f"{'#' + str(row.entry):>6}  {_turn(row)}{'  ← you are here' if row.here else ''}")
        lines.extend(_branches(row, " " * 8, whole))
    return lines


def _unfolded(rows: Sequence[Row]) -> set[int]:
    last = range(max(0, len(rows) - _LAST), len(rows))
    marked = [number for number, row in enumerate(rows[: len(rows) - len(last)]) if row.branches or _marks(row)]
    kept = {0, *marked[-_REMARKABLE:], *last}
    lonely = {number for number in range(len(rows)) if {number - 1, number + 1} <= kept}  # no shorter if folded
    return (kept | lonely) if rows else set()


def _skip(turns: int) -> list[str]:
    return [f"{'…':>6}  {plural(turns, 'turn')} (/tree all shows them)"] if turns else []


def _view(*, summarised: bool) -> str:
    above = "a summary stands for what is above" if summarised else "what is above can be recalled"
    return f"{'':>6}  ─── the model sees from here on; {above} ───"


def _branches(row: Row, indent: str, whole: bool) -> Iterator[str]:
    shown = row.branches if whole else row.branches[-_BRANCHES:]
    if len(shown) < len(row.branches):
        count = len(row.branches) - len(shown)
        yield f"{indent}├ {count:,} older {'branch' if count == 1 else 'branches'} (/tree all shows them)"
    for branch in shown:
        yield from _branch(branch, indent, whole)


def _branch(branch: Branch, indent: str, whole: bool) -> Iterator[str]:
    first, *others = branch.rows
    more = f"  · {plural(branch.turns, 'turn')}" if branch.turns > 1 and not whole else ""
    yield f"{indent}├ #{first.entry}  {_turn(first)}{more}"
    if not whole:
        return
    inner = indent + "│ "
    yield from _branches(first, inner, whole)
    for row in others:
        yield f"{inner}#{row.entry}  {_turn(row)}"
        yield from _branches(row, inner, whole)


def _turn(row: Row) -> str:
    text = one_line(row.text, _WIDTH)
    marks = _marks(row)
    return f"{'again: ' if row.again else ''}{text}{'  [' + ', '.join(marks) + ']' if marks else ''}"


def _marks(row: Row) -> list[str]:
    """What people put on the turn and what happened in it; entries other than the message are named."""

    def of(word: str, entries: Sequence[int]) -> list[str]:
        return [word if entry == row.entry else f"{word} #{entry}" for entry in entries]

    labels = [word for entry, label in row.labels for word in of(one_line(label, 40), [entry])]
    hidden = of("redacted", [entry for entry in row.redacted if entry != row.entry])  # the text says so itself
    told = [f"told of the branch to #{tip}" for tip in row.summaries]
    notes = [f"note #{entry}: {one_line(text, 40)}" for entry, text in row.notes]
    return [
        *labels,
        *notes,
        *of("pinned", row.pinned),
        *hidden,
        *of("left out", row.omitted),
        *of("head", row.heads),
        *told,
    ]
