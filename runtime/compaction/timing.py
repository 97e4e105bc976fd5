"""When to make room: before a turn, inside one, while nobody talks, or when somebody asks. Pure.

Tokens decide, those of all that is sent (system prompt, tools, messages), before every call. A lower mark counts while
nobody waits, a higher one where the call has to wait for it. A number of messages counts only while nobody waits, and
by itself only for a model whose window nobody knows. Laws:
- The marks are shares of the budget below 1, so that each can be reached.
- Room was made only where a fifth of the budget can be said before it is wanted again.
- Nothing is wanted while the breaker is open, nor where what cannot be folded is above the mark already and nothing
  else would go: that would be wanted again after each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .breaker import Breaker

#: When a compaction runs. It says where its summary stands and whether somebody waits for it.
Timing = Literal["before_turn", "mid_turn", "manual", "idle"]
#: What it was made for: a label for people and analysis, nothing hangs on it.
Reason = Literal["full", "asked", "cold", "messages", "overflow", "model"]
#: Of the budget: what a compaction must leave free below the mark at which the next one is wanted.
ROOM = 0.2


@dataclass(frozen=True, slots=True)
class Marks:
    """`block` and `idle` are shares of the budget. `messages`: from so many on, where nothing better is known;
    `keep` and `keep_tokens`: how many messages, and tokens, stay word for word at most."""

    block: float = 0.85
    idle: float = 0.5
    messages: int = 50
    keep: int = 25
    keep_tokens: int = 20_000

    def __post_init__(self) -> None:
        if not 0 < self.idle <= self.block < 1:
            raise ValueError(f"the marks must be shares of the budget, idle not above block: {self.idle}, {self.block}")
        if self.keep < 1 or self.keep_tokens < 1 or self.messages <= self.keep:
            raise ValueError(f"more messages ({self.messages}) must be folded at than are kept ({self.keep})")


@dataclass(frozen=True, slots=True)
class Load:
    """What a request has: `tokens` in all, `fixed` of them can never be folded (system prompt, tools, what the turn at
    hand must keep), `budget` is what it may have. `messages` are counted; `known`: the model's window is."""

    tokens: int
    fixed: int
    budget: int
    messages: int
    known: bool = True


def wanted(load: Load, marks: Marks, timing: Timing, breaker: Breaker, *, cold: bool = False) -> Reason | None:
    """Why a compaction is wanted now; None when none is. `cold`: the cache has expired or is about to."""
    if timing == "manual":
        return "asked"
    if breaker.open or load.tokens <= load.fixed:
        return None
    if timing != "idle":
        return "full" if load.tokens >= marks.block * load.budget else None
    if load.tokens >= marks.block * load.budget:
        return "full"
    if not load.known and load.messages > marks.messages:
        return "messages"
    if cold and load.tokens >= marks.idle * load.budget:
        return "cold"
    if load.messages > marks.messages and load.tokens >= marks.idle * load.budget:
        return "messages"
    return None


def made_room(load: Load, marks: Marks) -> bool:
    """Whether a request with `load`, after a compaction, is one that would not soon be compacted again."""
    return load.tokens <= max(marks.block - ROOM, marks.block / 2) * load.budget
