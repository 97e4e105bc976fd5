"""From what a conversation shows to lines of terminal text. The one place that knows rich.

Every line is at most `width` cells wide and holds no control sequence but colours. Blank lines between things are
decided by `gap`, so that groups of tool lines stand together and paragraphs apart.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .blocks import Block
from .markdown import STYLES, markdown
from .reducer import Line, LineKind, Shown

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Mark and rich style of each kind of line.
_LOOKS: dict[LineKind, tuple[str, str]] = {
    "user": ("›", "bold cyan"),
    "info": ("", "dim"),
    "success": ("✓", "green"),
    "failure": ("✗", "red"),
    "thought": ("✻", "dim"),
    "warning": ("!", "yellow"),
    "error": ("✗", "bold red"),
    "plain": ("", ""),
    "past": ("", "dim"),
    "tree": ("", ""),
    "running": ("●", "yellow"),
    "thinking": ("✻", "dim"),
    "queued": ("+", "dim"),
}
_CUT = frozenset({"tree", "running", "thinking"})  # their lines stay one line each, whatever the width
_WHOLE_STYLE = frozenset(
    {"user", "info", "thought", "warning", "error", "past", "thinking", "queued"}
)  # else only the mark
_TOGETHER = frozenset({"success", "failure", "thought", "running"})
_ASCII = str.maketrans(
    {
        "·": "-",
        "…": "...",
        "›": ">",
        "✓": "+",
        "✗": "x",
        "●": "*",
        "✻": "*",
        "•": "-",
        "▌": "|",
        "—": "-",
        "–": "-",
        "├": "+",
        "│": "|",
        "─": "-",
        "←": "<-",
    }
)
_TRAILING = re.compile(r"[ ]+((?:\x1b\[[0-9;]*m)*)$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_DRAWN = 16_000  # characters of one block that are drawn as Markdown while it is being written


class Renderer:
    """Draws for a terminal whose encoding is `unicode` or not; `color` False leaves bold and dim only."""

    def __init__(self, *, unicode: bool = True, color: bool = True) -> None:
        self._unicode = unicode
        self._color = color
        self._consoles: dict[int, Console] = {}

    def mark(self, kind: LineKind) -> str:
        return self.plain(_LOOKS[kind][0])

    def plain(self, text: str) -> str:
        """`text` with our marks in the characters that the terminal has."""
        return text if self._unicode else text.translate(_ASCII)

    def draw(self, shown: Shown, width: int) -> list[str]:
        """`shown` as lines of at most `width` cells."""
        return self._line(shown, width) if isinstance(shown, Line) else self.block(shown, width)

    def block(self, block: Block, width: int) -> list[str]:
        source = block.source.expandtabs(4)
        lines = self._drawn(markdown(source), width)
        while lines and not bare(lines[-1]).strip():
            lines.pop()
        while lines and not bare(lines[0]).strip():
            lines.pop(0)
        if not lines and source.strip():  # such as a link definition: Markdown shows nothing, we show all
            return self._plain_lines(source.strip(), width)
        return lines

    def open_block(self, block: Block, width: int) -> tuple[list[str], bool]:
        """A block that is being written; False when it is too long to be drawn as Markdown each time."""
        if len(block.text) <= _LONGEST_DRAWN:
            return self.block(block, width), True
        return self._plain_lines(block.text[-4_000:], width), False

    def _line(self, line: Line, width: int) -> list[str]:
        from rich.text import Text

        mark, style = _LOOKS[line.kind]
        indent = len(self.plain(mark)) + 1 if mark else 0
        room = max(10, width - indent)
        body = Text(line.text.expandtabs(4), style if line.kind in _WHOLE_STYLE else "")
        if line.kind in _CUT:  # `no_wrap` is lost when rich prints a text, so it is cut beforehand
            pieces = body.split(allow_blank=True)
            for piece in pieces:
                piece.truncate(room, overflow="ellipsis")
            body = Text("\n").join(pieces)
        lines = self._drawn(body, room)
        first = self._drawn(Text(mark, style), width)[0] if mark else ""
        return [
            f"{first if number == 0 else ' ' * (indent - 1)}{' ' if mark else ''}{text}"
            for number, text in enumerate(lines)
        ]

    def _plain_lines(self, text: str, width: int) -> list[str]:
        from rich.text import Text

        return self._drawn(Text(text.expandtabs(4)), width)

    def _drawn(self, what: RenderableType, width: int) -> list[str]:
        console = self._console(width)
        with console.capture() as captured:
            console.print(what)
        text = self.plain(captured.get().removesuffix("\n"))
        return [_TRAILING.sub(r"\1", line) for line in text.split("\n")]

    def _console(self, width: int) -> Console:
        if width not in self._consoles:
            from rich.console import Console
            from rich.theme import Theme

            encoding = "utf-8" if self._unicode else "ascii"
            self._consoles = {
                width: Console(
                    file=io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace"),
                    force_terminal=True,
                    no_color=None if self._color else True,
                    width=width,
                    theme=Theme(STYLES),
                    highlight=False,
                    emoji=False,
                    markup=False,
                    legacy_windows=False,
                )
            }
        return self._consoles[width]


def bare(line: str) -> str:
    """A drawn line without its colours."""
    return _COLOUR.sub("", line)


def gap(before: Shown | None, after: Shown) -> bool:
    """Whether a blank line stands between two things that are printed one after the other."""
    if before is None:
        return False
    if isinstance(after, Block):
        return not after.joined
    if isinstance(before, Line):
        if before.kind in _TOGETHER and after.kind in _TOGETHER:
            return False
        return before.kind != after.kind or before.kind == "user"
    return True


def continuation(printed: Sequence[str], lines: Sequence[str]) -> list[str]:
    """What of `lines` is still to be printed after `printed`, the lines of the same block when it was shorter.

    If what was printed is no longer how the block begins (a mark far above was closed), all of it comes again:
    better twice than not at all.
    """
    same = [bare(line) for line in printed] == [bare(line) for line in lines[: len(printed)]]
    return list(lines[len(printed) :] if same else lines)


def join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\r\n" for line in lines)
