"""The states of an agent and the moves between them, as a table. A move that is not in it cannot be made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from ..errors import MoonwakeError


class State(Enum):
    """What an agent does. Only one thing at a time."""

    IDLE = "idle"  # waits for input
    RUN = "run"  # a turn is open
    COMPACT = "compact"  # makes room in its context, or a summary of a branch
    STOPPING = "stopping"  # was told to stop; records what must be recorded
    FAILED = "failed"  # an error of our own ended its task; the log is whole


class Trigger(Enum):
    """Why an agent moves."""

    INPUT = "input"
    REST = "rest"
    FULL = "full"  # the context needs room, or a branch a summary
    ROOM = "room"  # it has room again, and the turn goes on
    STOP = "stop"
    STOPPED = "stopped"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended; cancelled, unless something else is known. `trace` is of a fault, for the log."""

    trigger: Trigger = Trigger.STOPPED
    why: str = "the turn was stopped"
    trace: str | None = None


class IllegalMove(MoonwakeError):
    """A move that the table does not have: a fault of the runtime."""


TRANSITIONS = MappingProxyType(
    {
        (State.IDLE, Trigger.INPUT): State.RUN,
        (State.RUN, Trigger.REST): State.IDLE,
        (State.RUN, Trigger.FULL): State.COMPACT,
        (State.COMPACT, Trigger.ROOM): State.RUN,
        (State.IDLE, Trigger.FULL): State.COMPACT,
        (State.COMPACT, Trigger.REST): State.IDLE,
        (State.RUN, Trigger.STOP): State.STOPPING,
        (State.COMPACT, Trigger.STOP): State.STOPPING,
        (State.STOPPING, Trigger.STOPPED): State.IDLE,
        (State.FAILED, Trigger.INPUT): State.RUN,  # the log is whole, so new input starts anew from it
        (State.FAILED, Trigger.FULL): State.COMPACT,
        **{(state, Trigger.FAULT): State.FAILED for state in State},
    }
)


def move(state: State, trigger: Trigger) -> State:
    """The state after `trigger`. Raises `IllegalMove`."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalMove(f"an agent that is {state.value} cannot take {trigger.value}") from None
