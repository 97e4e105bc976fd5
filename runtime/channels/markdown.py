"""Markdown as the terminal shows it: rich's renderer with our manners.

HTML is shown as text (rich would drop it, and `Vec<T>` with it), a line end in a paragraph is one, links show where
they lead, headings stand left, code has no background that a narrow terminal would break.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from .sanitize import clean

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown

#: Styles of our lines and of Markdown, for rich.
STYLES = {
    "markdown.code": "cyan",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "italic bold",
    "markdown.link": "underline",
    "markdown.link_url": "dim",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.block_quote": "italic",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def markdown(source: str) -> Markdown:
    """`source` as something that rich can print."""
    from markdown_it import MarkdownIt

    rendered = _markdown_class()("", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
    rendered.parsed = parser.parse(source)
    _tame(rendered.parsed)
    return rendered


def _tame(tokens: list[Token]) -> None:
    """Keep line ends, and clean what entities (`&#x202e;`) were decoded to."""
    for token in tokens:
        token.content = clean(token.content)
        if token.type == "softbreak":
            token.type = "hardbreak"
        if token.children:
            _tame(token.children)


@lru_cache(maxsize=1)
def _markdown_class() -> type[Markdown]:
    from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement
    from rich.padding import Padding
    from rich.segment import Segment
    from rich.syntax import Syntax

    class LeftHeading(Heading):
        LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")

    class DottedItem(ListItem):
        def render_number(
            self, console: Console, options: ConsoleOptions, number: int, last_number: int
        ) -> RenderResult:
            width = len(str(last_number)) + 3
            style = console.get_style("markdown.item.number")
            for place, line in enumerate(
                console.render_lines(self.elements, options.update(width=options.max_width - width))
            ):
                yield Segment(f"{number}. ".rjust(width) if place == 0 else " " * width, style)
                yield from line
                yield Segment("\n")

    class PlainCode(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            syntax = Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")
            yield Padding(syntax, (0, 0, 0, 2))

    class OurMarkdown(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements,
            "heading_open": LeftHeading,
            "list_item_open": DottedItem,
            "fence": PlainCode,
            "code_block": PlainCode,
        }

    return OurMarkdown
