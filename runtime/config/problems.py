"""Says in plain words what is wrong with a layer of settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from .known import nearest_key
from .schema import Origin

_EXPECTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "string": "text",
    "tuple": "a list",
    "model": "a table",
    "dict": "a table",
    "mapping": "a table",
}


def layer_problems(error: ValidationError, data: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[str]:
    """One sentence for each fault of a layer; `origins` gives the place of each of its keys."""
    return [_sentence(fault, data, origins) for fault in error.errors(include_url=False, include_input=False)]


def _sentence(fault: Any, data: Mapping[str, Any], origins: Mapping[str, Origin]) -> str:
    named_key = [str(part) for part in fault["loc"] if part != "[key]"]
    path = [str(part) for part in fault["loc"] if isinstance(part, str) and part != "[key]"]
    key = ".".join(path)
    where = _place(key, origins)
    if fault["type"] == "extra_forbidden":
        meant = nearest_key(path)
        return f'{where}: unknown key "{key}"' + (f"; did you mean {meant}?" if meant else "")
    came = "" if "[key]" in fault["loc"] else _came(named_key, data)
    return f"{where}: {'.'.join(named_key)} should be {_expected(fault)}{came}"


def _place(key: str, origins: Mapping[str, Origin]) -> str:
    below = (place for known, place in origins.items() if known == key or known.startswith(key + "."))
    return str(next(below, next(iter(origins.values()), "the settings")))


def _expected(fault: Any) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "literal_error":
            return f"one of {context['expected']}".replace("'", '"')
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "value_error":
            return str(context["error"])
        case "string_pattern_mismatch" | "string_too_short" | "string_too_long":
            return "a name of 1 to 64 letters, digits, dots, dashes or underscores"
    for start, words in _EXPECTED.items():
        if str(fault["type"]).startswith(start):
            return words
    return f"valid ({fault['msg']})"


def _came(path: Sequence[str], data: Any) -> str:
    """What stands there instead. Nothing under `providers` is echoed: it may be a key pasted by mistake."""
    for part in path:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(data, (list, tuple)) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return ""
    if path[0] == "providers" and isinstance(data, str):
        return ""
    return f", not {describe_value(data)}"


def describe_value(value: Any) -> str:
    """A value as a person would name it, cut to a line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            shown = value if len(value) <= 40 else value[:39] + "…"
            return f'the text "{shown}"'.replace("\n", " ")
        case list() | tuple():
            return "a list"
        case dict():
            return "a table"
    return f"a {type(value).__name__}"
