"""What a request holds, message by message, for whoever decides what of it may go. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from governors.messages import Message, UserMessage
from governors.tokens import message_tokens, scaled, system_tokens, tools_tokens

from ..compaction.timing import Load
from ..session.view.standing import standing_of
from .heading import Shown
from .prepare import Situation, frame_of


@dataclass(frozen=True, slots=True)
class Survey:
    """A request before it leaves. `sizes` are the tokens of each message, `front` those of system prompt and tools,
    estimated; `tokens` those of the whole request, as forecast. `turn` is the place of the message that opened the
    turn (the number of messages: nobody speaks), the first `lead` messages stand for an earlier head. `rules` are the
    names of the sections of the system prompt."""

    shown: Shown
    situation: Situation
    sizes: tuple[int, ...]
    front: int
    tokens: int
    budget: int
    turn: int
    lead: int
    openings: tuple[int, ...]
    rules: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Of the forecast to the estimate: what was measured is mostly less."""
        return self.tokens / max(1, self.front + sum(self.sizes))

    @property
    def fixed(self) -> int:
        """The tokens that can never be folded, estimated: system prompt, tools, what was said in the turn at hand."""
        head = self.shown.projection.head
        turn = zip(self.shown.projection.messages[self.turn :], self.sizes[self.turn :], strict=True)
        return self.front + sum(
            size for message, size in turn if isinstance(message, UserMessage) and message.origin != head
        )

    @property
    def standing(self) -> tuple[int, ...]:
        """The places of what stands for an earlier head: whatever a new one says takes their place."""
        head = self.shown.projection.head
        messages = self.shown.projection.messages
        return tuple(place for place, message in enumerate(messages) if head is not None and message.origin == head)

    @property
    def load(self) -> Load:
        messages = self.shown.projection.messages
        fixed = round(self.fixed * self.ratio)
        return Load(self.tokens, fixed, self.budget, len(messages), known=not self.situation.model.info.guessed)

    def tokens_of(self, places: tuple[int, ...]) -> int:
        """The tokens of the messages at `places`, as forecast."""
        return round(sum(self.sizes[place] for place in places) * self.ratio)


def survey(situation: Situation, tokens: int | None = None) -> Survey:
    """What the request of `situation` holds. `tokens` is its forecast, where that is known; a turn that is not in view
    is none: nobody speaks."""
    standing = situation.standing or standing_of(situation.entries)
    projection = situation.drafts.project(situation.branch, standing.redacted)
    rendering = situation.drafts.live.rendering
    messages, factor = projection.messages, situation.fit.factor
    frame = frame_of(situation, projection, standing)
    counter = situation.drafts.counter
    front = scaled(system_tokens(frame.system, counter) + tools_tokens(frame.tools, counter), factor)
    sizes = tuple(scaled(message_tokens(message, counter), factor) for message in messages)
    return Survey(
        shown=Shown(projection, situation.branch, standing, partial(_measured, situation)),
        situation=situation,
        sizes=sizes,
        front=front,
        tokens=front + sum(sizes) if tokens is None else tokens,
        budget=situation.budget.tokens,
        turn=rendering.places.get(situation.turn, len(messages)),
        lead=sum(1 for _ in takewhile(lambda message: message.origin == projection.head, messages)),
        openings=tuple(rendering.openings),
        rules=tuple(section.name for section in projection.state.sections),
    )


def _measured(situation: Situation, message: Message) -> int:
    return scaled(message_tokens(message, situation.drafts.counter), situation.fit.factor)
