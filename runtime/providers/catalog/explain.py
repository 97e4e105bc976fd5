"""Of each fact about a model: what it is, and where it comes from. Pure, but for the first reading of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from governors.wire.base import Abilities

from ..base import CacheTerms, ModelInfo
from . import FLAT_ABILITIES, differences, lookup, model_entry, provider_entry

SETTINGS, SERVER, MODEL, PROVIDER, GUESS = "settings", "server", "model", "provider", "guess"

#: What each source means, for people.
SOURCES = {
    SETTINGS: "your settings",
    SERVER: "told by the server",
    MODEL: "the catalog, of this model",
    PROVIDER: "the catalog, of all models of this provider",
    GUESS: "a careful guess",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """`name` as in `ModelInfo`, dotted for a part (`abilities.images`); `source` is a key of `SOURCES`."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A model with its facts. `entry` is the vendor's `provider/id` whose entry was used, None without one."""

    info: ModelInfo
    facts: tuple[Fact, ...]
    entry: str | None = None


def explain(
    provider: str, model_id: str, settings: Mapping[str, Any] | None = None, told: Mapping[str, Any] | None = None
) -> Explained:
    """What `lookup` gives for `settings` over what the server `told`, and why. Raises `ConfigError`."""
    set_ = {key: value for key, value in (settings or {}).items() if value is not None}
    said = {key: value for key, value in (told or {}).items() if value is not None}
    info = lookup(provider, model_id, {**said, **set_})
    where, entry = provider_entry(provider), model_entry(provider, model_id)
    of_model = _names(entry.model_dump(exclude_unset=True)) if entry else set()
    of_model |= _names(differences(where, entry, {**said, **set_, "wire": info.wire}).model_dump(exclude_unset=True))
    if entry is not None and info.wire == entry.only:
        of_model.add("wire")
    if where is not None and where.resells:
        of_model -= {"price"}
    of_provider = _names(where.model_dump(exclude_unset=True)) if where else set()
    if where is not None:
        of_provider |= {f"abilities.{name}" for name in where.at_home}
        of_provider |= {"window", "max_output"} if "guess" in of_provider else set()
    layers = ((SETTINGS, _names(set_)), (SERVER, _names(said)), (MODEL, of_model), (PROVIDER, of_provider))
    facts = tuple(
        Fact(name, value, next((source for source, names in layers if name in names), GUESS))
        for name, value in _values(info)
    )
    return Explained(info, facts, f"{entry.provider}/{entry.id}" if entry else None)


def _names(told: Mapping[str, Any]) -> set[str]:
    """The facts that a layer tells of, named as in `Fact`."""
    names = {f"abilities.{key}" if key in FLAT_ABILITIES else key for key in told}
    for part in ("abilities", "cache"):
        inner = told.get(part)
        names |= {f"{part}.{key}" for key in inner} if isinstance(inner, Mapping) else set()
    return names


def _values(info: ModelInfo) -> list[tuple[str, Any]]:
    values: list[tuple[str, Any]] = []
    for field in fields(info):
        value = getattr(info, field.name)
        if isinstance(value, Abilities | CacheTerms):
            values += [(f"{field.name}.{part.name}", getattr(value, part.name)) for part in fields(value)]
        elif field.name not in ("id", "provider"):
            values.append((field.name, value))
    return values
