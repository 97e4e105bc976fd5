"""A price from what somebody told of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..base import Price, PriceTier

_CACHED = ("cache_read", "cache_write_5m", "cache_write_1h")


def full_price(given: Any, known: Price | None = None) -> Price:
    """A price whose figures may be missing. One without a plain rate changes the `known` one. Otherwise a cached token
    costs what a plain one does, and a tier that leaves a figure out raises it as much as it raises the plain one."""
    if isinstance(given, Price):
        return given
    told = {key: value for key, value in dict(given).items() if value is not None}
    if "plain" not in told and known is not None:
        told = asdict(known) | told
    plain, output = float(told.get("plain", 0.0)), float(told.get("output", 0.0))
    rates = {key: float(told.get(key, plain)) for key in _CACHED}
    tiers = sorted((_tier(each, plain, {"output": output, **rates}) for each in told.get("tiers", ())), key=_above)
    return Price(plain=plain, output=output, **rates, tiers=tuple(tiers))


def _tier(told: Mapping[str, Any], plain: float, below: Mapping[str, float]) -> PriceTier:
    dearer = float(told["plain"])
    factor = dearer / plain if plain else 1.0
    rates = {key: rate * factor if told.get(key) is None else float(told[key]) for key, rate in below.items()}
    return PriceTier(above=int(told["above"]), plain=dearer, **rates)


def _above(tier: PriceTier) -> int:
    return tier.above
