"""The shape of the catalog's data files. A mistake in them is found when they are loaded, by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from governors.wire.base import Abilities

from ..base import CacheTerms, Price, Wire

_KNOWN = frozenset(field.name for field in fields(Abilities))


def _known_abilities(abilities: dict[str, Any]) -> dict[str, Any]:
    if unknown := set(abilities) - _KNOWN:
        raise ValueError(f"no such ability: {', '.join(sorted(unknown))}")
    return abilities


def _known_terms(terms: dict[str, Any]) -> dict[str, Any]:
    CacheTerms(**terms)  # raises for what is no term of a cache
    return terms


AbilityChanges = Annotated[dict[str, Any], AfterValidator(_known_abilities)]
CacheChanges = Annotated[dict[str, Any], AfterValidator(_known_terms)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Guess(_Entry):
    """Tokens to assume for a model that is not in the catalog."""

    window: int = Field(default=32_768, gt=0)
    max_output: int = Field(default=4_096, gt=0)


class Differences(_Entry):
    """What is different about a model over one protocol."""

    abilities: AbilityChanges = {}
    cache: CacheChanges = {}


class ModelEntry(_Entry):
    """One model. `max_output` is the most it can be asked for; `abilities` and `cache` are what differs from its
    provider's. `over` has what differs from those over one protocol, at the vendor's own address. The others are as in
    `ModelInfo`."""

    provider: str
    id: str
    window: int = Field(gt=0)
    max_output: int = Field(gt=0)
    token_factor: float | None = Field(default=None, gt=0)
    price: Price | None = None
    cache: CacheChanges = {}
    reasons: bool = False
    abilities: AbilityChanges = {}
    offers: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()
    only: str | None = None
    over: dict[Wire, Differences] = {}


class ProviderEntry(_Entry):
    """One provider. `key_variable` and `base_url_variable` name environment variables.

    `abilities` are its quirks; `at_home` those that hold only at its own address, not at a compatible server that
    stands in for it. `cache`: what it keeps of prompts. `resells`: its model ids are `vendor/model`. `wire` is spoken
    at its own address, `wire_elsewhere` (left out: the same) with a server that stands in.
    """

    name: str
    title: str
    key_variable: str
    base_url: str
    base_url_variable: str | None = None
    wire: Wire
    wire_elsewhere: Wire | None = None
    default_model: str
    token_factor: float = Field(gt=0)
    guess: Guess = Guess.model_construct(window=32_768, max_output=4_096)
    abilities: AbilityChanges = {}
    at_home: AbilityChanges = {}
    cache: CacheChanges = {}
    resells: bool = False
