"""Front matter: the part of YAML that skills use, read leniently. Pure.

`key: value`, quotes, block text (`|`, `>`), lists, nested keys, and the flow form (`[a, b]`, `{"a": {"b": 1}}`) over
any number of lines, with bare words and commas at the end. What cannot be read becomes text or is left out; nothing
raises.
"""

from __future__ import annotations

import json
import re
from typing import Any

_KEY = re.compile(r"""([A-Za-z_][\w-]*|"[^"]*"|'[^']*')\s*:(?:\s+(.*)|$)""")
_DEEPEST = 12  # nested levels; no skill has more, and a file must not exhaust the stack


def split_front_matter(text: str) -> tuple[list[str], str] | None:
    """The lines between the two `---`, and the rest; None without them."""
    lines = text.lstrip("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return lines[1:number], "\n".join(lines[number + 1 :])
    return None


def parse_front_matter(lines: list[str], depth: int = 0) -> dict[str, Any]:
    """Each key with text, a list, or a dict. The flow form keeps JSON's numbers and booleans; all else is text."""
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        found = _KEY.fullmatch(lines[at].rstrip())
        at += 1
        if not found:
            continue
        start = at
        while at < len(lines) and _goes_on(lines[at]):
            at += 1
        fields[found[1].strip("\"'")] = _value((found[2] or "").strip(), lines[start:at], depth)
    return fields


def unread_lines(lines: list[str]) -> list[int]:
    """Which lines (from 0) belong to no key: the reader passes over them."""
    unread, inside = [], False
    for number, line in enumerate(lines):
        if _KEY.fullmatch(line.rstrip()):
            inside = True
        elif line.strip() and not line.lstrip().startswith("#") and not (inside and _goes_on(line)):
            unread.append(number)
    return unread


def _goes_on(line: str) -> bool:
    return not line.strip() or line[0] in " \t" or line.startswith(("- ", "]", "}")) or line.rstrip() == "-"


def _value(first: str, below: list[str], depth: int) -> Any:
    below = [line.expandtabs() for line in below]
    if re.fullmatch(r"[|>][+-]?\d?[+-]?(\s+#.*)?", first):
        return _block(below, folded=first[0] == ">")
    below = [line.rstrip() for line in below if line.strip() and not line.lstrip().startswith("#")]
    words = [line.strip() for line in below]
    if first and first[0] in "[{":
        return _flow(" ".join((first, *words)))
    if first and not first.startswith("#"):
        return _scalar(" ".join((first, *words)))
    if words and words[0][0] in "[{":
        return _flow(" ".join(words))
    if words and words[0].startswith("-"):
        return _list(below, words, depth)
    if words and depth < _DEEPEST and _KEY.fullmatch(words[0]):
        return parse_front_matter(_dedented(below), depth + 1)
    return _scalar(" ".join(words))


def _list(lines: list[str], words: list[str], depth: int) -> list[Any]:
    if all(word.startswith("-") for word in words) or depth >= _DEEPEST:
        return [_item(word.removeprefix("-").strip()) for word in words]
    items: list[list[str]] = []
    for line in _dedented(lines):
        if line.startswith("-"):
            items.append([" " + line[1:]])
        elif items:
            items[-1].append(line)
    return [_value("", item, depth + 1) for item in items]


def _item(text: str) -> Any:
    return _flow(text) if text[:1] in ("[", "{") else _scalar(text)


def _dedented(lines: list[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def _block(lines: list[str], folded: bool) -> str:
    text = "\n".join(line.rstrip() for line in _dedented(lines)).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text


def _flow(text: str) -> Any:
    """The flow form: JSON, or YAML's with bare words; the text itself where it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    value, rest = _flow_value(_TOKEN.findall(text), 0)
    return text if rest is None or rest else value


_TOKEN = re.compile(
    r"""\s*(
        "(?:[^"\\]|\\.)*" | '(?:[^']|'')*' | [][{},]
        | :(?=\s|$|["'[{])                                 # the colon after a key
        | [^][{},:"']+ (?: :(?!\s|$) [^][{},:]* )*         # a bare word; a colon within belongs to it, as in an address
    )""",
    re.VERBOSE,
)
_Rest = list[str] | None  # None: it cannot be read


def _flow_value(tokens: list[str], depth: int) -> tuple[Any, _Rest]:
    """The value at the front, and the tokens after it."""
    if not tokens or depth > _DEEPEST or tokens[0] in (",", ":", "]", "}"):
        return None, None
    if tokens[0] not in ("[", "{"):
        return _bare(tokens[0]), tokens[1:]
    end = "]" if tokens[0] == "[" else "}"
    items: list[Any] = []
    pairs: dict[str, Any] = {}
    rest: _Rest = tokens[1:]
    while rest and rest[0] != end:
        value, rest = _flow_value(rest, depth + 1)
        if rest and end == "}":
            if rest[0] != ":":
                return None, None
            pairs[str(value)], rest = _flow_value(rest[1:], depth + 1)
        items.append(value)
        if rest and rest[0] == ",":
            rest = rest[1:]
        elif not rest or rest[0] != end:
            return None, None
    if not rest:
        return None, None
    return (pairs if end == "}" else items), rest[1:]


def _bare(token: str) -> Any:
    token = token.strip()
    return {"true": True, "false": False, "null": None}[token] if token in ("true", "false", "null") else _scalar(token)


def _scalar(text: str) -> str:
    if quoted := re.match(r'"((?:[^"\\]|\\.)*)"\s*(#.*)?$', text):
        try:
            return str(json.loads(f'"{quoted[1]}"'))
        except ValueError:
            return quoted[1]
    if quoted := re.match(r"'((?:[^']|'')*)'\s*(#.*)?$", text):
        return quoted[1].replace("''", "'")
    return re.sub(r"\s+#.*$", "", text)
