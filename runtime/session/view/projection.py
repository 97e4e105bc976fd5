"""From a branch of the log to what a model sees. Pure: same entries, same messages.

In this order: cut to the range of the newest head (nothing older is needed: a head carries what still holds), pair
results with calls (by the call that each result names), apply edits, render (`rendering.py`). Laws:
- Results stand straight after their reply, in call order; one result a call; a result without a call is left out.
- A call without a result gets the stand-in. Once a request carried it, or a head cut the call, a later real result
  is shown at its own place, never in the slot (`answers.py`).
- Replies that did not finish are left out with their calls; a constant tag on the next user message says so where
  people saw some of their text.
- Branch summaries, and what extensions have to say, are messages of the user's role in a constant wrapping.
- At a head: summary, pins and quote lead, or the summary stands last, at the head's own place.
- Nothing that depends on later entries changes an earlier message, save a result that no request has missed yet,
  edits and redactions.

`live.py` gives the same projection of a branch that grows, at the price of what is new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from governors.messages import Messages, ToolSpec
from governors.repair import normalise

from ..entries import CallReference, Entry, HeadRecord, SystemRecord
from .ranges import from_start, newest_head
from .rendering import INTERRUPTED as INTERRUPTED
from .rendering import Rendering
from .sections import SystemState, state_of


@dataclass(frozen=True, slots=True)
class Projection:
    """What a branch shows a model. `system` and `tools` are the leading baseline, `state` what holds after all
    patches (`told`: there is a `system` entry at all); `stand_ins` the calls in view that have no result; `head` the
    newest head's entry id.

    `open` holds all calls without a result in their slot, also those that earlier heads took out of view, each with
    the entry of the result that came late, if one did.
    """

    messages: Messages
    baseline: SystemState
    state: SystemState
    told: bool
    settings: Mapping[str, Any]
    stand_ins: tuple[CallReference, ...]
    open: Mapping[CallReference, int | None]
    head: int | None
    generation: int

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.state.offered

    def open_calls(self, start: int) -> tuple[CallReference, ...]:
        """What a head that begins at the entry `start` has to carry: the calls whose result it shows at its own place,
        and those that may still get one."""
        return tuple(call for call, late in self.open.items() if late is None or late >= start)


def project(branch: Sequence[Entry], redacted: Collection[int] = ()) -> Projection:
    """The projection of `branch` (root to leaf, or from its newest head's `from` on). `redacted` are the targets of the
    session's `redact` entries."""
    rendering = rendering_of(branch, redacted)
    return projection_of(rendering, normalise(tuple(rendering.messages)))


def rendering_of(branch: Sequence[Entry], redacted: Collection[int] = ()) -> Rendering:
    """`branch` rendered, from the newest head's `from` on."""
    head = newest_head(branch)
    rendering = Rendering(head, redacted)
    record = rendering.record
    rendering.take(branch if record is None else from_start(branch, record.start))
    return rendering


def projection_of(rendering: Rendering, messages: Messages) -> Projection:
    """What `rendering` shows; `messages` are its messages in legal form."""
    head, record = rendering.head, rendering.record
    return Projection(
        messages=messages,
        baseline=rendering.baseline,
        state=rendering.state,
        told=rendering.has_system,
        settings=rendering.settings,
        stand_ins=tuple(rendering.stand_ins),
        open=rendering.open_calls(),
        head=head.id if head is not None else None,
        generation=rendering.edited + (record.generation if record is not None else 0),
    )


def system_state(branch: Sequence[Entry]) -> SystemState | None:
    """The system prompt and tools that hold at the end of `branch`; None before the first `system` entry."""
    state: SystemState | None = None
    for entry in branch:
        if isinstance(entry.record, SystemRecord):
            state = (state or SystemState()).patched(entry.record)
        elif isinstance(entry.record, HeadRecord):
            state = state_of(entry.record.baseline)
    return state
