"""Markdown that somebody else wrote, made fit to stand inside a document of ours. Pure.

Laws: `tamed(text)` holds no HTML (tags are escaped, code keeps them), no heading above the third level, and whatever
follows it in the document is read as if it stood alone. What cannot be made so stands in a code block.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>")
_RUNS = re.compile("`+")
_MOST_PASSES = 4
_LOWEST = 6
_BELOW = 2  # levels that our own headings take
_AFTER = "after"


def tamed(text: str, *, keep_lines: bool = False) -> str:
    """`text` as it can stand in a document. `keep_lines`: line ends in a paragraph stay line ends."""
    text = text.strip("\n").rstrip()
    for _ in range(_MOST_PASSES):
        tokens = _parser().parse(text)
        if not _has_html(tokens) and not _has_html(_parser("table").parse(text)):
            break
        text = _without_tags(text, tokens)
    else:
        return _fenced(text)
    lines = _lowered(text.split("\n"), tokens)
    if keep_lines:
        lines = _broken(lines, _parser().parse("\n".join(lines)))
    closed = _closed("\n".join(lines))
    return _fenced(text) if closed is None else closed


@lru_cache(maxsize=2)
def _parser(*rules: str) -> MarkdownIt:
    """One that knows tables sees other code, and so other tags, than one that does not: neither may find any."""
    from markdown_it import MarkdownIt  # comes with rich

    return MarkdownIt("commonmark").enable(rules)


def _has_html(tokens: list[Token]) -> bool:
    return any(
        token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())
        for token in tokens
    )


def _without_tags(text: str, tokens: list[Token]) -> str:
    """`text` with the beginnings of tags escaped, but for those in code."""
    lines = text.split("\n")
    code: set[int] = set()
    for token in tokens:
        if token.type in ("fence", "code_block") and token.map is not None:
            code.update(range(*token.map))
    done: list[str] = []
    prose: list[str] = []
    for number, line in enumerate([*lines, ""]):
        if number < len(lines) and number not in code:
            prose.append(line)
            continue
        if prose:
            done.extend(_escape("\n".join(prose)).split("\n"))
            prose = []
        if number < len(lines):
            done.append(line)
    return "\n".join(done)


def _escape(prose: str) -> str:
    pieces = []
    end = 0
    kept = sorted([*_SPAN.finditer(prose), *_AUTOLINK.finditer(prose)], key=lambda found: found.start())
    for found in kept:
        if found.start() >= end:
            pieces += [_TAG.sub(r"\\<", prose[end : found.start()]), found[0]]
            end = found.end()
    escaped = "".join([*pieces, _TAG.sub(r"\\<", prose[end:])])
    return escaped if escaped != prose else _TAG.sub("&lt;", prose)  # what looked like code was none


def _lowered(lines: list[str], tokens: list[Token]) -> list[str]:
    """Headings, two levels down; underlined ones get the other form."""
    changed: dict[int, str | None] = {}
    for place, token in enumerate(tokens):
        if token.type != "heading_open" or token.map is None:
            continue
        start, end = token.map
        level = min(_LOWEST, int(token.tag[1:]) + _BELOW)
        if token.markup.startswith("#"):
            changed[start] = lines[start].replace(token.markup, "#" * level, 1)
        elif token.level == 0:
            changed[start] = "#" * level + " " + " ".join(tokens[place + 1].content.split("\n"))
            changed.update(dict.fromkeys(range(start + 1, end)))
    found = (changed.get(number, line) for number, line in enumerate(lines))
    return [line for line in found if line is not None]


def _broken(lines: list[str], tokens: list[Token]) -> list[str]:
    """Two spaces at the line ends inside paragraphs, which make them stay."""
    inside: set[int] = set()
    for token, after in pairwise(tokens):
        if token.type == "paragraph_open" and after.map is not None:
            inside.update(range(after.map[0], after.map[1] - 1))
    return [line.rstrip() + "  " if number in inside else line for number, line in enumerate(lines)]


def _closed(text: str) -> str | None:
    """`text` with its open fence closed; None when what follows would still be taken for a part of it."""
    if _is_closed(text):
        return text
    fences = [token for token in _parser().parse(text) if token.type == "fence" and token.level == 0]
    closed = f"{text}\n{fences[-1].markup}" if fences else text
    return closed if _is_closed(closed) else None


def _is_closed(text: str) -> bool:
    tokens = _parser().parse(f"{text}\n\n## {_AFTER}")
    return [token.type for token in tokens[-3:]] == ["heading_open", "inline", "heading_close"] and (
        tokens[-3].level == 0 and tokens[-2].content == _AFTER and not _has_html(tokens)
    )


def _fenced(text: str) -> str:
    mark = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    return f"{mark}markdown\n{text}\n{mark}"
