"""A model's prices as the economy of the governors takes them."""

from __future__ import annotations

from governors.economy import Prices, Rates, Tier

from .base import ModelInfo, Price, PriceTier


def economy_prices(info: ModelInfo, price: Price, *, unit: float = 1.0, warming: bool = False) -> Prices:
    """The prices in multiples of `unit` (US dollars per million tokens).

    How long a write may last, and whether a read renews it, is the model's `cache`. `warming` says whether the caller
    sends requests that only renew.
    """
    tiers = tuple(Tier(tier.above, _rates(tier, unit)) for tier in price.tiers)
    return Prices(_rates(price, unit), tiers, lifetimes=info.cache.offered, warming=warming and info.cache.renews)


def _rates(price: Price | PriceTier, unit: float) -> Rates:
    return Rates(
        price.plain / unit,
        price.cache_read / unit,
        price.cache_write_5m / unit,
        price.cache_write_1h / unit,
        price.output / unit,
    )
