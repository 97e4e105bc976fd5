"""What a request will cost a model, from what its earlier requests really cost.

A provider tells the real size of every request that it answered. That figure is never replaced by an estimate of
ours: what a model sees next is the measured part (`Anchor`) plus our count of what is new since, times a bound.
Where nothing is measured (a first request, or one after a head or an edit) the whole is counted, times a bound.

Laws:
- A bound is the family's factor until enough was seen; then it is what was seen, with a margin.
- One absurd usage moves a bound at most to the highest ratio seen before it. Figures that no tokenizer can give
  are not learned from, and are no anchor.
- An anchor that is no beginning of the present request is not used.

Everything here is frozen and pure. An `Estimator` is for one model and one way of counting: keep one for each model,
or read it off a list of messages (`estimator_of` in `estimate_list`), whose replies carry their usage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from .estimate_count import Count, message_count, reply_tokens
from .messages import UNFINISHED, AssistantMessage
from .tokens import ByteCounter, Counter

HIGHEST = 8.0  # tokens of a model for one of ours; 4 to 6 were seen, for Chinese on old vocabularies
LOWEST = 0.35  # 0.7 was seen, and our frames are up to twice the real ones
_LOWEST_BY_BYTES = 0.1
_HIDDEN = 1_024  # tokens that a provider may add unseen; for a prompt about tools Anthropic documents up to 530

SHORTFALL = 0.02  # of a request: what an anchored estimate may be too low, as a budget's margin covers it
_CHUNK = 512  # tokens that must be new before their ratio says something
_DENSE = 16  # times that a text must outweigh its frames, as their cost is a guess and tells nothing of the text
_RECENT = 16  # ratios remembered of each kind
_ENOUGH = 4  # ratios of each kind, before a bound may fall under the family's factor
_MARGIN = 1.05  # a part of the same texts, as a head leaves it, was up to 3.5 % denser than the whole


@dataclass(frozen=True, slots=True)
class Anchor:
    """The real size of the last answered request and its reply (tokens of the model), and our count of both."""

    tokens: int
    covered: Count

    def fresh(self, request: Count) -> Count | None:
        """What `request` has beyond the anchor; None when it has less of anything, so that it cannot extend it."""
        fresh = request - self.covered
        return fresh if fresh.possible else None


@dataclass(frozen=True, slots=True)
class Estimator:
    """What is known of a model's tokenizer, and its last real request.

    `family` is the factor to start from: an upper bound of the model's tokens for one of ours (the catalog has it; an
    overflow may have raised it). `unit` is the `key` of the counter whose tokens these are. `whole` are the ratios of
    the last requests, `chunks` those of the last additions; `pending` and `pending_real` sum up additions too small
    to have a ratio of their own.
    """

    family: float
    unit: str
    anchor: Anchor | None = None
    whole: tuple[float, ...] = ()
    chunks: tuple[float, ...] = ()
    pending: int = 0
    pending_real: int = 0

    @property
    def start(self) -> float:
        """The bound before anything is learned. No token is shorter than a byte, so bytes need no factor."""
        return 1.0 if self.unit == ByteCounter.key else self.family

    @property
    def bound(self) -> float:
        """Tokens of the model for one of ours, at most, in a request of which nothing is measured."""
        whole = _seen_twice(self.whole)
        if len(self.whole) >= _ENOUGH and len(self.chunks) >= _ENOUGH:
            return max(whole, _median(self.chunks)) * _MARGIN
        if len(self.chunks) >= 2 * _ENOUGH:  # a list that a head has shortened tells of additions only
            return max(whole, _seen_twice(self.chunks)) * _MARGIN
        return max(self.start, whole * _MARGIN)

    @property
    def fresh_bound(self) -> float:
        """The same for what is new since the anchor: single texts differ more than whole requests do."""
        return max(self.bound, _seen_twice(self.chunks))

    def estimate(self, request: Count) -> int:
        """The tokens of a whole request: system prompt, tools and messages, the last of them new.

        With an anchor it is at most `SHORTFALL` under as long as what is new is no denser than the family's factor
        says: a first Chinese text after many English ones was seen by nothing that was learned."""
        fresh = self.anchor.fresh(request) if self.anchor else None
        if self.anchor is None or fresh is None:
            return request.scaled(self.bound)
        learned = self.anchor.tokens + fresh.scaled(self.fresh_bound)
        at_most = self.anchor.tokens + fresh.scaled(self.start)
        return max(learned, ceil(at_most * (1 - SHORTFALL)))

    def density(self, request: Count) -> float:
        """The factor by which to size the messages of `request` one by one, when some of them have to go: the bound,
        or more where the measured whole is more than they would sum up to."""
        rest = self.estimate(request) - request.known - request.pictures
        return max(self.bound, rest / request.counted) if request.counted else self.bound

    def reserve(self, request: Count) -> int:
        """The most that a request may have, for reserving money: never under the family's factor, whatever an anchor
        says, and never under the anchor."""
        return max(request.scaled(max(self.start, self.fresh_bound)), self.estimate(request))

    def moved(self) -> Estimator:
        """After a head, an edit, an undo, a fork: what was learned stays, the anchor is stale."""
        return self if self.anchor is None else replace(self, anchor=None)

    def observe(self, reply: AssistantMessage, request: Count, counter: Counter, *, complete: bool = True) -> Estimator:
        """After `reply`, which answered `request` (the count of all that was sent, the reply not included).

        Nothing is learned from a reply without usage; an anchor from before it stays good. The prompt of a reply that
        came to no end is real, too, but the reply is not sent again. With `complete` false the request held more than
        `request` counts (a head has shortened the list since): only what came between two such replies is learned.
        """
        usage = reply.usage
        if counter.key != self.unit:
            return Estimator(self.family, counter.key).observe(reply, request, counter, complete=complete)
        if usage is None or usage.prompt <= 0:
            return self
        whole = self._learn_whole(usage.prompt, request) if complete else self.whole
        if complete and not self._believable(usage.prompt, request):
            return replace(self, whole=whole, anchor=None)
        additions = self._learn_addition(usage.prompt, request)
        anchor = Anchor(usage.prompt, request)
        if reply.stop not in UNFINISHED:
            covered = request + message_count(reply, counter, reply.model)
            anchor = Anchor(usage.prompt + reply_tokens(reply), covered)
        return Estimator(self.family, self.unit, anchor, whole, *additions)

    def _possible(self, prompt: int, request: Count) -> bool:
        """Whether some tokenizer can have found `prompt` tokens. Some hosts report only what was not cached."""
        lowest = _LOWEST_BY_BYTES if self.unit == ByteCounter.key else LOWEST
        return lowest * request.counted <= prompt <= request.scaled(HIGHEST) + _HIDDEN

    def _believable(self, prompt: int, request: Count) -> bool:
        """Whether this model's tokenizer can have found them: what it does to a whole conversation changes slowly, so
        a figure that is twice or half of the usual is an error of the host, and no ground to cut a history."""
        if len(self.whole) < _ENOUGH:
            return self._possible(prompt, request)
        usual = replace(request, pictures=0).scaled(_median(self.whole))
        return usual / 2 <= prompt <= 2 * usual + request.pictures + _HIDDEN

    def _learn_whole(self, prompt: int, request: Count) -> tuple[float, ...]:
        """The ratios of whole requests, with this one's when it tells something."""
        if (
            request.counted < max(_CHUNK, request.known // 4)
            or not _dense(request)
            or not self._possible(prompt, request)
        ):
            return self.whole
        ratio = max((prompt - request.known) / request.counted, 0.0)  # below 0 when replies were left out
        return _recent(self.whole, ratio)

    def _learn_addition(self, prompt: int, request: Count) -> tuple[tuple[float, ...], int, int]:
        """`chunks`, `pending` and `pending_real` after what came since the anchor."""
        fresh = self.anchor.fresh(request) if self.anchor else None
        if self.anchor is None or fresh is None or not _dense(fresh):
            return self.chunks, self.pending, self.pending_real
        real = prompt - self.anchor.tokens - fresh.known
        if not 0 < real <= fresh.scaled(HIGHEST):  # less: the provider left something out, earlier reasoning mostly
            return self.chunks, self.pending, self.pending_real
        pending, pending_real = self.pending + fresh.counted, self.pending_real + real
        if pending < _CHUNK:
            return self.chunks, pending, pending_real
        return _recent(self.chunks, pending_real / pending), 0, 0


def _dense(count: Count) -> bool:
    """Whether the size of this comes from text that we counted, rather than from frames and pictures."""
    return count.pictures == 0 and count.counted >= _DENSE * max(count.frames, 1)


def _recent(ratios: tuple[float, ...], ratio: float) -> tuple[float, ...]:
    return (*ratios[1 - _RECENT :], min(ratio, HIGHEST))


def _median(ratios: tuple[float, ...]) -> float:
    """The middle one, the higher of two; 0 of none. (`statistics` would bring in `random`.)"""
    return sorted(ratios)[len(ratios) // 2] if ratios else 0.0


def _seen_twice(ratios: tuple[float, ...]) -> float:
    """The highest ratio that was reached twice: a single one may be an error. 0 when there are not two."""
    return sorted(ratios)[-2] if len(ratios) > 1 else 0.0
