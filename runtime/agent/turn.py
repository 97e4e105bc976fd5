"""A turn: from one input of a user until the agent rests.

Step after step: the system prompt is brought up to date, the model is called, its calls are run, what was steered in
is delivered. Laws: steered input is delivered only after all results of a step; a turn ends after a bounded number of
steps, and earlier when the model repeats the same failing call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from governors.errors import GovernorError
from governors.messages import UNFINISHED, StopReason, Usage
from governors.scrub import scrub

from ..errors import MoonwakeError
from ..events import TurnFinished
from ..ledger.base import SpendingLimit
from ..providers.base import Problem
from ..session.entries import NoteRecord
from .calls import FinishedCall, Workbench, run_calls
from .desk import Desk
from .step import StepResult, run_model_call

_MOST_REPEATS = 3
_UNFINISHED = {
    "refused": "The model refused to answer. Say it in another way, or ask another model.",
    "deferred": "The provider put the answer off; it may come later or never. Ask again.",
    "aborted": "The answer broke off. Ask again.",
    "error": "The answer ended in an error. Ask again.",
}


@dataclass(slots=True)
class Tally:
    """What a turn has come to so far; it survives the turn's cancellation."""

    text: str = ""
    stop: StopReason = "stop"
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    error: str | None = None

    def add(self, result: StepResult) -> None:
        self.steps += 1
        self.text = scrub(result.reply.text)
        self.stop = result.reply.stop
        self.pay(result)
        if result.problem is not None:
            self.error = result.problem.text

    def pay(self, result: StepResult) -> None:
        """Count what a call took, whatever became of it."""
        if result.reply.usage is not None:
            self.usage = _sum(self.usage, result.reply.usage)
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost

    def finished(self, seconds: float) -> TurnFinished:
        """The event that ends the turn, which took `seconds`."""
        return TurnFinished(
            text=self.text,
            stop=self.stop,
            steps=self.steps,
            usage=self.usage,
            cost=self.cost,
            seconds=seconds,
            error=self.error,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn works with. `refresh` brings the system prompt in the log up to date before a step;
    `deliver` records what was steered in and tells whether there was any; `max_steps` bounds the turn; `step_in` lets
    another model answer in place of a call that failed, if one may."""

    desk: Desk
    bench: Callable[[], Workbench]
    refresh: Callable[[], Awaitable[None]]
    deliver: Callable[[], Awaitable[bool]]
    max_steps: int
    step_in: Callable[[StepResult], Awaitable[bool]]


async def run_turn(turn: Turn, opening: int, tally: Tally) -> None:
    """Run the turn that entry `opening` began. What went wrong stands in `tally.error`; only cancellation is raised."""
    try:
        await _steps(turn, opening, tally)
    except (MoonwakeError, GovernorError) as error:
        tally.stop, tally.error = "error", str(error)


async def _steps(turn: Turn, opening: int, tally: Tally) -> None:
    repeats = _Repeats()
    while True:
        await turn.refresh()
        try:
            result = await run_model_call(turn.desk, opening)
        except SpendingLimit as limit:
            await turn.desk.session.append(NoteRecord(text=str(limit), data={"kind": "spending_limit"}))
            raise
        if await turn.step_in(result):
            if result.reply.usage is not None:
                tally.pay(result)
            continue
        tally.add(result)
        if result.problem is not None or result.entry is None:
            await _note_problem(turn, result.problem)
            return
        if result.reply.stop in UNFINISHED:  # nothing of it is sent again, so none of its calls may run
            tally.error = _UNFINISHED[result.reply.stop]
            return
        finished = await run_calls(turn.bench(), result.entry, result.reply.calls)
        steered = await turn.deliver()
        if not finished and not steered:
            return
        if finished and (trouble := _trouble(tally, turn.max_steps, repeats.add(finished))):
            tally.error = trouble
            await turn.desk.session.append(NoteRecord(text=trouble))
            return


def _trouble(tally: Tally, most: int, repeated: FinishedCall | None) -> str | None:
    if repeated is not None:
        return (
            f"The turn was ended: the model made the same failing call to {repeated.tool} {_MOST_REPEATS} times in a "
            f"row. The tool says: {repeated.text[:300]}"
        )
    if tally.steps >= most:
        return f'The turn was ended after {most} steps. Say "go on" to continue, or raise limits.max_steps'
    return None


async def _note_problem(turn: Turn, problem: Problem | None) -> None:
    if problem is not None:
        await turn.desk.session.append(NoteRecord(text=problem.text, data={"kind": problem.kind}))


class _Repeats:
    """Counts how often in a row the very same call failed in the very same way."""

    def __init__(self) -> None:
        self._last: FinishedCall | None = None
        self._count = 0

    def add(self, finished: tuple[FinishedCall, ...]) -> FinishedCall | None:
        """The call that has now failed too often, or None."""
        for call in finished:
            if not call.is_error:
                self._last, self._count = None, 0
            elif call == self._last:
                self._count += 1
            else:
                self._last, self._count = call, 1
            if self._count >= _MOST_REPEATS:
                return call
        return None


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.plain + other.plain,
        one.cache_read + other.cache_read,
        one.cache_write_5m + other.cache_write_5m,
        one.cache_write_1h + other.cache_write_1h,
        one.output + other.output,
        one.reasoning + other.reasoning,
    )
