"""The request of a conversation as it grows: governed and encoded message by message, not anew for each call.

`Drafts` keeps a governor and an encoder for as long as each projection extends the one before it, and makes new ones
after whatever moves the prefix (a head, an edit, a redaction, a switch of model or tools), in view or not. What comes
out is the same either way, the forecast included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from governors.budget import Budget
from governors.decisions import Missed
from governors.estimate_count import fixed_count
from governors.estimate_list import estimator_of
from governors.governor import Governor
from governors.messages import Message, ToolSpec
from governors.policy import Moment, Policy
from governors.report import Governed
from governors.tokens import Counter
from governors.wire import WIRES
from governors.wire.encoder import Encoder

from ..providers.base import ModelInfo
from ..session.entries import Entry
from ..session.view.live import LiveProjection
from ..session.view.projection import Projection
from ..session.view.rendering import Rendering


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the messages of a request; another frame is another conversation with the model. `array` are
    the tools that lead the request, `tools` those and the ones that patches bring."""

    model: ModelInfo
    budget: Budget
    factor: float
    system: str
    tools: tuple[ToolSpec, ...]
    array: tuple[ToolSpec, ...]
    head: int | None
    thinking: str | None
    spared: frozenset[str] = frozenset()
    on: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where things are in the messages of a projection, by index: where the turn began, where a context may begin.
    What is only asked of a request that begins anew: how many messages lead, and from where on the replies' usage
    tells how large it is."""

    turn: int
    boundaries: Collection[int]
    lead: Callable[[], int]
    measured_since: Callable[[], int]


class Drafts:
    """One agent's. Not pure: it remembers the last request, and what it was made from (`live`)."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.live = LiveProjection()
        self._frame: Frame | None = None
        self._given = 0  # messages that the governor has
        self._governor: Governor | None = None
        self._rendering: Rendering | None = None  # that the governor was made with
        self._encoder: Encoder | None = None
        self._encoded = 0

    @property
    def sent(self) -> Encoder | None:
        """The encoder of the last request, as it was given out; None when it is known no more."""
        return self._encoder

    def project(self, branch: Sequence[Entry], redacted: Collection[int]) -> Projection:
        """What `branch` shows, for `govern`."""
        return self.live.project(branch, redacted)

    def pending(self, branch: Sequence[Entry], redacted: Collection[int]) -> int:
        """About how many entries the next request is to be made from, as far as can be told by now."""
        return len(branch) if self._governor is None else self.live.pending(branch, redacted)

    def govern(self, frame: Frame, messages: Sequence[Message], place: Place, cache: Moment | None) -> Governed:
        """The governed request with `messages`, those of the last projection. Raises `ContextOverflow`."""
        governor = self._continued(frame)
        if governor is None:
            governor = self._begin(frame, messages, place)
        new = messages[self._given :]
        self._given = len(messages)
        self.live.settle()
        self._governor = None  # until this has gone well
        governed = governor.step(new, cache, turn=place.turn, boundaries=place.boundaries)
        if all(isinstance(decision, Missed) for decision in governed.decisions):  # the log knows of those by itself
            self._governor = governor
        return governed

    def encoder(self, frame: Frame, messages: Sequence[Message]) -> Encoder:
        """The encoder of the request that `govern` gave last, with all of `messages` in it."""
        if self._encoder is None:
            info = frame.model
            self._encoder, self._encoded = (
                Encoder(
                    WIRES[info.wire],
                    system=frame.system,
                    tools=frame.array,
                    abilities=info.abilities,
                    model=info.id,
                    max_output=frame.budget.max_output,
                    thinking=frame.thinking,
                ),
                0,
            )
        self._encoder.append(messages[self._encoded :])
        self._encoded = len(messages)
        return self._encoder

    def _continued(self, frame: Frame) -> Governor | None:
        """The governor of the last request, if this one extends it. What was edited out of view moves no byte, but
        whoever reads the log anew knows no anchor from before it: then there is none here either."""
        if frame != self._frame or self.live.rendering is not self._rendering or self.live.steady < self._given:
            return None
        return self._governor

    def _begin(self, frame: Frame, messages: Sequence[Message], place: Place) -> Governor:
        info = frame.model
        estimator = estimator_of(
            messages,
            self.counter,
            family=frame.factor,
            model=info.id,
            fixed=fixed_count(frame.system, frame.tools, self.counter),
            since=place.measured_since(),
            documents=info.abilities.documents,
        )
        self._frame, self._given, self._encoder = frame, 0, None
        self._rendering = self.live.rendering
        return Governor(
            frame.budget,
            Policy(spared=frame.spared, keep_patches=False),  # a head folds them into the front
            counter=self.counter,
            abilities=info.abilities,
            system=frame.system,
            tools=frame.tools,
            estimator=estimator,
            model=info.id,
            lead=place.lead(),
        )
