"""What tokens cost at one model: rates, price tiers, and what the provider's cache offers.

Rates are per token, in any one unit (US dollars, or plain input tokens: `UNIT`). A provider bills each token of a
prompt once: read from its cache, written to it for some lifetime, or plain.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds. The lifetimes that providers sell: five minutes and an hour.
SHORT, LONG = 300, 3_600


@dataclass(frozen=True, slots=True)
class Rates:
    """What one token costs: plain, read from the cache, written for a lifetime, and as output."""

    plain: float = 1.0
    read: float = 0.1
    write_5m: float = 1.25
    write_1h: float = 2.0
    output: float = 5.0

    def write(self, lifetime: int) -> float:
        return self.write_1h if lifetime > SHORT else self.write_5m


@dataclass(frozen=True, slots=True)
class Tier:
    """The rates of a request whose prompt is larger than `above` tokens; they hold for all of its tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class Prices:
    """The rates of a model. `tiers` rise by `above`. `lifetimes` are what a write may choose from, in seconds, the
    cheapest first; a provider that chooses by itself has one. `warming`: a minimal request renews the lifetime."""

    rates: Rates = Rates()
    tiers: tuple[Tier, ...] = ()
    lifetimes: tuple[int, ...] = (SHORT, LONG)
    warming: bool = True

    def __post_init__(self) -> None:
        if not self.lifetimes or min(self.lifetimes) <= 0:
            raise ValueError(f"lifetimes must name at least one, each over 0 seconds: {self.lifetimes}")
        bounds = [tier.above for tier in self.tiers]
        if bounds != sorted(set(bounds)):
            raise ValueError(f"tiers must rise by their bound: {bounds}")

    def at(self, prompt: int) -> Rates:
        """The rates of a request with `prompt` tokens."""
        rates = self.rates
        for tier in self.tiers:
            if prompt > tier.above:
                rates = tier.rates
        return rates

    def call(self, prompt: int, read: int, lifetime: int | None = None) -> float:
        """What the prompt of one call costs: `read` of its tokens come from the cache, the others are written."""
        rates = self.at(prompt)
        return rates.read * read + rates.write(lifetime or self.lifetimes[0]) * (prompt - read)

    def cold(self, prompt: int) -> float:
        """What a call costs beyond the same call with a warm prefix: a write at the cheapest rate, less a read."""
        rates = self.at(prompt)
        return max(0.0, rates.write(self.lifetimes[0]) - rates.read) * prompt


#: Plain input tokens as the unit, with the commonest ratios.
UNIT = Prices()
