"""The laws of the governor, each held against a run (`governor_runs`) as it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from governors.budget import Budget
from governors.carrying import carried
from governors.decisions import Cut, Decision, DropImages, Missed, Stub
from governors.errors import ContextOverflow
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, Messages, SystemPatch, Text, ToolResult, ToolSpec, UserMessage
from governors.microcompact import handle_of, images_in, stub
from governors.pipeline import govern
from governors.policy import Policy
from governors.repair import repair
from governors.report import Governed
from governors.snip import OMITTED_STEPS, Snip, apply_snip, stays
from governors.sound import is_sound
from governors.tokens import ByteCounter
from governors.wire import Abilities, Wire
from tests.growing import Story
from tests.pairing_truth import mispaired

COUNTER = ByteCounter()


class Laws:
    """What a run is held against. `violations` are what was found."""

    random: Random
    wire: Wire
    abilities: Abilities
    model: str | None
    system: str
    tools: list[ToolSpec]
    budget: Budget
    policy: Policy
    story: Story
    raw: list[Message]
    decisions: list[Decision]
    governor: Governor
    before: Governed | None
    snapshots: list[tuple[Sequence[Message], Messages]]
    violations: list[str]
    edited: int
    forced: int

    def _broken(self, law: str, what: object) -> None:
        self.violations.append(f"law {law}, after {len(self.raw)} messages: {what}"[:600])

    def _kept(self) -> list[Message]:
        return self.governor._shown.kept  # the ground that decisions stand on

    def _check_request(self, governed: Governed) -> None:
        messages = tuple(governed.messages)
        if governed.report.after > self.budget.tokens:
            self._broken("fit", governed.report)
        if not is_sound(messages, self.abilities.id_pattern):
            self._broken("1", "the request is not sound")
        for violation in self._check(messages):
            self._broken("1", violation)
        if self.story.kind != "wild":
            for wrong in mispaired(self.story, self._kept()):
                self._broken("2", wrong)
        self._check_prefix(governed, messages)
        self._check_again(messages)
        self._check_hidden(governed)
        self._check_turn(messages)
        self._check_watermark(governed)
        self._check_newest(messages)

    def _encode(self, messages: Messages) -> Any:
        return self.wire.encode(
            messages, system=self.system, tools=self.tools, abilities=self.abilities, model=self.model
        )

    def _check(self, messages: Messages) -> Iterator[str]:
        asked = messages if messages and not isinstance(messages[-1], AssistantMessage) else (*messages, _GO_ON)
        body = self.wire.body(self._encode(asked), model=self.model or "m", max_output=10, abilities=self.abilities)
        for violation in self.wire.check(self.wire.mark_cache(body), self.abilities):
            if violation.severity != "$":
                yield str(violation)

    def _check_prefix(self, governed: Governed, messages: Messages) -> None:
        """What was sent stands, up to the first place that a decision names."""
        if self.before is None:
            return
        before = tuple(self.before.messages)
        self.edited += any(not isinstance(decision, Missed) for decision in governed.decisions)
        same = self._first_moved(before, messages, governed.decisions)
        if any(a is not b for a, b in zip(before[:same], messages[:same], strict=False)) or len(messages) < same:
            self._broken("3", f"messages before {same} moved, by {governed.decisions}")
        old, new = (self.wire.prefix_blocks(self._encode(each)) for each in (before[:same], messages))
        if new[: len(old)] != old:
            self._broken("3", f"bytes moved that no decision explains: {governed.decisions}")

    def _first_moved(self, before: Messages, after: Messages, decisions: Sequence[Decision]) -> int:
        """How many messages of the last request must stand."""
        same = len(before)
        kept = self._kept()
        for decision in decisions:
            if isinstance(decision, Cut):
                return 0
            if isinstance(decision, Stub | DropImages):
                shown = self.governor._shown.index_of(decision.place)
                same = min(same, len(before) if shown is None else shown)
                assert decision.place < len(kept)
        while 0 < same < len(before) and isinstance(before[same], ToolResult):
            same -= 1  # a step is encoded in one piece
        return same

    def _check_again(self, messages: Messages) -> None:
        again = govern(
            messages,
            budget=self.budget,
            policy=self.policy,
            counter=COUNTER,
            abilities=self.abilities,
            system=self.system,
            tools=self.tools,
            model=self.model,
            estimator=self.governor.estimator,
        )
        if again.messages is not messages or again.decisions:
            self._broken("5", again.decisions)

    def _check_hidden(self, governed: Governed) -> None:
        """Whatever a decision hides can be found."""
        kept = self._kept()
        for decision in governed.decisions:
            match decision:
                case Stub(place=place, handle=handle):
                    result = kept[place]
                    if not isinstance(result, ToolResult) or handle_of(result.content) != handle:
                        self._broken("7", decision)
                    elif handle not in stub(result).text:
                        self._broken("7", "the stub does not name the handle")
                case DropImages(place=place, count=count):
                    if images_in(kept[place]) < count:
                        self._broken("7", decision)
                case Cut(start=start):
                    if not isinstance(kept[start], UserMessage) and start:
                        self._broken("7", decision)
                case Missed(place=place):
                    if place >= max(1, len(kept)):
                        self._broken("7", decision)

    def _check_turn(self, messages: Messages) -> None:
        """All that users said since the turn began, in order (pictures may be left out)."""
        shown = self.governor._shown
        kept, start = self._kept(), self.governor._turn
        said = [shown.at(place) for place in range(start, len(kept)) if isinstance(kept[place], UserMessage)]
        users = [message for message in messages if isinstance(message, UserMessage) and message.text != OMITTED_STEPS]
        if said and any(a is not b for a, b in zip(users[-len(said) :], said, strict=True)):
            self._broken("8", "a user's message of this turn is missing")

    def _check_newest(self, messages: Messages) -> None:
        results = [message for message in messages if isinstance(message, ToolResult)]
        newest = results[len(results) - self.policy.keep_results :] if self.policy.keep_results else []
        newest = newest if len(results) >= self.policy.keep_results else results
        places = {id(self.governor._shown.at(each.place)): each for each in self.decisions if isinstance(each, Stub)}
        for result in newest:
            decision = places.get(id(result))
            if decision is not None and decision not in self._shrunk:
                self._broken("8", f"one of the newest results is a stub by {decision}")

    @property
    def _shrunk(self) -> set[Decision]:
        return self.__dict__.setdefault("shrunk", set())  # type: ignore[no-any-return] # the decisions of "shrink"

    def _check_watermark(self, governed: Governed) -> None:
        """After a forced edit or cut the next request has room to grow by what calls have added so far."""
        if any(action.governor == "shrink" for action in governed.report.actions):
            self._shrunk.update(each for each in governed.decisions if isinstance(each, Stub))
        forced = any(
            action.governor == "snip" or (action.governor == "microcompact" and "over budget" in action.why)
            for action in governed.report.actions
        )
        if not forced:
            return
        self.forced += 1
        growth = self.governor._growth()
        if governed.report.after + growth <= self.budget.tokens:
            return
        if self._least(tuple(governed.messages)) + growth <= self.budget.tokens:
            self._broken("7", f"{governed.report} leaves no room for {growth} more")

    def _least(self, messages: Messages) -> int:
        """The size of a request that keeps of all this the turn's newest step, what users said in the turn, and the
        question that they answer."""
        shown, fixed = self.governor._shown, self.governor._system + self.governor._tools
        opened = shown.index_of(self.governor._turn) or 0
        steps = [index for index in range(opened, len(messages)) if isinstance(messages[index], AssistantMessage)]
        cut = Snip(opened, steps[-1] if len(steps) > 1 else None)
        asked = () if shown.quote is None or opened == 0 else (UserMessage((Text(shown.quote),)),)
        kept = (*asked, *apply_snip(messages, cut, keep_patches=shown.keep_patches))
        bound = self.governor.estimator.density(shown.count)
        return fixed.scaled(bound) + sum(shown.count_of(message).scaled(bound) for message in kept)

    def _check_overflow(self, error: ContextOverflow) -> None:
        """What must stay is over budget by itself: system, tools, and what was said since the turn began."""
        shown = self.governor._shown
        estimator = self.governor.estimator
        density = max(estimator.bound, estimator.density(shown.count))
        start = shown.index_of(self.governor._turn) or 0
        staying = [each for each in shown.view[start:] if stays(each, shown.keep_patches)]
        patch = carried([each for each in shown.view[:start] if isinstance(each, SystemPatch)])
        leads = 0 if patch is None or not shown.keep_patches else shown.count_of(patch).scaled(density)
        size = sum(shown.count_of(message).scaled(density) for message in staying)
        if any(isinstance(each, AssistantMessage) for each in shown.view[start:]):
            size += shown.count_of(UserMessage((Text(OMITTED_STEPS),))).scaled(density)
        else:
            size = sum(shown.count_of(message).scaled(density) for message in shown.view[start:])
        size += leads
        if error.system + error.tools + size <= self.budget.tokens:
            self._broken("overflow", f"{error}; but {size} would do")
        if error.system + error.tools + error.turn <= error.budget:
            self._broken("overflow", f"the numbers do not show it: {error}")

    def _check_snapshots(self) -> None:
        for view, snapshot in self.snapshots:
            if len(view) != len(snapshot) or any(a is not b for a, b in zip(view, snapshot, strict=True)):
                self._broken("6", "a view that was handed out has changed")
        pattern = self.abilities.id_pattern
        for whole in (self.raw, self._kept()):
            start = self.random.randint(0, len(whole))
            for part in (tuple(whole), tuple(whole[start : start + self.random.randint(0, 9)])):
                if is_sound(part, pattern) != (repair(part, id_pattern=pattern) is part):
                    self._broken("9", "is_sound and repair disagree")


_GO_ON = UserMessage((Text("go on"),))
