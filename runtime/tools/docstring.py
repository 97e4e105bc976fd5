"""Reads a docstring: what a function does, and what its parameters mean. Pure.

Two styles are understood, also mixed: Google (`Args:` with indented `name: text` lines) and reST
(`:param name: text`). Whatever else a docstring holds (returns, raises, examples) is not for the model.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_ARGUMENTS = frozenset({"args", "arguments", "parameters", "params"})
_SECTIONS = _ARGUMENTS | frozenset(
    {"returns", "return", "raises", "raise", "yields", "yield", "example", "examples", "note", "notes"}
    | {"warning", "warnings", "see also", "todo", "attributes", "references", "warns", "keyword args"}
)
_HEADER = re.compile(r"(?P<name>[A-Za-z][A-Za-z ]*):\s*$")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")
_REST_FIELD = re.compile(r":(?P<kind>\w+)(?:\s+(?P<what>[^:]*))?:\s*(?P<text>.*)$")
_REST_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@dataclass(slots=True)
class Docstring:
    """`description` is the prose before any section; `parameters` maps a name to its one-line description."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str | None) -> Docstring:
    """The parts of a docstring that a model reads. Takes anything and raises nothing."""
    lines = inspect.cleandoc(text or "").splitlines()
    found = Docstring()
    prose: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        header = _HEADER.match(line)
        rest = _REST_FIELD.match(line)
        if header and header["name"].lower() in _SECTIONS:
            body, position = _indented(lines, position + 1)
            if header["name"].lower() in _ARGUMENTS:
                found.parameters |= _google_items(body)
        elif rest:
            body, position = _indented(lines, position + 1)
            words = (rest["what"] or "").split()
            if rest["kind"] in _REST_PARAMETERS and words:
                found.parameters[words[-1]] = _joined([rest["text"], *body])
        else:
            prose.append(line)
            position += 1
    found.description = "\n".join(prose).strip()
    return found


def _indented(lines: list[str], start: int) -> tuple[list[str], int]:
    """The lines from `start` on that are indented or empty, and the position after them."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    return lines[start:end], end


def _google_items(body: list[str]) -> dict[str, str]:
    items: dict[str, list[str]] = {}
    depth: int | None = None
    current: list[str] | None = None
    for line in body:
        stripped = line.strip()
        if not stripped:
            continue
        indent = len(line) - len(line.lstrip())
        depth = indent if depth is None else depth
        item = _GOOGLE_ITEM.match(stripped) if indent <= depth else None
        if item:
            current = items.setdefault(item["name"], [])
            current.append(item["text"])
        elif current is not None:
            current.append(stripped)
    return {name: _joined(texts) for name, texts in items.items()}


def _joined(texts: list[str]) -> str:
    return " ".join(part for text in texts if (part := text.strip()))
