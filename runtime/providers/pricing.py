"""A model's prices as the economy of the governors takes them."""

from __future__ import annotations

from governors.economy import LONG, SHORT, Prices, Rates, Tier

from .base import ModelInfo, Price, PriceTier


def economy_prices(info: ModelInfo, price: Price, *, unit: float = 1.0, warming: bool = False) -> Prices:
    """The prices in multiples of `unit` (US dollars per million tokens).

    On the Anthropic wire the lifetime of a write is chosen, and a request renews it; elsewhere the provider keeps
    prefixes for some five to ten minutes by itself, and nothing says that it does longer. `warming` says whether the
    caller sends requests that only renew.
    """
    chooses = info.wire == "anthropic" and price.cache_write_1h > price.cache_write_5m
    tiers = tuple(Tier(tier.above, _rates(tier, unit)) for tier in price.tiers)
    lifetimes = (SHORT, LONG) if chooses else (SHORT,)
    return Prices(_rates(price, unit), tiers, lifetimes=lifetimes, warming=warming and info.wire == "anthropic")


def _rates(price: Price | PriceTier, unit: float) -> Rates:
    return Rates(
        price.plain / unit,
        price.cache_read / unit,
        price.cache_write_5m / unit,
        price.cache_write_1h / unit,
        price.output / unit,
    )
