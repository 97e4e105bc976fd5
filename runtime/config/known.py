"""Which keys there are: walks the schema by path, and finds the nearest known key to a mistyped one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from .schema import Config
from .table import Table

#: Mistakes that spelling alone would not find. All of them are keys of some peer or of an SDK.
_MEANT = {
    "api_key": "key_env (it holds the name of the environment variable, not the key)",
    "key": "key_env (it holds the name of the environment variable, not the key)",
    "api_key_env": "key_env",
    "api_base": "base_url",
    "url": "base_url",
    "context_window": "window",
    "max_tokens": "max_output",
}


def inner_table(annotation: Any) -> type[Table] | None:
    """The table behind an annotation: the table itself, or that of `Table | None`."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Table):
            return candidate
    return None


def annotation_at(path: Sequence[str]) -> Any:
    """The annotation of the key at `path`, or None if there is no such key."""
    here: Any = Config
    for name in path:
        if get_origin(here) is not None and isinstance(get_origin(here), type):
            here = get_args(here)[1] if issubclass(get_origin(here), Mapping) else here
            continue
        table = inner_table(here)
        field = table.model_fields.get(name) if table else None
        if field is None:
            return None
        here = field.annotation
    return here


def takes_list(path: Sequence[str]) -> bool:
    return get_origin(annotation_at(path)) is tuple


def known_keys(table: type[Table] = Config, prefix: str = "") -> list[str]:
    """All dotted keys; `NAME` stands where the user chooses."""
    keys = []
    for name, field in table.model_fields.items():
        inner = inner_table(field.annotation)
        if inner is None:
            keys.append(prefix + name)
        elif get_origin(field.annotation) is None or get_args(field.annotation)[-1] is type(None):
            keys += known_keys(inner, f"{prefix}{name}.")
        else:
            keys += known_keys(inner, f"{prefix}{name}.NAME.")
    return keys


def nearest_key(path: Sequence[str]) -> str | None:
    """What was probably meant by the unknown key at `path`: a sibling first, then any key of a similar name."""
    *parents, name = path
    if name in _MEANT and len(parents) >= 1:
        return ".".join((*parents, _MEANT[name]))
    table = inner_table(annotation_at(parents))
    siblings = list(table.model_fields) if table else []
    if close := get_close_matches(name.lower(), siblings, n=1):
        return ".".join((*parents, close[0]))
    every = known_keys()
    by_name = {key.rsplit(".", 1)[-1]: key for key in reversed(every)}
    if close := get_close_matches(name.lower(), by_name, n=1):
        return by_name[close[0]]
    close = get_close_matches(".".join(path).lower(), every, n=1)
    return close[0] if close else None
