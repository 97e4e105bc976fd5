"""The governor: a growing conversation in, at each call a request that is legal, within budget, and no dearer than it
must be.

It keeps a running state, so a call costs what is new and not what is there. Laws:
- What was handed out once is handed out again, byte for byte, but for decisions; each of them is reported once.
- A governor made from the same messages with the same decisions hands out the same request.
- Repairs come first, then decisions made before, then what is decided now: pictures over the limit, old results
  (when that is free, pays, or must be), a cut at a user boundary, and the results of the current turn, largest
  first. What still cannot fit raises `ContextOverflow`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .budget import Budget
from .decisions import Cut, Decision, DropImages, Missed, Stub
from .economy import Economy, EditForecast, Proposal, low_watermark
from .errors import ContextOverflow
from .estimate import Estimator
from .estimate_count import Count, fixed_count, message_count
from .fitting import plan_fit
from .messages import AssistantMessage, Message, Text, ToolResult, ToolSpec, UserMessage
from .microcompact import handle_of, is_bulky, stub, without_images
from .policy import Moment, Policy
from .report import Action, Governed, Report
from .running import RunningRepair
from .shown import Shown
from .snip import LOW_WATERMARK
from .tokens import Counter, TiktokenCounter
from .view import View
from .wire.base import Abilities


class Governor:
    """`system` is the system prompt (or its parts, which a blank line separates). `factor` is the upper bound of what
    the model's tokenizer finds for one token of ours, `estimator` what is already known of it (the replies' own usage
    is then not learned from again). `model` is the id of the model that the request goes to. `lead` messages at the
    front (a summary) stay in any case."""

    def __init__(
        self,
        budget: Budget,
        policy: Policy | None = None,
        counter: Counter | None = None,
        abilities: Abilities | None = None,
        *,
        system: str | Sequence[str] = (),
        tools: Sequence[ToolSpec] = (),
        decisions: Iterable[Decision] = (),
        factor: float = 1.2,
        estimator: Estimator | None = None,
        model: str | None = None,
        lead: int = 0,
    ) -> None:
        self.budget, self.policy = budget, policy or Policy()
        self._counter = counter or TiktokenCounter()
        self._abilities, self._model = abilities or Abilities(), model
        self._bulky = self.policy.bulky or (frozenset(tool.name for tool in tools if tool.bulky) if tools else None)
        text = system if isinstance(system, str) else "\n\n".join(system)
        self._system = fixed_count(text, (), self._counter)
        self._tools = fixed_count("", tools, self._counter)
        self._told = estimator is not None  # of what the first messages tell
        self.estimator = estimator or Estimator(factor, self._counter.key)
        given = tuple(decisions)
        self._given: list[Decision] = [decision for decision in given if not isinstance(decision, Missed)]
        missed = [decision.place for decision in given if isinstance(decision, Missed)]
        self._repair = RunningRepair(self._abilities.id_pattern, missed)
        self._shown = Shown(self._count_of, self._saving, self._system + self._tools, lead, self.policy.keep_results)
        self._growth = 0
        self._turn, self._resting = 0, True

    def step(
        self,
        new_messages: Iterable[Message] = (),
        cache: Moment | None = None,
        *,
        turn: int | None = None,
        boundaries: Collection[int] | None = None,
    ) -> Governed:
        """The request after `new_messages`, which continue what was given before.

        With `cache` old results are edited when that is free or pays; without, only when the request is over budget.
        `turn` is the place of the message that opened the turn, `boundaries` the places where a context may begin, for
        callers who know better than the list tells. Raises `ContextOverflow`; the messages are kept, so that a later
        step may fit.
        """
        new, shown = tuple(new_messages), self._shown
        first, before = len(shown.kept), shown.count
        for message in self._repair.take(new):
            self._append(message)
        self._told = False
        self._growth = max(self._growth, (shown.count - before).scaled(self.estimator.bound) if first else 0)
        self._follow_given()
        fresh = shown.kept[first:]
        actions = _repair_actions(new, fresh)
        decisions: list[Decision] = [
            Missed(first + offset)
            for offset, message in enumerate(fresh)
            if isinstance(message, ToolResult) and message.stand_in
        ]
        wanted = self._size()
        self._drop_images(decisions, actions)
        economy = self._microcompact(cache, decisions, actions)
        self._fit(turn, boundaries, decisions, actions)
        bound = self.estimator.bound
        report = Report(
            self.budget.tokens,
            self._system.scaled(bound),
            self._tools.scaled(bound),
            wanted,
            self._size(),
            tuple(actions),
        )
        return Governed(View(shown.view), tuple(decisions), report, economy)

    def _append(self, message: Message) -> None:
        place = len(self._shown.kept)
        if isinstance(message, UserMessage):
            if self._resting:
                self._turn, self._resting = place, False
        elif isinstance(message, AssistantMessage):
            self._resting = not message.calls
            if not self._told and message.usage is not None and message.model == self._model:
                self.estimator = self.estimator.observe(message, self._shown.count, self._counter)
        self._shown.append(message)

    def _size(self) -> int:
        return self.estimator.estimate(self._shown.count)

    def _count_of(self, message: Message) -> Count:
        return message_count(message, self._counter, self._model)

    def _saving(self, message: Message) -> int:
        """What a stub for an old result saves, in our tokens; 0 where none may stand for it."""
        if not self.policy.microcompact or not is_bulky(message, self._bulky):
            return 0
        assert isinstance(message, ToolResult)
        return self._count_of(message).scaled(1.0) - self._count_of(stub(message)).scaled(1.0)

    def _follow_given(self) -> None:
        """Make again what was decided in an earlier life, as far as the messages have come."""
        shown = self._shown
        left: list[Decision] = []
        changes: dict[int, Message] = {}
        for decision in self._given:
            place = decision.start if isinstance(decision, Cut) else decision.place
            if place >= len(shown.kept):
                left.append(decision)
                continue
            message = changes.get(place, shown.edited.get(place, shown.kept[place]))
            match decision:
                case Stub(handle=handle) if isinstance(message, ToolResult) and handle_of(message.content) == handle:
                    changes[place] = stub(message)
                case DropImages(count=count):
                    changes[place] = without_images(message, count)
                case Cut(resume=resume, quote=quote) if isinstance(message, UserMessage):
                    shown.cut(place, resume or 0, quote)
        if changes:
            shown.edit(changes)
        if len(left) < len(self._given):
            self.estimator = self.estimator.moved()
        self._given = left

    def _drop_images(self, decisions: list[Decision], actions: list[Action]) -> None:
        """Over the limit of pictures the oldest go, down to half of it: the next one then does not force it again."""
        total = sum(count for _, count in self._shown.images)
        if not self._abilities.images or total <= self._abilities.max_images:
            return
        surplus = total - self._abilities.max_images // 2
        changes: dict[int, Message] = {}
        size = self._size()
        for place, count in self._shown.images:
            if surplus <= 0:
                break
            gone = min(count, surplus)
            decisions.append(DropImages(place, gone))
            changes[place] = without_images(self._shown.edited.get(place, self._shown.kept[place]), gone)
            surplus -= gone
        self._edit(changes)
        why = f"a request takes at most {self._abilities.max_images}"
        actions.append(Action("images", f"{total} pictures, the oldest left out", why, size - self._size()))

    def _microcompact(self, cache: Moment | None, decisions: list[Decision], actions: list[Action]) -> Economy | None:
        """Let stubs stand for old results, all at once, when that is free, pays, or must be."""
        shown, bound = self._shown, self.estimator.bound
        economy = cache.economy if cache is not None else None
        if not shown.ripe:
            return economy
        size = self._size()
        saved = int(shown.ripe_saving * bound)
        index = shown.index_of(shown.ripe[0])
        assert index is not None
        proposal = Proposal(size, max(0, size - saved), shown.sums[index].scaled(bound))
        forecast: EditForecast | None = None
        if cache is not None:
            forecast = cache.economy.weigh(proposal, cache.now, budget=self.budget.tokens)
            economy = cache.economy.weighed(forecast)
        reason = forecast.reason if forecast is not None else "must" if size > self.budget.tokens else None
        if reason is None:
            return economy
        results = {place: self._result(place) for place in shown.ripe}
        decisions.extend(Stub(place, handle_of(result.content), reason) for place, result in results.items())
        self._edit({place: stub(result) for place, result in results.items()})
        why = {"must": "the request was over budget", "cold": "the cache was cold", "pays": "it pays"}[reason]
        money = forecast.gain if forecast is not None and reason != "must" else None
        actions.append(Action("microcompact", f"{len(results)} old results as a line", why, size - self._size(), money))
        return economy

    def _fit(
        self,
        turn: int | None,
        boundaries: Collection[int] | None,
        decisions: list[Decision],
        actions: list[Action],
    ) -> None:
        """Cut, and shrink results, until the request is under budget; after a forced edit down to the low watermark."""
        size, budget = self._size(), self.budget.tokens
        forced = any(isinstance(decision, Stub) and decision.why == "must" for decision in decisions)
        over = size > budget
        if not over and not (forced and size > low_watermark(budget, self._growth, LOW_WATERMARK)):
            return
        shown = self._shown
        messages = tuple(shown.view)
        bound = self.estimator.density(shown.count)
        fixed = (self._system + self._tools).scaled(bound)
        opened = shown.index_of(self._turn if turn is None else turn) or 0
        starts = None if boundaries is None else {shown.index_of(place) for place in boundaries} - {None}
        plan = plan_fit(
            messages,
            lambda message: self._count_of(message).scaled(bound),
            stub,
            (budget if over else size - 1) - fixed,
            turn=opened,
            lead=shown.lead,
            boundaries=self._starts(starts),
            measure=lambda text: self._count_of(UserMessage((Text(text),))).scaled(bound),
        )
        if plan is None:
            if not over:
                return
            needed = sum(self._count_of(message).scaled(bound) for message in messages[opened:])
            system, tools = self._system.scaled(bound), self._tools.scaled(bound)
            raise ContextOverflow(self.budget.window, budget, system, tools, needed)
        if not over and plan.stubs:
            return
        self._shrink(plan.stubs, decisions, actions)
        if plan.cut is not None:
            start = shown.places[plan.cut.start]
            assert start is not None
            resume = self._resume(plan.cut.resume)
            decisions.append(Cut(start, resume, plan.cut.quote))
            before = self._size()
            shown.cut(start, resume or 0, plan.cut.quote)
            self.estimator = self.estimator.moved()
            why = f"the request had {size:,} tokens, the budget is {budget:,}"
            actions.append(Action("snip", "the oldest messages left out", why, before - self._size()))

    def _starts(self, indices: set[int | None] | None) -> Collection[int] | None:
        """Where in the view a context may begin: not at what a cut put in."""
        if indices is not None:
            return {index for index in indices if index is not None}
        return {index for index, place in enumerate(self._shown.places) if place is not None}

    def _resume(self, index: int | None) -> int | None:
        """The place of the first kept step: what an earlier cut left out of the turn stays out."""
        shown = self._shown
        if index is None:
            return shown.resume or None
        if index >= len(shown.view):
            return len(shown.kept)
        return shown.places[index]

    def _shrink(self, indices: Sequence[int], decisions: list[Decision], actions: list[Action]) -> None:
        if not indices:
            return
        places = [place for index in indices if (place := self._shown.places[index]) is not None]
        results = {place: self._result(place) for place in places}
        decisions.extend(Stub(place, handle_of(result.content)) for place, result in results.items())
        size = self._size()
        self._edit({place: stub(result) for place, result in results.items()})
        what = f"{len(results)} results of this turn as a line, the largest first"
        actions.append(Action("shrink", what, "the turn alone was over budget", size - self._size()))

    def _result(self, place: int) -> ToolResult:
        message = self._shown.edited.get(place, self._shown.kept[place])
        assert isinstance(message, ToolResult)
        return message

    def _edit(self, changes: dict[int, Message]) -> None:
        self._shown.edit(changes)
        self.estimator = self.estimator.moved()


def _repair_actions(new: Sequence[Message], kept: Sequence[Message]) -> list[Action]:
    given = sum(isinstance(message, ToolResult) for message in new)
    real = sum(isinstance(message, ToolResult) and not message.stand_in for message in kept)
    late = sum(isinstance(message, UserMessage) for message in kept) - sum(isinstance(m, UserMessage) for m in new)
    missing = sum(isinstance(message, ToolResult) and message.stand_in for message in kept)
    actions = []
    if (gone := given - real - max(0, late)) > 0:
        actions.append(Action("drop_orphans", f"{gone} results that answer no call left out", "nobody asked for them"))
    if missing:
        actions.append(Action("backfill", f"{missing} calls answered by a stand-in", "their results are missing"))
    return actions
