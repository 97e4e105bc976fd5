"""What an agent knows of its provider's cache: how long it lasts, what tokens cost, how people and tools let it wait.

The economy itself is `governors.economy`; here it is fed from the log (times of requests, real usage), so that a
resumed session knows what it knew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from governors.economy import SHORT, UNIT, Cache, Economy, Prices
from governors.policy import Moment

from ..providers.base import ChosenModel, ModelInfo
from ..providers.pricing import economy_prices
from ..session.entries import EditRecord, Entry, HeadRecord, MessageRecord, OutcomeRecord, RequestRecord


def prices_of(info: ModelInfo) -> Prices:
    """A model's prices as the economy takes them; the usual ratios where they are unknown, or where nothing costs."""
    price = info.price
    if price is None or not price.plain:
        return Prices(UNIT.rates, lifetimes=(SHORT,), warming=False)
    return economy_prices(info, price)


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

    def lifetime(self, now: float, prompt: int) -> int:
        """The lifetime (seconds) to ask for when a request of `prompt` tokens leaves now."""
        cache = self._sent(now, prompt).cache
        return cache.lifetime if cache is not None else SHORT

    def sent(self, now: float, prompt: int, lifetime: int) -> None:
        """A request of `prompt` tokens left, to be kept for `lifetime` seconds."""
        sent = self._sent(now, prompt)
        self.economy = replace(sent, cache=Cache(now, lifetime, prompt))
        self.rested = False

    def moved(self) -> None:
        """What the cache holds is no prefix of the next request: a head, a redaction, or an edit near the front."""
        self.economy = self.economy.forgot()

    def _sent(self, now: float, prompt: int) -> Economy:
        cache = self.economy.cache
        held = cache.tokens if cache is not None and not cache.cold(now) else 0
        return self.economy.sent(now, prompt, max(0, prompt - held))


def thrift_of(branch: Sequence[Entry], model: ChosenModel, redaction: int = 0) -> Thrift:
    """What the requests of a branch taught about `model`. `redaction` is the session's newest `redact` entry."""
    thrift = Thrift(model.name, Economy(prices_of(model.info)))
    waiting: dict[int, tuple[float, int]] = {}
    for entry in branch:
        if 0 < redaction < entry.id:
            redaction = 0
            thrift.moved()
        match entry.record:
            case RequestRecord(purpose="turn") as record if f"{record.provider}/{record.model}" == model.name:
                waiting[entry.id] = (_seconds(entry.at), record.lifetime)
                thrift.wanted(waiting[entry.id][0])
            case OutcomeRecord(request=request, usage=usage) if request in waiting and usage is not None:
                at, lifetime = waiting.pop(request)
                thrift.sent(at, usage.prompt, lifetime)
            case MessageRecord(role="user", steered=False):
                thrift.rested = True
            case HeadRecord() | EditRecord():
                thrift.moved()
            case _:
                pass
    if redaction:
        thrift.moved()
    return thrift


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0
