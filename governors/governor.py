"""The governor: a growing conversation in, at each call a request that is legal, within budget, and no dearer than it
must be.

It keeps a running state, so a call costs what is new and not what is there. Laws:
- What was handed out once is handed out again, byte for byte, but for decisions; each of them is reported once.
- A governor made from the same messages with the same decisions hands out the same request.
- Repairs come first, then decisions made before, then what is decided now (`deciding`). What cannot fit raises
  `ContextOverflow`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import is_

from .budget import Budget
from .deciding import Deciding, follow
from .decisions import Decision, Missed
from .economy import Economy
from .estimate import Estimator
from .estimate_count import Count, count_key, fixed_count, message_count
from .messages import AssistantMessage, Message, ToolResult, ToolSpec, UserMessage
from .microcompact import handle_of, is_bulky
from .policy import Moment, Policy
from .report import Action, Governed, Report
from .running import RunningRepair
from .shown import Shown
from .tokens import Counter, TiktokenCounter
from .view import View
from .wire.base import Abilities


class Governor:
    """`system` is the system prompt (or its parts, which a blank line separates). `factor` is the upper bound of what
    the model's tokenizer finds for one token of ours, `estimator` what is already known of it, with these `decisions`
    made (the first messages' usage is then not learned from again). `model` is the id of the model that the request
    goes to. `lead` messages at the front (a summary) stay in any case."""

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
        self._known = frozenset(decision for decision in given if isinstance(decision, Missed))
        self._repair = RunningRepair(self._abilities.id_pattern, [missed.taken for missed in self._known])
        self._shown = Shown(
            self._count_of,
            self._saving,
            self._system + self._tools,
            lead,
            self.policy.keep_results,
            self.policy.keep_patches and not self._abilities.folds_patches,
        )
        self._unreported: list[Decision] = []  # made for a request that did not fit
        self._added: int | None = None  # since the last reply, which included; None before the first
        self._most_added = 0
        self._count_key = ("", "")
        self._turn, self._resting = 0, True
        self._fixed_for: tuple[Estimator, int, int] | None = None

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
        repaired = self._repair.take(new)
        for message in repaired.messages:
            self._append(message)
        decisions = self._unreported
        decisions += [missed for missed in repaired.missed if missed not in self._known]
        if self._given:
            self._given = follow(shown, self._given)
            self.estimator = self.estimator if self._told else self.estimator.moved()
        self._told = False
        actions = _repair_actions(new, repaired.messages)
        size, whole = self.estimator.estimate(shown.count), shown.count
        economy, after = cache.economy if cache is not None else None, size
        if cache is not None or size > self.budget.tokens or shown.media.over(self._abilities):
            economy, after = self._decide(cache, turn, boundaries, decisions, actions)
            if shown.count != whole:  # what is compared must be measured alike: the anchor is gone
                size = max(size, self.estimator.estimate(whole))
        self._unreported = []
        system, tools = self._fixed()
        most = self.estimator.reserve(shown.count)
        report = Report(self.budget.tokens, system, tools, size, after, tuple(actions), most)
        return Governed(View(shown.view), tuple(decisions), report, economy)

    def _append(self, message: Message) -> None:
        shown = self._shown
        place = len(shown.kept)
        if isinstance(message, UserMessage):
            if self._resting:
                self._turn, self._resting = place, False
        elif isinstance(message, AssistantMessage):
            self._resting = not message.calls
            if not self._told and message.usage is not None and message.model == self._model:
                known = not self._given
                self.estimator = self.estimator.observe(message, shown.count, self._counter, complete=known)
            self._most_added = self._growth()
            self._added = 0
        if self._added is not None:
            count = self._count_of(message)
            self._added += count.counted + count.known + count.pictures
        shown.append(message)

    def _growth(self) -> int:
        """The most that a call has added so far, in our tokens."""
        return self._most_added if self._added is None else max(self._most_added, self._added)

    def _decide(
        self,
        cache: Moment | None,
        turn: int | None,
        boundaries: Collection[int] | None,
        decisions: list[Decision],
        actions: list[Action],
    ) -> tuple[Economy | None, int]:
        """The economy after what is decided now, and the size of the request."""
        deciding = Deciding(
            self._shown,
            self.estimator,
            self.budget,
            self._system,
            self._tools,
            self._abilities,
            int(self._growth() * self.estimator.bound) + 1,
            not self._resting and isinstance(self._shown.kept[-1], ToolResult),
            decisions,
            actions,
        )
        try:
            deciding.drop_media()
            economy = deciding.microcompact(cache)
            deciding.fit(self._turn if turn is None else turn, boundaries)
        finally:
            self.estimator = deciding.estimator
        return economy, deciding.size()

    def _fixed(self) -> tuple[int, int]:
        """The tokens of system prompt and tools."""
        if self._fixed_for is None or self._fixed_for[0] is not self.estimator:
            bound = self.estimator.bound
            self._fixed_for = self.estimator, self._system.scaled(bound), self._tools.scaled(bound)
        return self._fixed_for[1:]

    def _count_of(self, message: Message) -> Count:
        unit = self._counter.key
        if unit != self._count_key[0]:
            self._count_key = unit, self._key()
        count: Count | None = message.memo.get(self._count_key[1])
        return count or message_count(message, self._counter, self._model, documents=self._abilities.documents)

    def _key(self) -> str:
        return count_key(self._counter, self._model, documents=self._abilities.documents)

    def _saving(self, message: Message) -> int:
        """What a stub for an old result saves, in our tokens; 0 where none may stand for it."""
        if not self.policy.microcompact or not is_bulky(message, self._bulky):
            return 0
        assert isinstance(message, ToolResult)
        if self.policy.spared and handle_of(message.content) in self.policy.spared:
            return 0
        return self._count_of(message).scaled(1.0) - self._count_of(self._shown.stub_of(message)).scaled(1.0)


def _repair_actions(new: Sequence[Message], kept: Sequence[Message]) -> list[Action]:
    if len(new) == len(kept) and all(map(is_, new, kept)):
        return []
    given = sum(isinstance(message, ToolResult) and not message.stand_in for message in new)
    real = sum(isinstance(message, ToolResult) and not message.stand_in for message in kept)
    late = sum(isinstance(message, UserMessage) for message in kept) - sum(isinstance(m, UserMessage) for m in new)
    missing = sum(isinstance(message, ToolResult) and message.stand_in for message in kept)
    actions = []
    if (gone := given - real - late) > 0:
        actions.append(Action("drop_orphans", f"{gone} results that answer no call left out", "nobody asked for them"))
    if missing:
        actions.append(Action("backfill", f"{missing} calls answered by a stand-in", "their results are missing"))
    return actions
