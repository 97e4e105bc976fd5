"""What an agent knows of its provider's cache: how long it lasts, what tokens cost, how people and tools let it wait.

The economy itself is `governors.economy`; here it is fed from the log (times of requests, real usage), so that a
resumed session knows what it knew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from governors.economy import SHORT, UNIT, Economy, Prices, Rates
from governors.policy import Moment

from ..providers.base import ChosenModel, Price
from ..session.entries import EditRecord, Entry, HeadRecord, MessageRecord, OutcomeRecord, RequestRecord


def prices_of(price: Price | None) -> Prices:
    """A model's prices as the economy takes them; the usual ratios where they are unknown, or where nothing costs."""
    if price is None or not price.plain:
        return Prices(UNIT.rates, lifetimes=(SHORT,), warming=False)
    rates = Rates(price.plain, price.cache_read, price.cache_write_5m, price.cache_write_1h, price.output)
    return Prices(rates, lifetimes=(SHORT,), warming=False)


@dataclass(slots=True)
class Thrift:
    """The economy of one agent with one model. `rested` tells whether the turn had ended before the next call."""

    model: str
    economy: Economy
    rested: bool = True

    def wanted(self, now: float) -> Moment:
        """A call is wanted at `now` (seconds since 1970)."""
        self.economy = self.economy.came(now, self.rested)
        return Moment(self.economy, now)

    def sent(self, now: float, prompt: int) -> None:
        """A request of `prompt` tokens left."""
        held = self.economy.cache.tokens if self.economy.cache is not None else 0
        self.economy = self.economy.sent(now, prompt, max(0, prompt - held))
        self.rested = False

    def moved(self) -> None:
        """What the cache holds is no prefix of the next request: a head, or an edit near the front."""
        self.economy = self.economy.forgot()


def thrift_of(branch: Sequence[Entry], model: ChosenModel) -> Thrift:
    """What the requests of a branch taught about `model`."""
    thrift = Thrift(model.name, Economy(prices_of(model.info.price)))
    waiting: dict[int, float] = {}
    for entry in branch:
        match entry.record:
            case RequestRecord(purpose="turn", provider=provider, model=name) if f"{provider}/{name}" == model.name:
                waiting[entry.id] = _seconds(entry.at)
                thrift.wanted(waiting[entry.id])
            case OutcomeRecord(request=request, usage=usage) if request in waiting and usage is not None:
                thrift.sent(waiting.pop(request), usage.prompt)
            case MessageRecord(role="user", steered=False):
                thrift.rested = True
            case HeadRecord() | EditRecord():
                thrift.moved()
            case _:
                pass
    return thrift


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0
