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
from ..session.entries import Entry, MessageRecord, OutcomeRecord, RequestRecord
from ..session.view.live import moves_what_was_shown


def warms(info: ModelInfo, wish: bool | None) -> bool:
    """Whether requests may be sent that only renew the cache of a model. `wish` is the user's; None leaves it to what
    was measured: where an hour can be bought, that does nearly all of it; where it cannot, they pay (docs/caching.md).
    """
    return len(info.cache.offered) == 1 if wish is None else wish


def prices_of(info: ModelInfo, *, warming: bool = False) -> Prices:
    """A model's prices as the economy takes them; the usual ratios where they are unknown, or where nothing costs.
    `warming`: the agent sends requests that only renew."""
    price = info.price
    if price is None or not price.plain:
        return Prices(UNIT.rates, lifetimes=(SHORT,), warming=False)
    return economy_prices(info, price, warming=warming)


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

    def warmed(self, now: float) -> None:
        """A request that only renews what is kept left."""
        self.economy = self.economy.warmed(now)

    def moved(self) -> None:
        """What the cache holds is no prefix of the next request: a head, a redaction, or an edit near the front."""
        self.economy = self.economy.forgot()

    def _sent(self, now: float, prompt: int) -> Economy:
        cache = self.economy.cache
        held = cache.tokens if cache is not None and not cache.cold(now) else 0
        return self.economy.sent(now, prompt, max(0, prompt - held))


def thrift_of(branch: Sequence[Entry], model: ChosenModel, redaction: int = 0, *, warming: bool = False) -> Thrift:
    """What the requests of a branch taught about `model`. `redaction` is the session's newest `redact` entry;
    `warming`: its cache may be kept warm."""
    thrift = Thrift(model.name, Economy(prices_of(model.info, warming=warming)))
    waiting: dict[int, tuple[float, int]] = {}
    renewing: dict[int, float] = {}
    for entry in branch:
        if 0 < redaction < entry.id:
            redaction = 0
            thrift.moved()
        match entry.record:
            case RequestRecord(purpose="turn") as record if f"{record.provider}/{record.model}" == model.name:
                waiting[entry.id] = (_seconds(entry.at), record.lifetime)
                thrift.wanted(waiting[entry.id][0])
            case RequestRecord(purpose="warming") as record if f"{record.provider}/{record.model}" == model.name:
                renewing[entry.id] = _seconds(entry.at)
            case OutcomeRecord(request=request, usage=usage) if request in renewing and usage is not None:
                thrift.warmed(renewing.pop(request))
            case OutcomeRecord(request=request, usage=usage) if request in waiting and usage is not None:
                at, lifetime = waiting.pop(request)
                thrift.sent(at, usage.prompt, lifetime)
            case MessageRecord(role="user", steered=False):
                thrift.rested = True
            case record if moves_what_was_shown(record):
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
