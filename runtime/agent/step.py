"""A step: one model call, prepared from the log, sent (`sending`), and told to those who watch.

Laws: what shapes the request is in the log before it leaves; a call that is stopped in its middle leaves an aborted
reply with the text that people saw. An overflow that the provider reports is answered by fitting the request, a
bounded number of times; a refusal close to the window that says nothing of it is taken for one, once. What nobody put
in numbers holds no longer than it has to (`fit`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread
import orjson

from governors.errors import ContextOverflow, ImpossibleBudget
from governors.messages import AssistantMessage
from governors.scrub import scrub
from governors.tokens import Counter, load_vocabulary, scaled, vocabulary_loaded
from governors.wire.base import LIFETIMES
from governors.wire.encoded import dump_bytes

from ..events import HistoryCut, HistoryEdited, Notice, ReplyRecorded, RequestSent
from ..hooks.contract import Response
from ..providers.base import ChosenModel, Finished, Problem
from ..providers.problems import may_be_overflow
from ..session.entries import EditRecord, Entry, HeadRecord, MessageRecord, SettingRecord
from .bound import as_asked, lost_in_body, refuses_moved, was_held
from .compacting import make_room, wants_room
from .desk import Desk
from .ease import at_ease
from .fit import Fit, fit_setting, is_blind, known_fit, largest_answered, learn
from .folding import as_told
from .hooked import shape_body, transform_context
from .prepare import Decided, Prepared, Situation, front_moved, prepare
from .reserving import most_output
from .sending import Outgoing, Sent, send

_MOST_DECISIONS = 4  # each must bring the request down; more would mean that they do not
_MOST_REFITS = 3
_VOCABULARY_WAIT = 10.0  # seconds; it takes 0.5 to 2


@dataclass(frozen=True, slots=True)
class StepResult:
    """The recorded reply and its entry, or the problem that ended the call. `shown`: people saw something of it."""

    entry: int | None
    reply: AssistantMessage
    problem: Problem | None
    cost: float | None
    shown: bool = False


async def run_model_call(desk: Desk, turn: int) -> StepResult:
    """One model call for the turn that entry `turn` opened.

    Raises `ContextOverflow`, `IllegalPayload` (nothing was sent) and `SessionError`.
    """
    doubt: _Doubt | None = None
    refused: StepResult | None = None
    taught = again = False
    for attempt in range(_MOST_REFITS + 1):
        model = desk.model()
        settings = desk.standing().settings
        fit = known_fit(model, settings)  # an overflow's lesson is true on every branch
        try:
            ready = await _ready(desk, model, fit, turn, weigh=not attempt, overflowed=taught)
        except (ContextOverflow, ImpossibleBudget):
            if not fit.before:
                raise
            await _keep(desk, model, fit.relaxed())
            if refused is not None:
                return refused
            continue
        result = await _call(desk, model, ready, turn)
        problem, size = result.problem, ready.outgoing.record.forecast
        if doubt is not None and problem is not None and problem.kind == "bad_request":
            await doubt.withdraw(desk)
            return result
        doubtful = doubt is None and problem is not None and may_be_overflow(problem, size, fit.window)
        if problem is None or attempt == _MOST_REFITS or not (doubtful or problem.kind == "overflow"):
            if fit.on_trial:
                await _keep(desk, model, fit.relaxed())
            return result
        refused, answered = result, largest_answered(desk.session.tree.entries, model)
        if not again and not doubtful and size <= answered and is_blind(fit, problem, size):
            again, what = True, "It took a larger one before, so the same is sent again."
        else:
            if doubtful:
                doubt = _Doubt(fit_setting(model), settings.get(fit_setting(model)))
            taught, what = True, "The request is made smaller and sent again."
            await _keep(desk, model, learn(fit, problem, size, answered))
        desk.announcer.emit(Notice(level="info", text=f"{problem.text.rstrip('.')}. {what}"))
    raise AssertionError("unreachable: the last attempt returns")


async def _keep(desk: Desk, model: ChosenModel, fit: Fit) -> None:
    await desk.session.append(SettingRecord(name=fit_setting(model), value=fit.as_setting()))


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A refusal near the window that nobody called an overflow was taken for one; `before` is what was known then."""

    name: str
    before: object

    async def withdraw(self, desk: Desk) -> None:
        """The smaller request was refused as well: it was none, and teaches nothing."""
        await desk.session.append(SettingRecord(name=self.name, value=self.before))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A request as it leaves at `sent_at` (seconds since 1970)."""

    outgoing: Outgoing
    sent_at: float


async def _ready(desk: Desk, model: ChosenModel, fit: Fit, turn: int, *, weigh: bool, overflowed: bool) -> _Ready:
    """The request, prepared and shaped by the hooks. Where those move what reasoning is bound to, that goes first."""
    for attempt in range(_MOST_DECISIONS):
        prepared = await _prepare(desk, model, fit, turn, weigh=weigh and not attempt, overflowed=overflowed)
        sent_at = desk.now()
        outgoing = await _outgoing(desk, model, prepared, sent_at)
        previous = prepared.previous
        info = as_asked(model.info, outgoing.record.thinking)
        shaped = outgoing.record.changes or (previous is not None and previous.changes)
        extends = outgoing.cause is None and (previous is None or was_held(model.info, previous))
        if not shaped or extends or not refuses_moved(info.abilities):
            return _Ready(outgoing, sent_at)
        branch, messages = tuple(desk.session.branch()), prepared.projection.messages
        lost = lost_in_body(branch, messages, info, orjson.loads(outgoing.content))
        if not lost:
            return _Ready(outgoing, sent_at)
        size, why = outgoing.record.forecast, "what it was bound to has changed"
        edits = tuple(entry.id for entry in await desk.session.append(*lost))
        desk.announcer.emit(HistoryEdited(entries=edits, before=size, after=size, why=f"reasoning left out: {why}"))
    raise AssertionError(f"{_MOST_DECISIONS} decisions in a row left reasoning that its model would refuse")


async def _prepare(desk: Desk, model: ChosenModel, fit: Fit, turn: int, *, weigh: bool, overflowed: bool) -> Prepared:
    if not vocabulary_loaded():
        with anyio.move_on_after(_VOCABULARY_WAIT):  # until it is there, counting is by bytes, an upper bound
            await anyio.to_thread.run_sync(load_vocabulary, abandon_on_cancel=True)
    session, thrift = desk.session, desk.thrift(model)
    hooks = desk.hooks if weigh else None
    if hooks is not None and await transform_context(hooks, session, desk.drafts, desk.standing, model):
        thrift.moved()
    if front_moved(tuple(session.branch()), as_told(model.info, desk.standing().settings)):
        thrift.moved()
    cache = thrift.wanted(desk.now()) if weigh else None
    tried = False  # to make room: once a call
    for _ in range(_MOST_DECISIONS + 1):
        standing, branch = desk.standing(), tuple(session.branch())
        situation = Situation(
            (), branch, turn, model, fit, desk.drafts, desk.margin, desk.thinking, cache, standing=standing
        )
        preparation = await at_ease(desk.drafts.pending(branch, standing.redacted), partial(prepare, situation))
        if preparation.economy is not None:
            thrift.economy, cache = preparation.economy, None  # it was weighed; what follows is made from the log
        if not tried and wants_room(desk, preparation.outcome):
            tried = True
            if await make_room(desk, preparation.outcome, turn, overflowed=overflowed):
                thrift.moved()
                continue
        if isinstance(preparation.outcome, Prepared):
            return preparation.outcome
        await _record_decisions(desk, preparation.outcome)
        thrift.moved()
    raise AssertionError(f"{_MOST_DECISIONS} decisions in a row did not bring the request under its budget")


async def _record_decisions(desk: Desk, decided: Decided) -> None:
    entries = await desk.session.append(*decided.records)
    report = decided.governed.report
    why = "; ".join(f"{action.what}: {action.why}" for action in report.actions if action.tokens)
    heads = [entry.id for entry in entries if isinstance(entry.record, HeadRecord)]
    edits = tuple(entry.id for entry in entries if isinstance(entry.record, EditRecord))
    if edits:
        desk.announcer.emit(HistoryEdited(entries=edits, before=report.before, after=report.after, why=why))
    for head in heads:
        desk.announcer.emit(HistoryCut(entry=head, before=report.before, after=report.after, why=why))


async def _call(desk: Desk, model: ChosenModel, ready: _Ready, turn: int) -> StepResult:
    outgoing, sent_at = ready.outgoing, ready.sent_at
    record = outgoing.record

    def left(request: Entry) -> None:
        desk.announcer.emit(
            RequestSent(
                entry=request.id,
                model=model.name,
                tokens=record.forecast,
                budget=record.budget,
                window=model.info.window,
            )
        )

    def told(sent: Sent) -> None:
        if sent.reply.usage is not None:  # it was read, so it is in the cache
            desk.thrift(model).sent(sent_at, sent.reply.usage.prompt, record.lifetime)
        _tell_reply(desk, sent)

    sent = await send(
        desk, model, outgoing, turn=turn, left=left, hear=desk.announcer.tell, keep=partial(_kept, model), told=told
    )
    result = StepResult(_reply_entry(sent), sent.reply, sent.problem, sent.cost, sent.first is not None)
    if desk.hooks is not None:
        problem = None if result.problem is None else result.problem.text
        response = Response(result.entry, result.reply, result.reply.usage, result.cost, problem)
        for hook in desk.hooks.at("after_response"):
            await desk.hooks.ask(hook, "after_response", response)
    return result


async def _outgoing(desk: Desk, model: ChosenModel, prepared: Prepared, sent_at: float) -> Outgoing:
    """The request as it leaves; where hooks look at its body, as they want it."""
    lifetime = desk.thrift(model).lifetime(sent_at, prepared.record.forecast)
    record, ttl = replace(prepared.record, lifetime=lifetime), LIFETIMES.get(lifetime)
    if desk.hooks is None or not tuple(desk.hooks.at("before_request")):
        return Outgoing(record, prepared.draft.to_bytes(ttl), prepared.most, prepared.output, prepared.cause)
    fit = known_fit(model, desk.standing().settings)
    measure = partial(_measured, desk.drafts.counter, fit)
    shaped = await shape_body(desk.hooks, model.info, prepared, record, prepared.draft.body(ttl), measure)
    output = max(prepared.output, most_output(shaped.body, model.info))
    return Outgoing(shaped.record, dump_bytes(shaped.body), prepared.most + shaped.grown, output, shaped.cause)


def _measured(counter: Counter, fit: Fit, text: str) -> int:
    return scaled(counter.count(text), fit.factor)


def _kept(model: ChosenModel, finished: Finished) -> tuple[MessageRecord, ...]:
    """The reply, if anything came."""
    reply = finished.message
    if not reply.content and finished.problem is not None:
        return ()
    message = MessageRecord(
        role="assistant",
        content=reply.content,
        stop=reply.stop,
        model=model.info.id,
        wire=model.info.wire,
        usage=reply.usage,
    )
    return (message,)


def _reply_entry(sent: Sent) -> int | None:
    """The entry of the reply that was kept."""
    return sent.entries[-1].id if len(sent.entries) > 1 else None


def _tell_reply(desk: Desk, sent: Sent) -> None:
    entry = _reply_entry(sent)
    if entry is not None:
        desk.announcer.emit(
            ReplyRecorded(
                entry=entry,
                text=scrub(sent.reply.text),
                stop=sent.reply.stop,
                usage=sent.reply.usage,
                cost=sent.cost,
                seconds=sent.seconds,
                first=sent.first,
                saved=desk.session.is_saved(entry),
            )
        )
