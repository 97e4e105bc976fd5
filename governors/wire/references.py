"""JSON schemas without references, for hosts that take none (GLM, and routes to Gemini: G3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Where definitions stand. They are left out once written in place.
DEFINITIONS = ("$defs", "definitions")


#: Places where a definition is written out before the rest become `{}`: definitions that name each other many times
#: over would grow without bound.
MOST_WRITTEN = 1_000


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `schema` with each local `$ref` replaced by what it names.

    A definition inside itself becomes `{}`, as does a reference to what is not there: any value is allowed then.
    """
    writer = _Writer(schema)
    body = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    written: dict[str, Any] = writer.write(body, ())
    return written


def has_references(value: Any) -> bool:
    """Whether a `$ref` stands anywhere in a schema."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if isinstance(item.get("$ref"), str):
                return True
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return False


class _Writer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_WRITTEN

    def write(self, value: Any, inside: tuple[str, ...]) -> Any:
        """`value` without references; `inside` are those that are being written out."""
        if isinstance(value, list | tuple):
            return [self.write(item, inside) for item in value]
        if not isinstance(value, Mapping):
            return value
        reference = value.get("$ref")
        if not isinstance(reference, str):  # a property may be named so
            return {key: self.write(item, inside) for key, item in value.items()}
        beside = {key: self.write(item, inside) for key, item in value.items() if key != "$ref"}
        named = None if reference in inside or not self._left else _find(reference, self._root)
        if not isinstance(named, Mapping):
            return beside
        self._left -= 1
        return {**self.write(named, (*inside, reference)), **beside}


def _find(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
