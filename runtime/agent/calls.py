"""The calls of a reply: intents first, then all at once, each result recorded as it comes.

Laws: a call runs only after its reply and its intent are on disk; while the disk refuses, only calls that read are
run, the others are refused; every call that began ends in exactly one result, also when the turn is stopped; a result
is announced only after it is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from governors.messages import Text, ToolCall

from ..errors import SessionError
from ..events import ToolFinished, ToolStarted
from ..hooks.running import Hooks
from ..session.entries import CallReference, IntentRecord, ResultRecord
from ..session.session import Session
from ..tools.base import ToolContext, ToolOutput
from ..tools.toolset import Toolset
from .announce import Announcer
from .hooked_calls import UNSEEN, Planned, look_at_result, plan_call

STOPPED = "Stopped by the user before it finished. It may have taken effect in part."
UNSAVED = (
    "Not run, and nothing was done: the session cannot be saved now ({why}), so there would be no record of it. "
    "Calls that only read still work; this one will, once the user has made the disk writable or freed some space."
)


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call with what came of it, for the breaker that watches for repeated failures."""

    tool: str
    arguments: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Workbench:
    """What running calls needs."""

    session: Session
    toolset: Toolset
    context: ToolContext
    announcer: Announcer
    hooks: Hooks | None = None


async def run_calls(bench: Workbench, reply: int, calls: Sequence[ToolCall]) -> tuple[FinishedCall, ...]:
    """Run the complete calls of the reply recorded as entry `reply`; results come back in call order.

    Raises `SessionError` when an intent or a result cannot be recorded.
    """
    finished: dict[int, FinishedCall] = {}
    unrecorded: list[SessionError] = []

    async def run(number: int, planned: Planned) -> None:
        try:
            finished[number] = await _run_call(bench, (reply, number), planned, refused=refused(number))
        except SessionError as error:  # the session was closed: the other calls still end, then the turn does
            unrecorded.append(error)

    def refused(number: int) -> str | None:
        return None if outage is None or read_only[number] else UNSAVED.format(why=outage)

    runnable = [
        (number, await plan_call(bench.hooks, bench.toolset, (reply, number), call))
        for number, call in _runnable(calls)
    ]
    intents = [_intent(bench.toolset, (reply, number), planned, calls[number]) for number, planned in runnable]
    read_only = {intent.call[1]: intent.read_only for intent in intents}
    if intents:
        await bench.session.append(*intents)
    outage = bench.session.outage
    for number, planned in runnable:
        call = planned.call
        started = ToolStarted(call=(reply, number), tool=call.name, arguments=call.arguments, saved=outage is None)
        bench.announcer.emit(started)
    async with anyio.create_task_group() as group:
        for number, planned in runnable:
            group.start_soon(run, number, planned)
    if unrecorded:
        raise unrecorded[0]
    return tuple(finished[number] for number, _ in runnable)


def _runnable(calls: Sequence[ToolCall]) -> list[tuple[int, ToolCall]]:
    """The calls to run, with their index: those that are complete, and one that was made twice only once (the reply is
    sent back with one of them)."""
    seen: set[ToolCall] = set()
    runnable = []
    for number, call in enumerate(calls):
        if call.complete and call not in seen:
            seen.add(call)
            runnable.append((number, call))
    return runnable


def _intent(toolset: Toolset, reference: CallReference, planned: Planned, call: ToolCall) -> IntentRecord:
    tool = toolset.get(call.name)
    return IntentRecord(
        call=reference,
        tool=call.name,
        read_only=tool is not None and tool.spec.read_only,
        arguments=None if planned.call.arguments == call.arguments else planned.call.arguments,
        hook=planned.hook,
    )


async def _run_call(
    bench: Workbench, reference: CallReference, planned: Planned, *, refused: str | None
) -> FinishedCall:
    call, began = planned.call, anyio.current_time()
    context = replace(bench.context, call=reference)
    stopped = STOPPED
    try:
        if refused is not None:
            output = ToolOutput((Text(refused),), is_error=True)
        elif planned.answer is not None:
            output = planned.answer
        else:
            output = await bench.toolset.run(call.name, call.arguments, context)
            stopped = UNSEEN
            output = await look_at_result(bench.hooks, bench.toolset, reference, call, output)
    except anyio.get_cancelled_exc_class():
        output = ToolOutput((Text(stopped),), is_error=True)
        with anyio.CancelScope(shield=True):
            await _record(bench, reference, call, output, anyio.current_time() - began)
        raise
    with anyio.CancelScope(shield=True):  # it took effect: the log must know, stopped or not
        finished = await _record(bench, reference, call, output, anyio.current_time() - began)
    return finished


async def _record(
    bench: Workbench, reference: CallReference, call: ToolCall, output: ToolOutput, seconds: float
) -> FinishedCall:
    record = ResultRecord(
        call=reference,
        tool=call.name,
        content=output.content,
        is_error=output.is_error,
        seconds=round(seconds, 3),
        whole=output.whole,
    )
    (entry,) = await bench.session.append(record)
    text = "\n\n".join(part.text for part in output.content if isinstance(part, Text))
    bench.announcer.emit(
        ToolFinished(
            call=reference,
            tool=call.name,
            entry=entry.id,
            is_error=output.is_error,
            text=text,
            seconds=seconds,
            saved=bench.session.is_saved(entry.id),
        )
    )
    return FinishedCall(call.name, call.arguments, text, output.is_error)
