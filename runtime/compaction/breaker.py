"""When to stop trying: a breaker that compactions which fail, or bring too little, open. Pure; its state is in the log.

Laws:
- Three in a row that failed, or that left the next call where it would be made again at once, open it.
- While it is open no compaction begins by itself; one by hand always may.
- It closes when the user has spoken again and the request has grown since or is over budget, when the model changes,
  and by hand; there is no way by which it stays open for good.
- An attempt that found nothing to do is neither a failure nor a success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MOST = 3
#: Of the budget: how much a request must have grown since the breaker opened.
GROWTH = 0.1


@dataclass(frozen=True, slots=True)
class Breaker:
    """`misses` are attempts in a row that brought nothing; `tokens` is the size of the request at the last of them,
    `model` who was talked to. `spoken`: the user has spoken since it opened."""

    misses: int = 0
    tokens: int = 0
    model: str = ""
    spoken: bool = False

    @property
    def open(self) -> bool:
        return self.misses >= MOST

    def missed(self, tokens: int, model: str) -> Breaker:
        """An attempt failed, or left the request at `tokens`, where another one would be wanted."""
        return Breaker(self.misses + 1, tokens, model)

    def succeeded(self) -> Breaker:
        """An attempt made room."""
        return Breaker()

    def heard(self) -> Breaker:
        """The user said something new."""
        return replace(self, spoken=True) if self.misses else self

    def at(self, tokens: int, budget: int, model: str) -> Breaker:
        """The breaker as it is for a request of `tokens` to `model`."""
        if not self.misses:
            return self
        if model != self.model:
            return Breaker()
        if self.open and self.spoken and tokens >= min(budget, self.tokens + GROWTH * budget):
            return Breaker()
        return self

    def as_json(self) -> dict[str, Any]:
        """For the log; empty when nothing was missed."""
        if not self.misses:
            return {}
        return {"misses": self.misses, "tokens": self.tokens, "model": self.model, "spoken": self.spoken}


def breaker_from(value: Mapping[str, Any]) -> Breaker:
    """The breaker that `as_json` gave; what is none is a closed one."""
    misses, tokens, model = value.get("misses"), value.get("tokens"), value.get("model")
    if not isinstance(misses, int) or not isinstance(tokens, int) or not isinstance(model, str) or misses < 1:
        return Breaker()
    return Breaker(misses, tokens, model, value.get("spoken") is True)
