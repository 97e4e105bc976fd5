"""From the log to a request that may leave: a function of the log and the model (`drafts` only saves work).

The branch is projected, governed and encoded; the body is checked by its wire's rules. What the governors decide comes
back as records that must be in the log before anything is sent; then the request is prepared anew from the log, so
that what is sent is always what the log says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from governors.budget import Budget
from governors.economy import Economy
from governors.errors import ContextOverflow, IllegalPayload
from governors.messages import AssistantMessage, Messages, UserMessage
from governors.policy import Moment
from governors.report import Governed
from governors.tokens import message_tokens, scaled
from governors.wire import WIRES
from governors.wire.encoder import Encoder

from ..providers.base import ChosenModel, ModelInfo
from ..session.entries import (
    EditRecord,
    Entry,
    HeadRecord,
    MessageRecord,
    OutcomeRecord,
    PayloadChange,
    Record,
    RequestRecord,
    SettingRecord,
    SystemRecord,
)
from ..session.view.live import moves_what_was_shown
from ..session.view.projection import Projection, system_state
from ..session.view.sections import SystemState, front
from ..session.view.standing import Standing, standing_of
from .bound import as_asked, lost_in_draft, refuses_moved, unbound, was_held
from .decided import BOUND, records_of
from .drafts import Drafts, Frame, Place
from .fit import Fit, budget_of
from .folding import as_told
from .heading import Shown, without_pins
from .reserving import UNSEEN


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may leave (`draft` gives its body), and its record. `cause`: why its prefix does not extend the
    previous one's; `previous` is that one's record. `most` is an upper bound of the tokens of the prompt, `output` of
    those of the answer: what money is reserved by."""

    draft: Encoder
    record: RequestRecord
    projection: Projection
    cause: str | None
    previous: RequestRecord | None = None
    most: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """The governors changed what is seen: `records` have to be in the log, then the request is prepared again."""

    records: tuple[EditRecord | HeadRecord, ...]
    governed: Governed


@dataclass(frozen=True, slots=True)
class Situation:
    """What a request is prepared from. `entries` are all of the session, `turn` the entry that opened the turn.
    `margin` (tokens) and `thinking` are the user's settings. `cache` is None when what it says was weighed already.
    `standing` is what holds after all entries, for callers who know: then `entries` are not read."""

    entries: Iterable[Entry]
    branch: Sequence[Entry]
    turn: int
    model: ChosenModel
    fit: Fit
    drafts: Drafts
    margin: int | None = None
    thinking: str | None = None
    cache: Moment | None = None
    standing: Standing | None = None

    @property
    def budget(self) -> Budget:
        return budget_of(self.model, self.fit, self.margin)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What came of preparing: a request or decisions, and the economy after weighing."""

    outcome: Prepared | Decided
    economy: Economy | None


def prepare(situation: Situation) -> Preparation:
    """Raises `ContextOverflow` when what must stay is over budget, `IllegalPayload` when a rule is broken."""
    standing = standing_of(situation.entries) if situation.standing is None else situation.standing
    drafts, branch = situation.drafts, situation.branch
    projection = drafts.project(branch, standing.redacted)
    model = situation.model
    told = as_told(model.info, projection.settings)
    info = as_asked(told, projection.settings.get("thinking", situation.thinking))
    situation = replace(situation, model=replace(model, info=info))
    frame = frame_of(situation, projection, standing)
    place = place_of(situation, projection, standing)
    shown = Shown(projection, branch, standing, partial(_measure, situation))
    try:
        governed = drafts.govern(frame, projection.messages, place, situation.cache)
    except ContextOverflow as overflow:
        lighter = without_pins(overflow, shown)
        if lighter is None:
            raise
        return Preparation(Decided(lighter[:1], Governed(projection.messages, (), lighter[1])), None)
    records = records_of(governed, shown)
    if records:
        return Preparation(Decided(records, governed), governed.economy)
    prepared = _request(situation, standing, frame, projection, governed)
    lost = _lost(prepared, branch, info, told)
    if lost:
        return Preparation(Decided(lost, unbound(governed, lost, drafts.counter)), governed.economy)
    return Preparation(prepared, governed.economy)


def _lost(prepared: Prepared, branch: Sequence[Entry], info: ModelInfo, told: ModelInfo) -> tuple[EditRecord, ...]:
    """What has to be left out as its prefix has moved. Where hooks changed the last body, they come first (`step`)."""
    before = prepared.previous
    extends = before is not None and (before.changes or (prepared.cause is None and was_held(told, before)))
    if extends or not refuses_moved(info.abilities):
        return ()
    return lost_in_draft(branch, prepared.projection.messages, info, prepared.draft)


def _request(
    situation: Situation, standing: Standing, frame: Frame, projection: Projection, governed: Governed
) -> Prepared:
    info = frame.model
    encoder = situation.drafts.encoder(frame, governed.messages)
    violations = tuple(each for each in encoder.violations() if each.severity != "$")
    if violations:
        raise IllegalPayload(info.wire, violations)
    record = RequestRecord(
        purpose="turn",
        provider=info.provider,
        model=info.id,
        wire=info.wire,
        prefix=encoder.prefix,
        forecast=governed.report.after,
        budget=governed.report.budget,
        blocks=encoder.blocks,
        thinking=frame.thinking,
        stand_ins=projection.stand_ins,
        decisions=_decisions(situation.branch),
    )
    cause, previous = _cause(situation, encoder, standing.redaction)
    most = max(governed.report.most, governed.report.after) + UNSEEN
    return Prepared(encoder, record, projection, cause, previous, most, frame.budget.max_output)


def _measure(situation: Situation, message: UserMessage) -> int:
    return scaled(message_tokens(message, situation.drafts.counter), situation.fit.factor)


def _decisions(branch: Sequence[Entry]) -> tuple[int, ...]:
    """The edits and heads since the last request of a turn: what this one was shaped by."""
    since = takewhile(lambda entry: not _is_turn(entry.record), reversed(branch))
    return tuple(sorted(entry.id for entry in since if isinstance(entry.record, EditRecord | HeadRecord)))


def frame_of(situation: Situation, projection: Projection, standing: Standing) -> Frame:
    """What stands around the messages of a request."""
    info = situation.model.info
    inline, folds = WIRES[info.wire].inline_tools(info.abilities), info.abilities.folds_patches
    system, array = front(projection.baseline, projection.state, inline=inline, folds=folds)
    brought = situation.drafts.live.rendering.brought if inline and not folds else ()
    return Frame(
        model=info,
        budget=situation.budget,
        factor=situation.fit.factor,
        system=system,
        tools=(*array, *brought) if info.abilities.tools else (),
        array=array if info.abilities.tools else (),
        head=projection.head,
        thinking=projection.settings.get("thinking", situation.thinking),
        spared=situation.drafts.live.spared(standing.pins),
        on=projection.state.tools,
    )


def place_of(situation: Situation, projection: Projection, standing: Standing) -> Place:
    """Where things are in the messages of `projection`."""
    messages, rendering = projection.messages, situation.drafts.live.rendering
    return Place(
        turn=rendering.places.get(situation.turn, 0),
        boundaries=rendering.openings,
        lead=lambda: sum(1 for _ in takewhile(lambda message: message.origin == projection.head, messages)),
        measured_since=partial(_measured_since, messages, situation, standing.redaction),
    )


def _measured_since(messages: Messages, situation: Situation, redaction: int) -> int:
    """The index of the first reply to a request that was made after the newest head, edit, redaction or change of what
    is counted at the front: only from there on does a reply's usage tell how large the request is now."""
    measured: set[int] = set()
    answered, folds = 0, situation.model.info.abilities.folds_patches
    for entry in takewhile(lambda entry: entry.id > redaction, reversed(situation.branch)):
        match entry.record:
            case HeadRecord() | EditRecord():
                break
            case SystemRecord() as record if record.tools_added or folds:
                break
            case MessageRecord(role="assistant"):
                answered = entry.id
            case OutcomeRecord() if answered:
                measured.add(answered)
                answered = 0
            case RequestRecord():
                answered = 0
            case _:
                pass
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.origin in measured:
            return index
    return len(messages)


def _cause(situation: Situation, encoder: Encoder, redaction: int) -> tuple[str | None, RequestRecord | None]:
    """Why the request does not extend the previous one for this model; None when it does, or is the first. And the
    previous one."""
    info = situation.model.info
    later = list(takewhile(lambda entry: not _same_chain(entry.record, info), reversed(situation.branch)))
    if len(later) == len(situation.branch):
        return None, None
    newest = situation.branch[-1 - len(later)]
    previous = newest.record
    assert isinstance(previous, RequestRecord)
    if encoder.blocks >= previous.blocks and encoder.prefix_at(previous.blocks) == previous.prefix:
        return None, previous
    moved = _moved_by([entry.record for entry in later], previous, info, redacted=redaction > newest.id)
    return moved, previous


def _moved_by(later: Sequence[Record], previous: RequestRecord, info: ModelInfo, *, redacted: bool) -> str:
    """What moved the prefix of `previous`, by what was recorded since."""
    if any(isinstance(record, HeadRecord) for record in later):
        return "head"
    unbinding = [record for record in later if isinstance(record, EditRecord) and record.cause == BOUND]
    if any(moves_what_was_shown(record) for record in later if record not in unbinding):
        return "edit"
    if redacted:
        return "redact"
    if any(isinstance(record, SettingRecord) and record.name == "images" for record in later):
        return "images"
    if any(isinstance(record, SystemRecord) for record in later):
        return "system folded" if info.abilities.folds_patches else "tools"
    return hooks_in(previous.changes) or ("reasoning" if unbinding else "unexplained")


def hooks_in(changes: Iterable[PayloadChange]) -> str | None:
    """The hooks that made `changes`, as a cause; None when there are none."""
    return ", ".join(dict.fromkeys(f"hook:{change.hook}" for change in changes)) or None


def front_moved(branch: Sequence[Entry], info: ModelInfo) -> bool:
    """Whether what leads the request has changed since the last one: then nothing of the cache can be read, and an edit
    costs nothing more."""
    since = tuple(takewhile(lambda entry: not _is_turn(entry.record), reversed(branch)))
    records = [entry.record for entry in reversed(since) if isinstance(entry.record, SystemRecord)]
    if info.abilities.folds_patches or WIRES[info.wire].inline_tools(info.abilities):
        return info.abilities.folds_patches and bool(records)
    if not any(record.tools_added for record in records):
        return False
    before = after = system_state(branch[: len(branch) - len(since)]) or SystemState()
    for record in records:
        after = after.patched(record)
    return before.offered != after.offered


def _same_chain(record: Record, info: ModelInfo) -> bool:
    """Whether `record` is a turn request for this model on this wire: only those share a prefix."""
    if not isinstance(record, RequestRecord) or not _is_turn(record):
        return False
    return (record.provider, record.model, record.wire) == (info.provider, info.id, info.wire)


def _is_turn(record: Record) -> bool:
    """Whether `record` is a request of the conversation itself."""
    return isinstance(record, RequestRecord) and record.purpose == "turn"
