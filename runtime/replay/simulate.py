"""What a trace costs under a policy: a provider's cache, one call after the other.

The rules. A prefix that the cache holds is read, all else of a prompt is written. The cache holds the whole last
request while the next one (or a warming) comes within the lifetime of the last write; the hit is what the request
shares with it from the front. A warming reads the whole prefix and renews the lifetime. Output is not counted: it is
the same for every policy. What a policy may do to a prompt:

- **edit**: every result that is older than the newest ten and over 500 characters becomes a line;
- **cut** (only with a budget, when the prompt is over it): the oldest items go, up to a boundary, but never one of
  the newest ten results.

Law: read + written = prompt, for every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from governors.economy import Cache, Prices
from governors.messages import Message

from .policies import Player, Policy, View
from .trace import NEWEST_KEPT, Call, Item, Trace


@dataclass(frozen=True, slots=True)
class Row:
    """One call as it was billed: tokens, and money in the unit of the prices. `warmings` were sent before it,
    `warmed` are the tokens they read; `broke`: the policy moved a prefix that was warm."""

    at: float
    prompt: int
    read: int
    written: int
    cost: float
    warmings: int = 0
    warmed: int = 0
    broke: bool = False
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A whole trace. `after` is what warmings after the last call would have cost, if nobody ever came back; it is
    not part of `cost`."""

    trace: Trace
    rows: tuple[Row, ...]
    after: float = 0.0

    @property
    def cost(self) -> float:
        return sum(row.cost for row in self.rows)


@dataclass(slots=True)
class Prompt:
    """The prompt as the policy left it."""

    base: int
    items: list[Item] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)  # the items that can be stubs
    stubs: int = 0  # how many of them are, from the front
    start: int = 0  # the first item that is still in
    tokens: int = 0
    kept: int = 0  # what this request shares with the last one
    changed: bool = False  # by an edit or a cut, for this request

    def add(self, call: Call) -> None:
        self.kept, self.changed = self.tokens, False
        for item in call.items:
            if item.stub is not None and item.stub < item.tokens:
                self.results.append(len(self.items))
            self.items.append(item)
            self.sizes.append(item.tokens)
        self.tokens = self.base + self._from(self.start)

    @property
    def editable(self) -> list[int]:
        return self.results[self.stubs : max(self.stubs, len(self.results) - NEWEST_KEPT)]

    @property
    def saved(self) -> int:
        """What an edit would save now."""
        return sum(self.items[index].tokens - (self.items[index].stub or 0) for index in self.editable)

    @property
    def stable(self) -> int:
        """How much of the last request an edit would leave as it was."""
        editable = self.editable
        if not editable:
            return self.kept
        return min(self.kept, self.base + sum(self.sizes[self.start : editable[0]]))

    def edit(self) -> None:
        stable, editable = self.stable, self.editable
        for index in editable:
            self.tokens -= self.sizes[index] - (self.items[index].stub or 0)
            self.sizes[index] = self.items[index].stub or 0
        self.stubs += len(editable)
        self.kept, self.changed = stable, True

    def cut_to(self, target: int) -> None:
        """Drop the oldest items up to a boundary, so that at most `target` tokens stay, if that can be."""
        if self.tokens <= target:
            return
        last = self.results[-NEWEST_KEPT] if len(self.results) >= NEWEST_KEPT else len(self.items) - 1
        start, left, tokens = self.start, self.tokens, self.tokens
        for index in range(self.start, last + 1):
            if index > self.start and self.items[index].boundary:
                start, tokens = index, left
                if tokens <= target:
                    break
            left -= self.sizes[index]
        if start > self.start:
            self.start, self.tokens, self.kept, self.changed = start, tokens, self.base, True
            while self.stubs < len(self.results) and self.results[self.stubs] < start:
                self.stubs += 1

    def messages(self, stub: Callable[[Message], Message]) -> Iterator[Message]:
        stubs = set(self.results[: self.stubs])
        for index in range(self.start, len(self.items)):
            message = self.items[index].message
            if message is not None:
                yield stub(message) if index in stubs else message

    def _from(self, start: int) -> int:
        return sum(self.sizes[start:])


Check = Callable[[Prompt], int]
#: A prompt that a policy changed is always checked. Of those that only extend the one before, every so many-th is:
#: whatever is broken in one stays broken in all that follow it.
CHECKED_EVERY = 8


def simulate(
    trace: Trace,
    policy: Policy,
    prices: Prices,
    *,
    budget: int | None = None,
    check: Check | None = None,
) -> Run:
    """Replay `trace`. `budget` is in tokens of the whole prompt (None: there is no limit); `check` counts the broken
    rules of a prompt."""
    player = policy(prices, budget)
    prompt = Prompt(trace.base)
    cache: Cache | None = None
    rows: list[Row] = []
    rested = False
    for number, call in enumerate(trace.calls, start=1):
        warmings, cache = _warm(player, cache, prompt, rested, call.at)
        warmed = warmings * prompt.tokens
        paid = prices.at(prompt.tokens).read * warmed
        warm = cache.tokens if cache is not None and not cache.cold(call.at) else 0
        prompt.add(call)
        broke = _shape(prompt, player, call.at, warm, rested, budget)
        read = min(prompt.kept, prompt.tokens) if warm else 0
        lifetime = player.sent(call.at, prompt.tokens, prompt.tokens - read, prompt.saved)
        cache = Cache(call.at, lifetime, prompt.tokens)
        cost = paid + prices.call(prompt.tokens, read, lifetime)
        looked_at = prompt.changed or number % CHECKED_EVERY == 0 or number == len(trace.calls)
        violations = check(prompt) if check is not None and looked_at else 0
        rows.append(Row(call.at, prompt.tokens, read, prompt.tokens - read, cost, warmings, warmed, broke, violations))
        rested = call.rests
    return Run(trace, tuple(rows), _after(player, cache, prompt, rested, prices))


def _warm(player: Player, cache: Cache | None, prompt: Prompt, rested: bool, now: float) -> tuple[int, Cache | None]:
    """The warmings that were sent before `now`, and the cache as they left it."""
    count = 0
    if cache is not None:
        for at in player.warmings(cache, rested, prompt.saved):
            if at < now and not cache.cold(at):
                cache = Cache(at, cache.lifetime, cache.tokens)
                player.warmed(at)
                count += 1
    return count, cache


def _shape(prompt: Prompt, player: Player, now: float, warm: int, rested: bool, budget: int | None) -> bool:
    """Let the player change the prompt; whether that moved a warm prefix."""
    kept = prompt.kept
    saved = prompt.saved
    choice = player.decide(View(now, prompt.tokens, prompt.tokens - saved, prompt.stable, warm, rested, budget))
    over = budget is not None and prompt.tokens > budget
    if choice.edit and saved:
        prompt.edit()
    if budget is not None and over:
        prompt.cut_to(budget if choice.target is None else choice.target)
    return warm > 0 and prompt.kept < kept


def _after(player: Player, cache: Cache | None, prompt: Prompt, rested: bool, prices: Prices) -> float:
    if cache is None:
        return 0.0
    return len(player.warmings(cache, rested, prompt.saved)) * prices.at(prompt.tokens).read * prompt.tokens
