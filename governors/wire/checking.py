"""What the wires' checkers share: violations, shapes, and text that cannot be sent.

A checker takes any value, also one that no encoder would make, and answers with violations. It never raises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from .base import Violation
from .common import is_clean

#: The rule named when a payload does not have the protocol's shape at all.
SHAPE = "SHAPE"

#: Nesting beyond which JSON parsers give up.
MOST_NESTING = 400

#: Bad values to list before the rest are passed over.
MOST_LISTED = 50


def refused(rule: str, where: str, problem: str) -> Violation:
    """A violation that makes the provider refuse the request."""
    return Violation(rule, "E", where, problem)


def misshapen(where: str, wanted: str, value: Any) -> Violation:
    """A violation of the protocol's shape."""
    return refused(SHAPE, where, f"should be {wanted} and is {_name(value)}")


def _name(value: Any) -> str:
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: "text", bool: "a boolean"}.get(type(value), type(value).__name__)


def unsendable(payload: Any) -> Iterator[Violation]:
    """Whatever keeps `payload` from being JSON in UTF-8: lone surrogates (C1), NaN, foreign types."""
    try:
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):  # UnicodeEncodeError is a ValueError
        found = False
        for violation in _search(payload):
            found = True
            yield violation
        if not found:
            yield refused(SHAPE, "payload", "cannot be written as JSON")


def _search(payload: Any) -> Iterator[Violation]:
    listed = 0
    waiting = [("payload", payload, 0)]
    while waiting and listed < MOST_LISTED:
        where, value, depth = waiting.pop()
        problem = _problem(where, value, depth)
        if problem is not None:
            listed += 1
            yield problem
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(key, str) and not is_clean(key):
                    listed += 1
                    yield refused("C1", where, f"the key {key!r} holds a lone surrogate")
                waiting.append((key if where == "payload" else f"{where}.{key}", item, depth + 1))
        elif isinstance(value, list | tuple):
            waiting += [(f"{where}[{index}]", item, depth + 1) for index, item in enumerate(value)]


def _problem(where: str, value: Any, depth: int) -> Violation | None:
    if depth > MOST_NESTING:
        return refused(SHAPE, where[:200], f"is nested more than {MOST_NESTING} deep")
    if isinstance(value, str):
        return None if is_clean(value) else refused("C1", where, "holds a lone surrogate, which UTF-8 cannot hold")
    if isinstance(value, float) and not math.isfinite(value):
        return refused(SHAPE, where, f"is {value}, which is not JSON")
    if value is None or isinstance(value, bool | int | float | dict | list | tuple):
        return None
    return misshapen(where, "a JSON value", value)


def text_of(value: Any) -> str:
    """`value` when it is text, else the empty text."""
    return value if isinstance(value, str) else ""
