"""Arguments of calls: always the JSON text of an object, whatever the model wrote.

Text that is one stays as it was written. Two slips that have one reading only are mended (a backslash that opens no
escape, a raw line break inside a string); what still cannot be read stays visible to the model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from .scrub import may_hide_surrogate, scrub

#: Objects nested deeper than this are not sent: JSON parsers give up at some such depth.
MAX_DEPTH = 100

#: The key under which stays what could not be read.
UNPARSED = "unparsed"

_ESCAPE = re.compile(r'\\(?P<valid>["\\/bfnrt]|u[0-9a-fA-F]{4})?')


def legal_arguments(text: str) -> str:
    """JSON text of an object without lone surrogates; `text` itself when it is that."""
    if not text.strip():
        return "{}"
    value = parse_object(text)
    if value is None:
        mended = parse_object(_ESCAPE.sub(_mended_escape, text), strict=False)
        return scrub(_dump({UNPARSED: text} if mended is None else mended))
    if not may_hide_surrogate(text):
        return scrub(text)
    dumped = _dump(value)
    clean = scrub(dumped)
    return text if clean is dumped and scrub(text) is text else clean


def parse_object(text: str, *, strict: bool = True) -> dict[str, Any] | None:
    """The JSON object in `text`, or None when it is not one that a provider would take: not an object, not JSON
    (NaN), numbers out of range, nested too deeply. Without `strict`, strings may hold raw line breaks."""
    try:
        value = json.loads(text, strict=strict, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not _is_deeper(value, MAX_DEPTH) else None


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _mended_escape(escape: re.Match[str]) -> str:
    return escape[0] if escape["valid"] else r"\\"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is out of range")
    return number


def _is_deeper(value: dict[str, Any], limit: int) -> bool:
    """Whether containers nest more than `limit` deep; goes level by level, so that any depth is safe."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [item for container in level for item in _items(container) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _items(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
