"""A step: one model call, recorded before it leaves and after it ended, whatever happened between.

Laws: the `request` entry is recorded before the first byte leaves; its `outcome` and the reply are one batch; a call
that is stopped in its middle leaves an aborted reply with the text that people saw, and the cancellation goes on.
An overflow that the provider reports is answered by fitting the request, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from governors.messages import AssistantMessage, Text, Thinking, ToolCall
from governors.scrub import scrub
from governors.tokens import Counter, load_vocabulary, scaled, vocabulary_loaded
from governors.wire.base import LIFETIMES, Payload

from ..events import (
    HistoryCut,
    HistoryEdited,
    Notice,
    ReplyRecorded,
    RequestSent,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from ..hooks.contract import Response
from ..hooks.running import Hooks
from ..providers.base import (
    CallPiece,
    ChosenModel,
    Finished,
    Problem,
    Request,
    Retry,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
)
from ..session.entries import (
    EditRecord,
    Entry,
    HeadRecord,
    MessageRecord,
    OutcomeRecord,
    RequestRecord,
    SettingRecord,
)
from ..session.session import Session
from ..session.view.standing import Standing
from .announce import Announcer
from .drafts import Drafts
from .ease import at_ease
from .fit import Fit, fit_setting, known_fit, learn
from .folding import as_told
from .hooked import shape_body, transform_context
from .prepare import Decided, Prepared, Situation, front_moved, prepare
from .thrift import Thrift

_MOST_DECISIONS = 4  # each must bring the request down; more would mean that they do not
_MOST_REFITS = 3
_VOCABULARY_WAIT = 10.0  # seconds; it takes 0.5 to 2


@dataclass(frozen=True, slots=True)
class Desk:
    """What a model call needs. `model` is asked for each step, as the user may switch; `thrift` gives what is known of
    its cache, `standing` what holds in the session whatever branch is shown, `now` the time (seconds since 1970)."""

    session: Session
    model: Callable[[], ChosenModel]
    drafts: Drafts
    announcer: Announcer
    thrift: Callable[[ChosenModel], Thrift]
    standing: Callable[[], Standing]
    now: Callable[[], float]
    margin: int | None = None
    thinking: str | None = None
    hooks: Hooks | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """The recorded reply and its entry, or the problem that ended the call."""

    entry: int | None
    reply: AssistantMessage
    problem: Problem | None
    cost: float | None


async def run_model_call(desk: Desk, turn: int) -> StepResult:
    """One model call for the turn that entry `turn` opened.

    Raises `ContextOverflow`, `IllegalPayload` (nothing was sent) and `SessionError`.
    """
    for attempt in range(_MOST_REFITS + 1):
        model = desk.model()
        fit = known_fit(model, desk.standing().settings)  # an overflow's lesson is true on every branch
        prepared = await _prepare(desk, model, fit, turn, weigh=attempt == 0)
        result = await _call(desk, model, prepared)
        problem = result.problem
        if problem is None or problem.kind != "overflow" or attempt == _MOST_REFITS:
            return result
        fit = learn(fit, problem, prepared.record.forecast)
        await desk.session.append(SettingRecord(name=fit_setting(model), value=fit.as_setting()))
        desk.announcer.emit(Notice(level="info", text=f"{problem.text} The request is made smaller and sent again."))
    raise AssertionError("unreachable: the last attempt returns")


async def _prepare(desk: Desk, model: ChosenModel, fit: Fit, turn: int, *, weigh: bool) -> Prepared:
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
    for _ in range(_MOST_DECISIONS):
        standing, branch = desk.standing(), tuple(session.branch())
        situation = Situation(
            (), branch, turn, model, fit, desk.drafts, desk.margin, desk.thinking, cache, standing=standing
        )
        preparation = await at_ease(desk.drafts.pending(branch, standing.redacted), partial(prepare, situation))
        if preparation.economy is not None:
            thrift.economy, cache = preparation.economy, None  # it was weighed; what follows is made from the log
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


async def _call(desk: Desk, model: ChosenModel, prepared: Prepared) -> StepResult:
    thrift = desk.thrift(model)
    sent_at = desk.now()
    lifetime = thrift.lifetime(sent_at, prepared.record.forecast)
    record = replace(prepared.record, lifetime=lifetime)
    body = prepared.draft.body(LIFETIMES.get(lifetime))
    if desk.hooks is not None:
        fit = known_fit(model, desk.standing().settings)
        measure = partial(_measured, desk.drafts.counter, fit)
        shaped = await shape_body(desk.hooks, model.info, prepared, record, body, measure)
        body, record, prepared = shaped.body, shaped.record, replace(prepared, cause=shaped.cause)
    (request,) = await desk.session.append(record)
    desk.announcer.emit(
        RequestSent(
            entry=request.id,
            model=model.name,
            tokens=record.forecast,
            budget=record.budget,
            window=model.info.window,
        )
    )
    began = anyio.current_time()
    shown: list[StreamEvent] = []
    try:
        finished = await _stream(desk, model, body, shown)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            reply = replace(_partial(shown), model=model.info.id, wire=model.info.wire)
            await _record(desk, model, prepared, request, Finished(reply), anyio.current_time() - began, sent_at)
        raise
    with anyio.CancelScope(shield=True):  # the answer is here and may have been paid for
        result = await _record(desk, model, prepared, request, finished, anyio.current_time() - began, sent_at)
    if desk.hooks is not None:
        problem = None if result.problem is None else result.problem.text
        response = Response(result.entry, result.reply, result.reply.usage, result.cost, problem)
        for hook in desk.hooks.at("after_response"):
            await desk.hooks.ask(hook, "after_response", response)
    return result


def _measured(counter: Counter, fit: Fit, text: str) -> int:
    return scaled(counter.count(text), fit.factor)


async def _stream(desk: Desk, model: ChosenModel, body: Payload, shown: list[StreamEvent]) -> Finished:
    emit = desk.announcer.emit
    async with model.provider.stream(Request.of(model.info, body)) as events:
        async for event in events:
            match event:
                case Finished():
                    return event
                case TextPiece(text):
                    emit(TextDelta(text=text))
                case ThinkingPiece(text):
                    emit(ThinkingDelta(text=text))
                case CallPiece(index, tool, arguments):
                    emit(ToolCallDelta(index=index, tool=tool, arguments=arguments))
                case Retry(why, delay, attempt):
                    emit(Retrying(why=why, delay=delay, attempt=attempt))
            shown.append(event)
    problem = Problem("unknown", f"{model.name} ended its answer without saying how. Try again.")
    return Finished(replace(_partial(shown), stop="error"), problem)


def _partial(shown: list[StreamEvent]) -> AssistantMessage:
    """What had come when the call was stopped; calls are left out, as none of them is complete."""
    thinking = "".join(event.text for event in shown if isinstance(event, ThinkingPiece))
    text = "".join(event.text for event in shown if isinstance(event, TextPiece))
    content: tuple[Text | Thinking | ToolCall, ...] = ()
    if thinking:
        content += (Thinking(thinking),)
    if text:
        content += (Text(text),)
    return AssistantMessage(content, stop="aborted")


async def _record(
    desk: Desk,
    model: ChosenModel,
    prepared: Prepared,
    request: Entry,
    finished: Finished,
    seconds: float,
    sent_at: float,
) -> StepResult:
    reply, problem = finished.message, finished.problem
    if reply.usage is not None:  # it was read, so it is in the cache
        assert isinstance(request.record, RequestRecord)
        desk.thrift(model).sent(sent_at, reply.usage.prompt, request.record.lifetime)
    price = model.info.price
    cost = price.cost(reply.usage) if price is not None and reply.usage is not None else None
    outcome = OutcomeRecord(
        request=request.id,
        stop=reply.stop,
        usage=reply.usage,
        cost=cost,
        cause=prepared.cause,
        problem=_plain(problem),
        seconds=round(seconds, 3),
    )
    message = MessageRecord(
        role="assistant",
        content=reply.content,
        stop=reply.stop,
        model=model.info.id,
        wire=model.info.wire,
        usage=reply.usage,
    )
    kept = bool(reply.content) or problem is None
    entries = await desk.session.append(outcome, *([message] if kept else []))
    if kept:
        desk.announcer.emit(
            ReplyRecorded(
                entry=entries[-1].id,
                text=scrub(reply.text),
                stop=reply.stop,
                usage=reply.usage,
                cost=cost,
                seconds=seconds,
                saved=desk.session.is_saved(entries[-1].id),
            )
        )
    return StepResult(entries[-1].id if kept else None, reply, problem, cost)


def _plain(problem: Problem | None) -> dict[str, object] | None:
    return None if problem is None else {key: value for key, value in asdict(problem).items() if value}
