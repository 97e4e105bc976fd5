"""What is known of models and providers: data in two JSON files beside this one, nothing of it in code.

`models.json` has windows, output limits, prices and abilities as the vendors published them in November 2026;
`providers.json` has where each provider is, which variable holds its key, and its quirks. Both are read and
validated on first use. A model's abilities are: the defaults, then its provider's, then its own, then those over the
protocol that is spoken with it, then the user's; its cache terms likewise. `explain.py` tells of each fact where it
comes from.

An unknown model at a known provider gets that provider's smallest current window. An unknown model of an unknown
server gets 32,768 tokens: it holds our longest prompt with tools and some turns, and the two mistakes differ in
price. Too small a guess compacts early; too large a one overflows, and the provider's answer tells the real window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from functools import cache
from importlib.resources import files
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from governors.wire.base import Abilities

from ...errors import ConfigError
from ..base import CacheTerms, ModelInfo, Wire
from .prices import full_price
from .schema import Differences, Guess, ModelEntry, ProviderEntry

UNKNOWN = Guess(window=32_768, max_output=4_096)
UNKNOWN_FACTOR = 1.4  # an older vocabulary's tokens for one of o200k_base, on text that is not English

#: A call asks for at most this many tokens unless told otherwise: what it asks for is taken from the window.
USUAL_OUTPUT = 32_000

#: Overrides that are abilities, as the configuration names them.
FLAT_ABILITIES = ("tools", "images", "thinking")


def lookup(provider: str, model_id: str, overrides: Mapping[str, Any] | None = None) -> ModelInfo:
    """Everything known of `model_id` at `provider`, or careful guesses.

    `overrides` may name any field of `ModelInfo` except `id` and `provider`, the abilities `tools`, `images` and
    `thinking`, and `abilities` with any others; `price` and `cache` may be told in part; None values are ignored.
    `max_output` is what a call asks for: by default the model's limit, but at most `USUAL_OUTPUT` and a quarter of the
    window. Raises `ConfigError`.
    """
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    _refuse_unknown(provider, model_id, given)
    where, entry = provider_entry(provider), model_entry(provider, model_id)
    guess = where.guess if where else UNKNOWN
    window = given.get("window", entry.window if entry else guess.window)
    limit = entry.max_output if entry else guess.max_output
    base_url = where.base_url if where else None
    listed = entry.price if entry else None
    settled = "wire" in given or _elsewhere(given, base_url)  # who says so knows what the server speaks
    wire = given.get("wire") or spoken(where, entry, away=settled)
    over = differences(where, entry, {**given, "wire": wire})
    known: dict[str, Any] = {
        "wire": wire,
        "base_url": base_url,
        "token_factor": (entry.token_factor if entry else None) or (where.token_factor if where else UNKNOWN_FACTOR),
        "max_output": min(limit, USUAL_OUTPUT, max(1, window // 4)) if isinstance(window, int) else limit,
        "reasons": bool(entry and entry.reasons),
        "offers": entry.offers if entry else (),
        "fallbacks": entry.fallbacks if entry else (),
        "only": entry.only if entry and entry.only != wire and not settled else None,
        **{key: value for key, value in given.items() if key not in FLAT_ABILITIES},
        "id": model_id,
        "provider": provider,
        "window": window,
        "guessed": entry is None and "window" not in given,
        "price": full_price(given["price"], listed) if "price" in given else listed,
        "cache": (where.cache if where else {})
        | (entry.cache if entry else {})
        | over.cache
        | _plain(given.get("cache")),
        "abilities": _abilities(where, entry, over, given),
    }
    try:
        info = _adapter().validate_python(known)
    except ValidationError as error:
        raise ConfigError(f"the settings of model {provider}/{model_id}: {_first(error)}") from None
    if not 0 < info.max_output < info.window:
        raise ConfigError(
            f"the settings of model {provider}/{model_id}: max_output is {info.max_output:,} tokens, and must be "
            f"more than 0 and less than the window of {info.window:,}"
        )
    return info


def provider_entry(provider: str) -> ProviderEntry | None:
    """What is known of a provider."""
    return KNOWN_PROVIDERS.get(provider)


def model_entry(provider: str, model_id: str) -> ModelEntry | None:
    """What is known of a model, or of the vendor's model that a provider resells."""
    return _models().get((provider, model_id)) or _resold(provider_entry(provider), model_id)


def _refuse_unknown(provider: str, model_id: str, given: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(ModelInfo)} - {"id", "provider", "guessed"} | set(FLAT_ABILITIES)
    unknown = [key for key in given if key not in known]
    for part, type_ in (("abilities", Abilities), ("cache", CacheTerms)):
        names = {field.name for field in fields(type_)}
        unknown += [f"{part}.{key}" for key in _plain(given.get(part)) if key not in names]
    if unknown:
        raise ConfigError(f"the settings of model {provider}/{model_id}: unknown {', '.join(sorted(unknown))}")


def _plain(given: Any) -> dict[str, Any]:
    """A part of the settings as a dictionary of what was set."""
    if given is None:
        return {}
    told = given if isinstance(given, Mapping) else asdict(given)
    return {key: value for key, value in told.items() if value is not None}


def _elsewhere(given: Mapping[str, Any], home: str | None) -> bool:
    """Whether a server of another address stands in for the provider (a vendor's regions are below its own name)."""
    host, own = (urlsplit(str(url)).hostname or "" for url in (given.get("base_url", home), home))
    return host != own and not host.endswith(f".{own}")


def spoken(where: ProviderEntry | None, entry: ModelEntry | None, *, away: bool) -> Wire:
    """The protocol to speak where the user chose none. `away`: a server of another address stands in."""
    if where is None:
        return "openai_chat"
    if away:
        return where.wire_elsewhere or where.wire
    return next((wire for wire in get_args(Wire) if entry is not None and wire == entry.only), where.wire)


def differences(where: ProviderEntry | None, entry: ModelEntry | None, given: Mapping[str, Any]) -> Differences:
    """What is different about a model over the protocol that `given` names."""
    if where is None or entry is None or _elsewhere(given, where.base_url):
        return Differences()
    return next((each for wire, each in entry.over.items() if wire == given.get("wire")), Differences())


def _abilities(
    where: ProviderEntry | None, entry: ModelEntry | None, over: Differences, given: Mapping[str, Any]
) -> dict[str, Any]:
    abilities: dict[str, Any] = asdict(Abilities())
    if where:
        abilities |= where.abilities
        if not _elsewhere(given, where.base_url):
            abilities |= where.at_home
    if entry:
        abilities |= entry.abilities
    abilities |= over.abilities
    abilities |= {key: given[key] for key in FLAT_ABILITIES if key in given}
    abilities |= _plain(given.get("abilities"))
    if not abilities["images"] and "documents" not in _plain(given.get("abilities")):
        abilities["documents"] = False  # who sends a document shows its pages
    return abilities


def _resold(where: ProviderEntry | None, model_id: str) -> ModelEntry | None:
    """The vendor's entry of a model that another provider sells as `vendor/model`, with what goes along: the window,
    and whether it sees and thinks. Prices, caches and quirks are the seller's."""
    if where is None or not where.resells:
        return None
    name = model_id.rpartition("/")[2].partition(":")[0].replace(".", "-")
    for entry in _models().values():
        if entry.id.rpartition("/")[2].replace(".", "-") == name:
            images = {"images": entry.abilities["images"]} if "images" in entry.abilities else {}
            return ModelEntry(
                provider=entry.provider,
                id=entry.id,
                window=entry.window,
                max_output=entry.max_output,
                abilities=images,
                reasons=entry.reasons,
            )
    return None


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"]) or "value"
    return f"{place}: {problem['msg']}"


@cache
def _adapter() -> TypeAdapter[ModelInfo]:
    return TypeAdapter(ModelInfo)


@cache
def _models() -> Mapping[tuple[str, str], ModelEntry]:
    entries = TypeAdapter(list[ModelEntry]).validate_json(_data("models.json"))
    return {(entry.provider, entry.id): entry for entry in entries}


@cache
def _providers() -> Mapping[str, ProviderEntry]:
    entries = TypeAdapter(list[ProviderEntry]).validate_json(_data("providers.json"))
    return {entry.name: entry for entry in entries}


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def known_models(provider: str) -> tuple[str, ...]:
    """The ids in the catalog of one provider."""
    return tuple(id for name, id in _models() if name == provider)


class _KnownProviders(Mapping[str, ProviderEntry]):
    """Reads the data on first use, not on import."""

    def __getitem__(self, name: str) -> ProviderEntry:
        return _providers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_providers())

    def __len__(self) -> int:
        return len(_providers())


#: Providers by name, in the order in which their keys are looked for.
KNOWN_PROVIDERS: Mapping[str, ProviderEntry] = _KnownProviders()
