"""One conversation that grows, held against the laws of the governor: `Run(seed).violations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from governors.budget import Budget
from governors.decisions import Decision
from governors.economy import Economy
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, Messages
from governors.pipeline import govern
from governors.policy import Moment, Policy
from governors.report import Governed
from governors.tokens import system_tokens, tools_tokens
from governors.wire import WIRES, Abilities
from tests.governor_laws import COUNTER, Laws
from tests.governors.wire.wire_cases import CASES
from tests.growing import batches, story, tool_specs, usage_of

FIGURES = ("requests", "overflows", "rebuilt", "edited", "forced")


class Run(Laws):
    """One history: a conversation, fed in random batches to a governor that now and then is another one."""

    def __init__(self, seed: int, *, length: int = 40, stop_at: int | None = None) -> None:
        self.random = random = Random(seed)
        self.violations: list[str] = []
        self.requests = self.overflows = self.rebuilt = self.edited = self.forced = 0
        self.name, abilities = random.choice(CASES)
        self.wire, self.model = WIRES[self.name], random.choice((None, "model-a"))
        self.abilities = _limited(abilities, random)
        self.system, self.tools = random.choice(("", "You help. " * random.choice((1, 3, 20)))), tool_specs(random)
        fixed = system_tokens(self.system, COUNTER) + tools_tokens(self.tools, COUNTER)
        room = random.choice((300, 1_000, 2_500, 5_000, 10_000, 20_000, 200_000))
        self.budget = Budget(fixed + room + 10, 10, margin=0)
        self.policy = Policy(random.choice((10, 10, 3, 0)), microcompact=random.random() < 0.9)
        self.economy = Economy() if random.random() < 0.5 else None
        self.now = 0.0
        self.told = random.random() < 0.4  # whether replies say what they cost
        self.story = story(random, random.randint(3, length), model=self.model, wire=self.name)
        self.raw: list[Message] = []
        self.decisions: list[Decision] = []
        self.governor = self._anew()
        self.before: Governed | None = None
        self.snapshots: list[tuple[Sequence[Message], Messages]] = []
        self.fits = False
        for batch in batches(random, self.story.messages):
            self._feed(batch)
            if stop_at is not None and len(self.raw) >= stop_at:
                break
        self._check_snapshots()

    def _anew(self, **changed: Any) -> Governor:
        return Governor(
            self.budget,
            self.policy,
            COUNTER,
            self.abilities,
            system=self.system,
            tools=self.tools,
            decisions=self.decisions,
            model=self.model,
            **changed,
        )

    def figures(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in FIGURES}

    def _moment(self) -> Moment | None:
        if self.economy is None or self.random.random() < 0.3:
            return None
        gap = self.random.choice((2.0, 20.0, 200.0, 2_000.0))
        self.now += gap
        self.economy = self.economy.came(self.now, gap > 30)
        return Moment(self.economy, self.now)

    def _feed(self, batch: list[Message]) -> None:
        if self.random.random() < 0.03 and self.raw:
            self._switch()
        batch = [self._measured(message) for message in batch]
        self.raw += batch
        moment = self._moment()
        try:
            governed = self.governor.step(batch, moment)
        except ContextOverflow as error:
            self.overflows += 1
            self._check_overflow(error)
            self.fits = False
            return
        self.requests += 1
        self.decisions += governed.decisions
        self._check_request(governed)
        if moment is not None and governed.economy is not None:
            self.economy = governed.economy.sent(self.now, governed.report.after, 100)
        self.snapshots.append((governed.messages, tuple(governed.messages)))
        self.before, self.fits = governed, True
        if self.random.random() < 0.3:
            self._rebuild(governed)

    def _measured(self, message: Message) -> Message:
        """A reply with what the provider may say of its request."""
        if not isinstance(message, AssistantMessage) or not self.told:
            return message
        return replace(message, usage=usage_of(self.random, self.governor._shown.count.scaled(1.0)))

    def _switch(self) -> None:
        """Another model on another wire, from the same messages and decisions."""
        self.name, abilities = self.random.choice(CASES)
        self.abilities, self.wire = _limited(abilities, self.random), WIRES[self.name]
        self.model = self.random.choice((None, "model-b"))
        self.governor, self.before = self._anew(), None
        try:
            governed = self.governor.step(self.raw)
        except ContextOverflow as error:
            self._check_overflow(error)
            return
        self.decisions += governed.decisions
        self._check_request(governed)
        self.before = governed

    def _rebuild(self, governed: Governed) -> None:
        self.rebuilt += 1
        estimator = self.governor.estimator
        other = self._anew(estimator=estimator).step(self.raw)
        if list(other.messages) != list(governed.messages):
            self._broken("4", first_difference(governed.messages, other.messages))
        if other.decisions:
            self._broken("4", f"decided anew: {other.decisions}")
        whole = govern(
            tuple(self.raw),
            budget=self.budget,
            policy=self.policy,
            counter=COUNTER,
            abilities=self.abilities,
            system=self.system,
            tools=self.tools,
            model=self.model,
            estimator=estimator,
            decisions=self.decisions,
        )
        if list(whole.messages) != list(governed.messages) or whole.decisions:
            self._broken("4", "govern() differs from the running governor")


def _limited(abilities: Abilities, random: Random) -> Abilities:
    return replace(abilities, max_images=random.choice((2, 4, 1_000)))


def first_difference(one: Sequence[Message], other: Sequence[Message]) -> str:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"message {index}: {a!r:.200} and {b!r:.200}"
    return f"{len(one)} messages and {len(other)}"
