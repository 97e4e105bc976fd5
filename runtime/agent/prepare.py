"""From the log to a request that may leave: pure, given the log, the model and the counter.

The branch is projected, governed and encoded; the body is checked by its wire's rules. A cut that the governors
decide on comes back as a `HeadRecord` that must be in the log before anything is sent; then the request is prepared
anew from the log, so that what is sent is always what the log says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from governors.budget import Budget
from governors.errors import IllegalPayload
from governors.messages import Messages, ToolResult, UserMessage
from governors.pipeline import Governed, govern
from governors.snip import Snip
from governors.tokens import Counter
from governors.wire import WIRES
from governors.wire.base import Payload
from governors.wire.common import rolling_hash

from ..providers.base import ChosenModel, ModelInfo
from ..session.entries import CallReference, Entry, HeadRecord, MessageRecord, Record, RequestRecord
from ..session.projection import Projection, project
from .fit import Fit, budget_of
from .inbox import waiting_items


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may leave, and its record. `cause` says why its prefix does not extend the previous one's."""

    body: Payload
    record: RequestRecord
    projection: Projection
    cause: str | None


@dataclass(frozen=True, slots=True)
class NeedsHead:
    """The history is over budget: `head` has to be recorded, then the request prepared again."""

    head: HeadRecord


@dataclass(frozen=True, slots=True)
class Situation:
    """What a request is prepared from. `entries` are all of the session, `turn` the entry that opened the turn.
    `margin` (tokens) and `thinking` are the user's settings."""

    entries: Sequence[Entry]
    branch: Sequence[Entry]
    turn: int
    model: ChosenModel
    fit: Fit
    counter: Counter
    margin: int | None = None
    thinking: str | None = None

    @property
    def budget(self) -> Budget:
        return budget_of(self.model, self.fit, self.margin)


def prepare(situation: Situation) -> Prepared | NeedsHead:
    """Raises `ContextOverflow` when what must stay is over budget, `IllegalPayload` when a rule is broken."""
    projection = project(situation.branch)
    governed = _govern(situation, projection)
    if governed.decisions:
        return NeedsHead(_head(situation, projection, governed))
    info = situation.model.info
    wire = WIRES[info.wire]
    parts = wire.encode(
        governed.messages,
        system=projection.baseline.text,
        tools=projection.tools if info.abilities.tools else (),
        abilities=info.abilities,
        model=info.id,
    )
    thinking = projection.settings.get("thinking", situation.thinking)
    output = situation.budget.max_output
    body = wire.mark_cache(
        wire.body(parts, model=info.id, max_output=output, abilities=info.abilities, thinking=thinking)
    )
    violations = tuple(each for each in wire.check(body, info.abilities) if each.severity != "$")
    if violations:
        raise IllegalPayload(info.wire, violations)
    record = RequestRecord(
        purpose="turn",
        provider=info.provider,
        model=info.id,
        wire=info.wire,
        prefix=wire.prefix_hash(body),
        forecast=governed.report.after,
        budget=governed.report.budget,
        blocks=len(wire.prefix_blocks(body)),
        stand_ins=_stand_ins(governed.messages, projection.stand_ins),
    )
    return Prepared(body, record, projection, _cause(situation, body))


def _govern(situation: Situation, projection: Projection) -> Governed:
    messages = projection.messages
    info = situation.model.info
    opened = _index_of(messages, situation.turn)
    lead = sum(1 for _ in takewhile(lambda message: message.origin == projection.head, messages))
    return govern(
        messages,
        budget=situation.budget,
        counter=situation.counter,
        abilities=info.abilities,
        system=projection.baseline.text,
        tools=projection.tools if info.abilities.tools else (),
        factor=situation.fit.factor,
        turn=opened,
        lead=lead,
        boundaries=_boundaries(messages, situation.branch),
    )


def _index_of(messages: Messages, entry: int) -> int:
    for index, message in enumerate(messages):
        if message.origin == entry and isinstance(message, UserMessage):
            return index
    return 0


def _boundaries(messages: Messages, branch: Sequence[Entry]) -> frozenset[int]:
    """Where a context may begin: at messages that users sent to open a turn."""
    opening = {
        entry.id
        for entry in branch
        if isinstance(entry.record, MessageRecord) and entry.record.role == "user" and not entry.record.steered
    }
    return frozenset(index for index, message in enumerate(messages) if message.origin in opening)


def _head(situation: Situation, projection: Projection, governed: Governed) -> HeadRecord:
    cut: Snip = governed.decisions[0]
    messages = projection.messages
    start = messages[cut.start].origin
    assert isinstance(start, int)
    earlier = _newest_head(situation.branch)
    return HeadRecord(
        start=start,
        resume=_resume(messages, cut, earlier, start),
        baseline=projection.state.baseline,
        cause="snip",
        generation=projection.generation + 1,
        summary=earlier.summary if earlier is not None else None,
        quote=cut.quote,
        placement=earlier.placement if earlier is not None else "first",
        settings=dict(projection.settings),
        open_calls=projection.open_calls(start),
        inbox=tuple(item.entry for item in waiting_items(situation.entries)),
        before=governed.report.before,
        after=governed.report.after,
    )


def _newest_head(branch: Sequence[Entry]) -> HeadRecord | None:
    return next((entry.record for entry in reversed(branch) if isinstance(entry.record, HeadRecord)), None)


def _resume(messages: Messages, cut: Snip, earlier: HeadRecord | None, start: int) -> int | None:
    """Where the kept steps begin; steps that an earlier head left out stay so."""
    if cut.resume is None:
        inside = earlier is not None and earlier.resume is not None and start < earlier.resume
        return earlier.resume if earlier is not None and inside else None
    if cut.resume >= len(messages):
        return 0  # the head itself: no step is kept
    origin = messages[cut.resume].origin
    assert isinstance(origin, int)
    return origin


def _stand_ins(messages: Messages, candidates: Sequence[CallReference]) -> tuple[CallReference, ...]:
    """Which of the calls without a result this request really carries."""
    carried = sum(1 for message in messages if isinstance(message, ToolResult) and message.stand_in)
    assert carried == len(candidates), "the projection and the request disagree about missing results"
    return tuple(candidates)


def _cause(situation: Situation, body: Payload) -> str | None:
    """Why `body` does not extend the previous turn request for this model, or None when it does (or is the first)."""
    info = situation.model.info
    previous: Record | None = None
    later: list[Entry] = []
    for entry in reversed(situation.branch):
        if _same_chain(entry.record, info):
            previous = entry.record
            break
        later.append(entry)
    if not isinstance(previous, RequestRecord):
        return None
    blocks = WIRES[info.wire].prefix_blocks(body)
    if rolling_hash(blocks[: previous.blocks]) == previous.prefix:
        return None
    if any(isinstance(entry.record, HeadRecord) for entry in later):
        return "head"
    if any(entry.record.type == "system" for entry in later):
        return "tools"
    return "unexplained"


def _same_chain(record: Record, info: ModelInfo) -> bool:
    """Whether `record` is a turn request for this model on this wire: only those share a prefix."""
    if not isinstance(record, RequestRecord) or record.purpose != "turn":
        return False
    return (record.provider, record.model, record.wire) == (info.provider, info.id, info.wire)
