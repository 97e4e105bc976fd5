"""JSON schemas without references, for hosts that take none (GLM, and routes to Gemini: G3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Where definitions stand. They are left out once written in place.
DEFINITIONS = ("$defs", "definitions")


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `schema` with each local `$ref` replaced by what it names.

    A definition inside itself becomes `{}`, as does a reference to what is not there: any value is allowed then.
    """
    written = _written(schema, schema, ())
    return {key: value for key, value in written.items() if key not in DEFINITIONS}


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


def _written(value: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(value, list | tuple):
        return [_written(item, root, inside) for item in value]
    if not isinstance(value, Mapping):
        return value
    reference = value.get("$ref")
    if not isinstance(reference, str):
        if not inside:  # definitions are read where they are named
            return {key: item if key in DEFINITIONS else _written(item, root, ("",)) for key, item in value.items()}
        return {key: _written(item, root, inside) for key, item in value.items()}
    beside = {key: _written(item, root, inside) for key, item in value.items() if key != "$ref"}
    named = None if reference in inside else _find(reference, root)
    if not isinstance(named, Mapping):
        return beside
    return {**_written(named, root, (*inside, reference)), **beside}


def _find(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
