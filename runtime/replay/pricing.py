"""Which prices a replay reckons with: the rates of a model, in units of one plain input token of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from governors.economy import SHORT, UNIT, Prices

from ..errors import MoonwakeError
from ..providers.base import ModelInfo
from ..providers.catalog import KNOWN_PROVIDERS, known_models, lookup
from ..providers.pricing import economy_prices


@dataclass(frozen=True, slots=True)
class Pricing:
    """`prices` in units of a plain input token, and what a unit is in US dollars (None: the model is not known)."""

    prices: Prices
    dollars: float | None = None


def pricing_of(info: ModelInfo) -> Pricing:
    """The prices of a model. Raises `MoonwakeError` when none are known."""
    if info.price is None or info.price.plain <= 0:
        raise MoonwakeError(f"no price is known for {info.provider}/{info.id}: set its price in moonwake.toml")
    unit = info.price.plain
    return Pricing(economy_prices(info, info.price, unit=unit, warming=True), unit / 1_000_000)


def pricing_named(model: str) -> Pricing:
    """The prices of `provider/model`, or of a model that the catalog knows under one provider. Raises
    `MoonwakeError`."""
    provider, _, name = model.partition("/")
    if provider in KNOWN_PROVIDERS and name:
        return pricing_of(lookup(provider, name))
    found = next((each for each in KNOWN_PROVIDERS if model in known_models(each)), None)
    if found is None:
        raise MoonwakeError(f"the model {model!r} is not in the catalog: name it as provider/model")
    return pricing_of(lookup(found, model))


def pricing_recorded(model: str | None) -> Pricing:
    """The prices of a recorded model; the commonest ratios, without dollars, when it is not known."""
    if model is None:
        return Pricing(UNIT)
    try:
        return pricing_named(model)
    except MoonwakeError:
        return Pricing(UNIT)


def short_only(pricing: Pricing) -> Pricing:
    """The same without the choice of a longer lifetime."""
    return replace(pricing, prices=replace(pricing.prices, lifetimes=(SHORT,)))
