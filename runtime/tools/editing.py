"""Replaces text in the bytes of a file. Pure.

It works on bytes, so whatever else the file holds (other encodings, a byte order mark) stays as it is. UTF-8 is
self-synchronising: a match of bytes is a match of characters.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ..errors import ToolError

_MOST_COMPARED = 5_000  # lines
_LONGEST_COMPARED = 400  # bytes
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` becomes `new`: exactly once, or everywhere with `everywhere`. Both are UTF-8."""

    old: bytes
    new: bytes
    everywhere: bool = False


def apply_edit(name: str, data: bytes, edit: Edit) -> tuple[bytes, tuple[int, ...]]:
    """The edited data, and the 1-based lines where it was changed. Raises `ToolError` saying how to do better."""
    if not edit.old:
        raise ToolError("old_text is empty; give the text to replace, or use write_file to write a whole file")
    if edit.old == edit.new:
        raise ToolError("old_text and new_text are the same, so there is nothing to change; nothing was written")
    old, new = edit.old, edit.new
    if old not in data and b"\r\n" in data:
        # read_file shows CRLF files with plain line breaks.
        old, new = _with_crlf(old), _with_crlf(new)
    lines = _lines_of(data, old)
    if not lines:
        raise ToolError(f"old_text does not stand in {name}, so nothing was changed. {_hint(data, edit.old)}")
    if len(lines) > 1 and not edit.everywhere:
        named = ", ".join(str(line) for line in lines[:_MOST_NAMED]) + (", …" if len(lines) > _MOST_NAMED else "")
        raise ToolError(
            f"old_text stands {len(lines)} times in {name} (lines {named}), so nothing was "
            "changed; add lines around it until it is unique, or set replace_all"
        )
    return data.replace(old, new), lines


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _lines_of(data: bytes, old: bytes) -> tuple[int, ...]:
    lines: list[int] = []
    line, counted = 1, 0
    position = data.find(old)
    while position >= 0:
        line += data.count(b"\n", counted, position)
        counted = position
        lines.append(line)
        position = data.find(old, position + len(old))
    return tuple(lines)


def _hint(data: bytes, old: bytes) -> str:
    """What may have been meant: the same words with other white space, or the most similar line."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), b"")
    lines = [line.strip()[:_LONGEST_COMPARED] for line in data.splitlines()[:_MOST_COMPARED]]
    if wanted and (found := _other_space(data, old)):
        return f"The same words stand at line {found} with other white space: copy them from read_file exactly"
    text = [line.decode("utf-8", "replace") for line in lines]
    near = difflib.get_close_matches(wanted[:_LONGEST_COMPARED].decode("utf-8", "replace"), text, n=1, cutoff=0.6)
    if near:
        return f"The most similar line is line {text.index(near[0]) + 1}: {near[0]}"
    return "No line is similar: read the file again"


def _other_space(data: bytes, old: bytes) -> int | None:
    """The line at which the words of `old` begin in `data`, whatever white space stands between them."""
    words = old.split()
    lines = data.splitlines()
    if len(lines) > _MOST_COMPARED:
        return None
    places = [(word, number) for number, line in enumerate(lines, 1) for word in line.split()]
    plain = [word for word, _ in places]
    for start in range(len(plain) - len(words) + 1):
        if plain[start] == words[0] and plain[start : start + len(words)] == words:
            return places[start][1]
    return None
