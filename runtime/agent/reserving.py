"""What a call may cost at most, before it leaves, and what is counted for it after. Pure.

Laws:
- `worst_case` is never under the price of any usage whose prompt and output are within what was given, at whatever rate
  the provider may bill each token: plain, read, written for a lifetime that the request may have, in any tier.
- What is not known is not free: a call that was broken off is counted at what it may have come to by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from governors.economy import SHORT
from governors.messages import Usage

from ..providers.base import (
    CallPiece,
    Finished,
    ModelInfo,
    Price,
    PriceTier,
    Problem,
    Retry,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
)

#: Tokens that a provider may add to a prompt unseen; for one with tools Anthropic documents up to 530.
UNSEEN = 1_024
#: Tokens that a model may have gone on to write after the last piece that we heard of.
_UNDER_WAY = 256
#: The fields of a body that say how long the answer may be.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def worst_case(info: ModelInfo, prompt: int, output: int, lifetime: int) -> float | None:
    """The most that a call may cost (US dollars) with up to `prompt` tokens in and up to `output` out.

    `lifetime` (seconds) is how long the prompt is asked to be kept. None where the price of the model is not known.
    """
    price = info.price
    if price is None:
        return None
    long = lifetime > SHORT or not info.cache.chosen  # a provider that chooses by itself may bill either
    tiers: list[Price | PriceTier] = [price, *(tier for tier in price.tiers if prompt > tier.above)]
    dearest_in = max(max(_input_rates(tier, long=long)) for tier in tiers)
    dearest_out = max(tier.output for tier in tiers)
    return (prompt * dearest_in + output * dearest_out) / 1_000_000


def _input_rates(tier: Price | PriceTier, *, long: bool) -> tuple[float, ...]:
    rates = (tier.plain, tier.cache_read, tier.cache_write_5m)
    return (*rates, tier.cache_write_1h) if long else rates


def most_output(body: Mapping[str, Any], info: ModelInfo) -> int:
    """How many tokens the answer to `body` may have: what it allows, for each of the answers that it asks for."""
    limits = [limit for name in LIMITS if isinstance(limit := body.get(name), int)]
    answers = body.get("n", 1)
    return max(limits, default=info.max_output) * (answers if isinstance(answers, int) and answers > 1 else 1)


def charge(info: ModelInfo, finished: Finished, heard: Sequence[StreamEvent], output: int) -> float | None:
    """What is counted for a call (US dollars) whose answer might have had `output` tokens; None where nobody knows.

    An answer that came to an end costs what its usage says, a refused request nothing. Of one that was broken off the
    prompt is known where the provider told of it, and the answer is no longer than what was heard of it, in bytes,
    unless the model thinks unheard. What was heard before the call was made again is not of this answer.
    """
    usage, problem, price = finished.message.usage, finished.problem, info.price
    heard = last_attempt(heard)
    if problem is not None and is_unbilled(problem, heard):
        return 0.0
    if usage is None or price is None:
        return None
    if problem is None and finished.message.stop not in ("aborted", "error"):
        return price.cost(usage)
    written = output if info.reasons else min(output, _bytes(heard) + _UNDER_WAY)
    return price.cost(replace(usage, output=max(usage.output, written)))


def is_unbilled(problem: Problem, heard: Sequence[StreamEvent]) -> bool:
    """Whether a call that ended so, after what was `heard` of its answer, can have cost nothing."""
    return not heard and (problem.unsent or (problem.status or 0) >= 400)


def last_attempt(heard: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
    """What was heard since the call was made again for the last time."""
    begins = next((place for place in range(len(heard), 0, -1) if isinstance(heard[place - 1], Retry)), 0)
    return heard[begins:]


def _bytes(heard: Sequence[StreamEvent]) -> int:
    """No token is shorter than a byte."""
    total = 0
    for event in heard:
        match event:
            case TextPiece(text) | ThinkingPiece(text):
                total += len(text.encode("utf-8", "replace"))
            case CallPiece(_, tool, arguments):
                total += len(f"{tool}{arguments}".encode("utf-8", "replace"))
            case _:
                pass
    return total


def cost_of(info: ModelInfo, usage: Usage | None) -> float | None:
    """What `usage` costs (US dollars); None where it, or the price, is not known."""
    return info.price.cost(usage) if info.price is not None and usage is not None else None
