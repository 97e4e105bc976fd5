"""The one way by which a request leaves: steps of a turn, questions beside it and warmings all go through `send`.

Laws:
- What the call may cost at most is taken from the spending limits first (`ledger`), and what it did cost put in its
  place after it. A call that they refuse leaves nothing behind: no entry, no byte.
- The `request` entry is recorded before the first byte leaves. Its `outcome` and whatever is kept of the answer are one
  batch, recorded whatever happened between: an error, a stream that ended early, a cancellation.
- A cancellation goes on after that. What had come by then is an aborted reply, with the usage told so far.
- Each `Sent` is told to the caller exactly once, cancelled or not.
- An attempt that broke may have been paid for. Before another is made its outcome is recorded and settled, and the next
  one is a request of its own, reserved like the first. Attempts that cost nothing for sure are one request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf

import anyio

from governors.messages import AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage

from ..events import Notice
from ..ledger.base import Reservation, Spender
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
    UsagePiece,
)
from ..session.entries import Entry, OutcomeRecord, Record, RequestRecord
from .desk import Desk
from .reserving import charge, cost_of, is_unbilled, last_attempt, worst_case


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
    recorded; both are called on a cancellation, too, before it goes on. What is given back is the last attempt. Raises
    `SpendingLimit` and `LedgerUnusable` (nothing was sent, or not again), and `SessionError`.
    """
    sending = _Sending(desk, model, outgoing, turn, left, told)
    try:
        await sending.begin()
        try:
            with anyio.move_on_after(outgoing.within):
                await sending.hold(hear)
        finally:
            if sending.call is not None:
                with anyio.CancelScope(shield=True):  # the answer is here, whole or in part, and may have been paid for
                    await sending.record(keep)
    finally:
        with anyio.CancelScope(shield=True):
            await sending.settle()
    assert sending.sent is not None
    return sending.sent


@dataclass(slots=True)
class _Sending:
    """What is under way: a reservation, then a call, and after a broken attempt the next ones."""

    desk: Desk
    model: ChosenModel
    outgoing: Outgoing
    turn: int | None
    left: Callable[[Entry], object]
    told: Callable[[Sent], object]
    reservation: Reservation | None = None
    call: _Call | None = None
    sent: Sent | None = None

    async def begin(self) -> None:
        """Reserve what the call may cost, and record the request."""
        desk, record = self.desk, self.outgoing.record
        most = worst_case(self.model.info, self.outgoing.prompt, self.outgoing.output, record.lifetime)
        spender = Spender(
            agent=desk.session.agent,
            session=desk.session.id,
            turn=self.turn,
            purpose=record.purpose,
            workspace=desk.workspace,
        )
        self.reservation = await desk.ledger.reserve(spender, self.model.name, most)
        reserved = most if self.reservation.id is not None else None
        (request,) = await desk.session.append(replace(record, reserved=reserved))
        self.left(request)
        self.call = _Call(self.model, self.outgoing, request)

    async def hold(self, hear: Callable[[StreamEvent], object]) -> None:
        """Send it, and follow the answer to its end."""
        content, tokens = self.outgoing.content, self.outgoing.record.forecast
        request = Request(self.model.info, content, session=self.desk.session.id, tokens=tokens)
        async with self.model.provider.stream(request) as events:
            async for event in events:
                assert self.call is not None
                if self.call.take(event, once=self.outgoing.once):
                    return
                hear(event)
                if isinstance(event, Retry) and self.call.was_paid(event):
                    await self._anew(event)
        text = f"{self.model.name} ended its answer without saying how. Try again."
        assert self.call is not None
        self.call.end = self.call.broken("error", Problem("unknown", text))

    async def _anew(self, retry: Retry) -> None:
        """The attempt before is over; the next is a request of its own. Raises `SpendingLimit`."""
        assert self.call is not None
        with anyio.CancelScope(shield=True):
            self.call.end = self.call.broken("error", retry.problem, retry.usage)
            await self.record(_nothing)
            await self.settle()
        self.outgoing = replace(self.outgoing, cause=None)  # it extends the one before
        await self.begin()

    async def settle(self) -> None:
        """Give back what the call did not cost."""
        reservation, call = self.reservation, self.call
        self.reservation = self.call = None
        if reservation is None:
            return
        cost, usage = 0.0 if call is None else call.charged(), None if call is None else call.finished().message.usage
        for warning in await self.desk.ledger.settle(reservation, cost, usage):
            self.desk.announcer.emit(Notice(level="warning", text=warning))

    async def record(self, keep: Callable[[Finished], Sequence[Record]]) -> None:
        """Record what the call came to, and tell it."""
        assert self.call is not None
        self.sent = await _record(self.desk, self.model, self.call, self.outgoing.cause, keep)
        self.told(self.sent)


async def _record(
    desk: Desk, model: ChosenModel, call: _Call, cause: str | None, keep: Callable[[Finished], Sequence[Record]]
) -> Sent:
    seconds, finished = anyio.current_time() - call.began, call.finished()
    reply = finished.message
    cost = cost_of(model.info, reply.usage)
    outcome = OutcomeRecord(
        request=call.request.id,
        stop=reply.stop,
        usage=reply.usage,
        cost=cost,
        cause=cause,
        problem=_plain(finished.problem),
        seconds=round(seconds, 3),
        first=None if call.first is None else round(call.first, 3),
    )
    entries = await desk.session.append(outcome, *keep(finished))
    return Sent(call.request, entries, finished, cost, seconds, call.first)


@dataclass(slots=True)
class _Call:
    """One request on its way, and what has come of the answer. Times are seconds."""

    model: ChosenModel
    outgoing: Outgoing
    request: Entry
    began: float = field(default_factory=anyio.current_time)
    first: float | None = None
    heard: list[StreamEvent] = field(default_factory=list)
    end: Finished | None = None

    def take(self, event: StreamEvent, *, once: bool) -> bool:
        """Take in what came; whether it was the end."""
        if isinstance(event, Finished):
            self.end = event
        elif isinstance(event, Retry) and once:
            problem = event.problem or Problem("unknown", event.why, unsent=event.attempt == 1)  # it waits at a gate
            self.end = self.broken("error", problem, event.usage)
        else:
            if self.first is None and isinstance(event, TextPiece | ThinkingPiece | CallPiece):
                self.first = anyio.current_time() - self.began
            self.heard.append(event)
        return self.end is not None

    def was_paid(self, retry: Retry) -> bool:
        """Whether the attempt that ended with `retry`, which was taken in, may have cost anything."""
        return retry.problem is not None and not is_unbilled(retry.problem, last_attempt(self.heard[:-1]))

    def charged(self) -> float | None:
        return charge(self.model.info, self.finished(), self.heard, self.outgoing.output)

    def finished(self) -> Finished:
        """The end of the answer; of one that was broken off, what had come."""
        return self.end or self.broken("aborted")

    def broken(self, stop: StopReason, problem: Problem | None = None, usage: Usage | None = None) -> Finished:
        info = self.model.info
        reply = partial_reply(last_attempt(self.heard))
        reply = replace(reply, stop=stop, model=info.id, wire=info.wire, usage=usage or reply.usage)
        return Finished(reply, problem)


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
