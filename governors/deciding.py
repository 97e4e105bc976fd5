"""What is decided for one request, in this order: pictures over the limit, old results (when that is free, pays, or
must be), a cut at a user boundary, and the results of the current turn, largest first.

Each of these changes what is shown and notes the decision, why, and what it takes off the request.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from .budget import Budget
from .content import has_thinking, without_thinking
from .decisions import Cut, Decision, DropDocuments, DropImages, DropThinking, Stub
from .documents import without_documents
from .economy import Economy, EditForecast, Proposal, low_watermark
from .errors import ContextOverflow
from .estimate import Estimator
from .estimate_count import Count
from .fitting import Marks, Plan, least_size, plan_fit
from .messages import Message, ToolResult, UserMessage
from .microcompact import handle_of, stub, without_images
from .policy import Moment
from .report import Action
from .shown import Shown
from .snip import LOW_WATERMARK
from .wire.base import Abilities


@dataclass(slots=True)
class Deciding:
    """A request in the making. `growth` is the most that a call has added so far, in tokens; `open_turn`: the model is
    at work in a turn."""

    shown: Shown
    estimator: Estimator
    budget: Budget
    system: Count
    tools: Count
    abilities: Abilities
    growth: int
    open_turn: bool
    decisions: list[Decision]
    actions: list[Action] = field(default_factory=list)

    def size(self) -> int:
        return self.estimator.estimate(self.shown.count)

    def _saved(self, whole: Count) -> int:
        """What has gone since the request counted `whole`: both sizes without the anchor, which no longer holds."""
        unanchored = self.estimator.moved()
        return unanchored.estimate(whole) - unanchored.estimate(self.shown.count)

    def drop_media(self) -> None:
        """Over a limit of pictures, of pages of documents or of bytes, the oldest go (see `media`)."""
        shown = self.shown
        drops = shown.media.drops(self.abilities)
        if drops is None:
            return
        changes: dict[int, Message] = {}
        whole = shown.count
        for place, count in drops.images.items():
            self.decisions.append(DropImages(place, count))
            changes[place] = without_images(shown.at(place), count)
        for place, count in drops.documents.items():
            self.decisions.append(DropDocuments(place, count))
            changes[place] = without_documents(changes.get(place, shown.at(place)), count)
        self._edit(changes)
        governor = "images" if drops.images else "documents"
        self.actions.append(Action(governor, drops.what, drops.why, self._saved(whole)))

    def microcompact(self, cache: Moment | None) -> Economy | None:
        """Let stubs stand for old results, all at once, when that is free, pays, or must be."""
        shown = self.shown
        economy = cache.economy if cache is not None else None
        if not shown.ripen():
            return economy
        size, forecast = self.size(), None
        if cache is not None:
            forecast = self._weigh(size, cache)
            economy = cache.economy.weighed(forecast)
        reason = forecast.reason if forecast is not None else "must" if size > self.budget.tokens else None
        if reason is None or (reason != "must" and self._bound_to_wait()):
            return economy
        places, whole = tuple(shown.ripe), shown.count
        self.decisions.extend(Stub(place, handle_of(shown.result(place).content), reason) for place in places)
        self._edit({place: stub(shown.result(place)) for place in places})
        why = {"must": "the request was over budget", "cold": "the cache was cold", "pays": "it pays"}[reason]
        money = forecast.gain if forecast is not None and reason != "must" else None
        what = f"{len(places)} old results as a line"
        self.actions.append(Action("microcompact", what, why, self._saved(whole), money))
        return economy

    def _weigh(self, size: int, cache: Moment) -> EditForecast:
        shown, bound = self.shown, self.estimator.bound
        first = shown.index_of(shown.ripe[0])
        saved = int(shown.ripe_saving * bound)
        proposal = Proposal(size, max(0, size - saved), shown.sums[first or 0].scaled(bound), self._loss(cache))
        return cache.economy.weigh(proposal, cache.now, budget=self.budget.tokens)

    def _bound_to_wait(self) -> bool:
        """Where reasoning is bound to what stands before it, an edit inside a turn would have it refused."""
        return self.open_turn and self.abilities.binds_prefix and not self.abilities.drop_block

    def fit(self, turn: int, boundaries: Collection[int] | None) -> None:
        """Cut, and shrink results, until the request is under budget; after a forced edit down to the low watermark.

        Raises `ContextOverflow` when what must stay is over budget.
        """
        size, budget = self.size(), self.budget.tokens
        over = size > budget
        if not over and not (self._was_forced() and size > low_watermark(budget, self.growth, LOW_WATERMARK)):
            return
        density = self.estimator.density(self.shown.count)
        fixed = (self.system + self.tools).scaled(density)
        marks = Marks.of(budget - fixed, self.growth)
        if not over:  # nothing must go: a cut that saves nothing to speak of is none
            marks = Marks(size - 1 - fixed, marks.low, marks.whole)
        plan = self._plan(marks, density, turn, boundaries)
        if plan is None or (not over and plan.stubs):
            if over:
                raise self._overflow(density, turn, boundaries)
            return
        self._shrink(plan.stubs)
        if plan.cut is not None:
            self._cut(plan, marks, density, size)

    def _was_forced(self) -> bool:
        return any(isinstance(decision, Stub) and decision.why == "must" for decision in self.decisions)

    def _plan(self, marks: Marks, density: float, turn: int, boundaries: Collection[int] | None) -> Plan | None:
        shown = self.shown
        return plan_fit(
            tuple(shown.view),
            lambda message: shown.count_of(message).scaled(density),
            shown.stub_of,
            marks,
            turn=shown.index_of(turn) or 0,
            lead=shown.lead,
            boundaries=shown.indices(boundaries),
            keep_patches=shown.keep_patches,
            made=shown.inserted,
        )

    def _overflow(self, density: float, turn: int, boundaries: Collection[int] | None) -> ContextOverflow:
        """What is wrong, with what has to stay in any case as the turn."""
        shown = self.shown
        least = least_size(
            tuple(shown.view),
            lambda message: shown.count_of(message).scaled(density),
            shown.stub_of,
            turn=shown.index_of(turn) or 0,
            lead=shown.lead,
            boundaries=shown.indices(boundaries),
            keep_patches=shown.keep_patches,
        )
        fixed = self.system.scaled(density), self.tools.scaled(density)
        return ContextOverflow(self.budget.window, self.budget.tokens, *fixed, least)

    def _cut(self, plan: Plan, marks: Marks, density: float, size: int) -> None:
        shown, cut = self.shown, plan.cut
        assert cut is not None
        start, quote = shown.places[cut.start], cut.quote
        if start is None or (start == shown.start and quote is None):  # the turn goes on: so does its question
            start = shown.start
            if shown.quote is not None:
                asked = shown.count_of(shown.inserted(shown.quote)).scaled(density)
                quote = shown.quote if plan.size + asked <= marks.room else None
        resume = self._resume(cut.resume)
        first = shown.kept[start]
        handle = handle_of(first.content) if isinstance(first, UserMessage) else ""
        self.decisions.append(Cut(start, resume, quote, handle))
        whole = shown.count
        shown.cut(start, resume or 0, quote)
        self.estimator = self.estimator.moved()
        self._unbind(start)
        why = f"the request had {size:,} tokens, the budget is {self.budget.tokens:,}"
        if size <= self.budget.tokens:
            why = f"{size:,} of {self.budget.tokens:,} tokens would soon have been too many again"
        self.actions.append(Action("snip", "the oldest messages left out", why, self._saved(whole)))

    def _resume(self, index: int | None) -> int | None:
        """The place of the first kept step: what an earlier cut left out of the turn stays out."""
        shown = self.shown
        if index is None:
            return shown.resume or None
        return len(shown.kept) if index >= len(shown.view) else shown.places[index]

    def _shrink(self, indices: Sequence[int]) -> None:
        if not indices:
            return
        shown = self.shown
        places = [place for index in indices if (place := shown.places[index]) is not None]
        self.decisions.extend(Stub(place, handle_of(shown.result(place).content)) for place in places)
        whole = shown.count
        self._edit({place: stub(shown.result(place)) for place in places})
        what = f"{len(places)} results of this turn as a line, the largest first"
        self.actions.append(Action("shrink", what, "the turn alone was over budget", self._saved(whole)))

    def _edit(self, changes: dict[int, Message]) -> None:
        self.shown.edit(changes)
        self.estimator = self.estimator.moved()
        self._unbind(min(changes))

    def _unbind(self, place: int) -> None:
        """Where reasoning is bound to the prefix it was produced under, what stands after a change goes with it."""
        shown = self.shown
        if not self.abilities.binds_prefix or self.abilities.drop_block:
            return
        until = len(shown.kept)
        bound = [other for other in range(place, until) if has_thinking(shown.at(other))]
        if bound:
            self.decisions.append(DropThinking(bound[0], until))
            what, why = f"the reasoning of {len(bound)} replies left out", "it was bound to what has changed"
            self.actions.append(Action("unbind", what, why))
            shown.edit({other: without_thinking(shown.at(other)) for other in bound})

    def _loss(self, cache: Moment) -> float:
        """What the reasoning cost that an edit now would take with it, in the unit of the prices."""
        shown = self.shown
        if not self.abilities.binds_prefix or self.abilities.drop_block:
            return 0.0
        bound = (other for other in range(shown.ripe[0], len(shown.kept)) if has_thinking(shown.at(other)))
        lost = Count()
        for other in bound:
            message = shown.at(other)
            lost += shown.count_of(message) - shown.count_of(without_thinking(message))
        tokens = max(0, lost.counted + lost.known)
        return tokens * cache.economy.prices.at(self.size()).output


def follow(shown: Shown, decisions: Sequence[Decision]) -> list[Decision]:
    """Make again what was decided in an earlier life, as far as the messages have come; the decisions that are left."""
    left: list[Decision] = []
    changes: dict[int, Message] = {}
    for decision in decisions:
        place = decision.start if isinstance(decision, Cut) else decision.place
        if place >= len(shown.kept):
            left.append(decision)
            continue
        kept, message = shown.kept[place], changes.get(place, shown.at(place))
        match decision:
            case Stub(handle=handle) if isinstance(kept, ToolResult) and handle_of(kept.content) == handle:
                changes[place] = stub(kept)
            case DropImages(count=count):
                changes[place] = without_images(message, count)
            case DropDocuments(count=count):
                changes[place] = without_documents(message, count)
            case DropThinking(until=until):
                for other in range(place, min(until, len(shown.kept))):
                    changes[other] = without_thinking(changes.get(other, shown.at(other)))
            case Cut(resume=resume, quote=quote, handle=handle) if _fits(kept, handle):
                shown.cut(place, resume or 0, quote)
    if changes:
        shown.edit(changes)
    return left


def _fits(message: Message, handle: str) -> bool:
    """Whether a cut was made at this very message."""
    return not handle or (isinstance(message, UserMessage) and handle_of(message.content) == handle)
