"""The one way by which a request leaves: steps of a turn, questions beside it and warmings all go through `send`.

Laws:
- What the call may cost at most is taken from the spending limits first (`ledger`), and what it did cost put in its
  place after it. A call that they refuse leaves nothing behind: no entry, no byte.
- The `request` entry is recorded before the first byte leaves. Its `outcome` and whatever is kept of the answer are one
  batch, recorded whatever happened between: an error, a stream that ended early, a cancellation.
- A cancellation goes on after that. What had come by then is an aborted reply, with the usage told so far.
- Each `Sent` is told to the caller exactly once, cancelled or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf

import anyio

from governors.messages import AssistantMessage, Text, Thinking, ToolCall, Usage

from ..events import Notice
from ..ledger.base import Reservation, Spender
from ..providers.base import (
    CallPiece,
    ChosenModel,
    Finished,
    ModelInfo,
    Problem,
    Request,
    Retry,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
    UsagePiece,
)
from ..session.entries import Entry, OutcomeRecord, Record, RequestRecord
from .desk import Desk
from .reserving import charge, cost_of, worst_case


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request that is ready to leave: its record, its body, and why its prefix does not extend the previous one's.

    `prompt` and `output` are what it may take at most, in tokens. It is broken off after `within` seconds. `once`: an
    attempt that fails is not made again.
    """

    record: RequestRecord
    content: bytes
    prompt: int
    output: int
    cause: str | None = None
    within: float = inf
    once: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request. `request` is its entry, `entries` are those of the batch after it: the outcome, then
    what was kept. `cost` is in US dollars (None: unknown); `seconds` it took, `first` of them until the first piece of
    the answer, None when none came."""

    request: Entry
    entries: tuple[Entry, ...]
    finished: Finished
    cost: float | None
    seconds: float
    first: float | None = None

    @property
    def reply(self) -> AssistantMessage:
        return self.finished.message

    @property
    def problem(self) -> Problem | None:
        return self.finished.problem


def _nothing(*_: object) -> tuple[Record, ...]:
    return ()


async def send(
    desk: Desk,
    model: ChosenModel,
    outgoing: Outgoing,
    *,
    turn: int | None,
    left: Callable[[Entry], object] = _nothing,
    hear: Callable[[StreamEvent], object] = _nothing,
    keep: Callable[[Finished], Sequence[Record]] = _nothing,
    told: Callable[[Sent], object] = _nothing,
) -> Sent:
    """Send a request, and record what it came to.

    `turn` is the entry that opened the turn, None outside of one. `left` is told the entry of the request once it is
    recorded, `hear` each piece as it comes. `keep` gives the records to be kept of the answer, `told` learns what is
    recorded; both are called on a cancellation, too, before it goes on. Raises `SpendingLimit` and `LedgerUnusable`
    (nothing was sent), and `SessionError`.
    """
    info, record = model.info, outgoing.record
    most = worst_case(info, outgoing.prompt, outgoing.output, record.lifetime)
    spender = Spender(
        agent=desk.session.agent,
        session=desk.session.id,
        turn=turn,
        purpose=record.purpose,
        workspace=desk.workspace,
    )
    reservation = await desk.ledger.reserve(spender, model.name, most)
    call: _Call | None = None
    try:
        (request,) = await desk.session.append(replace(record, reserved=most if reservation.id is not None else None))
        left(request)
        call = _Call(model, outgoing, desk.session.id)
        try:
            with anyio.move_on_after(outgoing.within):
                await call.hold(hear)
        finally:
            with anyio.CancelScope(shield=True):  # the answer is here, whole or in part, and may have been paid for
                sent = await _record(desk, model, request, outgoing, call, keep)
                told(sent)
    finally:
        with anyio.CancelScope(shield=True):
            await _settle(desk, reservation, info, call, outgoing)
    return sent


async def _settle(
    desk: Desk, reservation: Reservation, info: ModelInfo, call: _Call | None, outgoing: Outgoing
) -> None:
    if call is None:  # it never left
        warnings = await desk.ledger.settle(reservation, 0.0, None)
    else:
        finished = call.finished()
        cost = charge(info, finished, call.heard, outgoing.output)
        warnings = await desk.ledger.settle(reservation, cost, finished.message.usage)
    for warning in warnings:
        desk.announcer.emit(Notice(level="warning", text=warning))


async def _record(
    desk: Desk,
    model: ChosenModel,
    request: Entry,
    outgoing: Outgoing,
    call: _Call,
    keep: Callable[[Finished], Sequence[Record]],
) -> Sent:
    seconds, finished = anyio.current_time() - call.began, call.finished()
    reply = finished.message
    cost = cost_of(model.info, reply.usage)
    outcome = OutcomeRecord(
        request=request.id,
        stop=reply.stop,
        usage=reply.usage,
        cost=cost,
        cause=outgoing.cause,
        problem=_plain(finished.problem),
        seconds=round(seconds, 3),
        first=None if call.first is None else round(call.first, 3),
    )
    entries = await desk.session.append(outcome, *keep(finished))
    return Sent(request, entries, finished, cost, seconds, call.first)


@dataclass(slots=True)
class _Call:
    """One request on its way, and what has come of the answer. Times are seconds."""

    model: ChosenModel
    outgoing: Outgoing
    session: str
    began: float = field(default_factory=anyio.current_time)
    first: float | None = None
    heard: list[StreamEvent] = field(default_factory=list)
    end: Finished | None = None

    async def hold(self, hear: Callable[[StreamEvent], object]) -> None:
        """Send it, and follow the answer to its end."""
        info, outgoing = self.model.info, self.outgoing
        request = Request(info, outgoing.content, session=self.session, tokens=outgoing.record.forecast)
        async with self.model.provider.stream(request) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self.end = event
                    return
                if isinstance(event, Retry) and outgoing.once:
                    unsent = event.attempt == 1  # it waits at a gate
                    self.end = self._broken("error", Problem("unknown", event.why, unsent=unsent))
                    return
                if self.first is None and isinstance(event, TextPiece | ThinkingPiece | CallPiece):
                    self.first = anyio.current_time() - self.began
                self.heard.append(event)
                hear(event)
        text = f"{self.model.name} ended its answer without saying how. Try again."
        self.end = self._broken("error", Problem("unknown", text))

    def finished(self) -> Finished:
        """The end of the answer; of one that was broken off, what had come."""
        return self.end or self._broken("aborted")

    def _broken(self, stop: str, problem: Problem | None = None) -> Finished:
        info = self.model.info
        reply = replace(partial_reply(self.heard), model=info.id, wire=info.wire)
        return Finished(reply if stop == "aborted" else replace(reply, stop="error"), problem)


def partial_reply(heard: Sequence[StreamEvent]) -> AssistantMessage:
    """What had come when a call was stopped; calls are left out, as none of them is complete."""
    thinking = "".join(event.text for event in heard if isinstance(event, ThinkingPiece))
    text = "".join(event.text for event in heard if isinstance(event, TextPiece))
    usage: Usage | None = next((event.usage for event in reversed(heard) if isinstance(event, UsagePiece)), None)
    content: tuple[Text | Thinking | ToolCall, ...] = ()
    if thinking:
        content += (Thinking(thinking),)
    if text:
        content += (Text(text),)
    return AssistantMessage(content, stop="aborted", usage=usage)


def _plain(problem: Problem | None) -> dict[str, object] | None:
    return None if problem is None else {key: value for key, value in asdict(problem).items() if value}
