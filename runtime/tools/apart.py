"""Runs what others wrote in a task of its own, so that whatever it does to that task ends there.

That is how our own cancellation is told from a foreign one (a library that cancels its task, or lets a cancelled scope
leak): the task never passes a cancellation on, and whether *we* are cancelled is then asked of our own task, which
nothing inside can reach.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Apart(Generic[Value]):
    """What came of it: `values` holds what it returned, if it did. `timed_out`: it had not ended in time."""

    values: tuple[Value, ...] = ()
    error: BaseException | None = None
    timed_out: bool = False


async def run_apart(work: Callable[[], Awaitable[Value]], limit: float | None) -> Apart[Value]:
    """What `work` comes to within `limit` seconds. Raises nothing but the caller's own cancellation."""
    values: list[Value] = []
    errors: list[BaseException] = []
    try:
        with anyio.move_on_after(limit) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(_attempt, work, values, errors)
    except Exception as error:  # noqa: BLE001 - the task boundary: what corrupts its task ends only itself
        errors.append(error)
    await checkpoint_if_cancelled()
    return Apart(tuple(values), errors[-1] if errors else None, scope.cancel_called)


async def _attempt(work: Callable[[], Awaitable[Value]], values: list[Value], errors: list[BaseException]) -> None:
    try:
        values.append(await work())
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the task boundary; the module says why cancellation stops here too
        errors.append(error)


def words_of(error: BaseException) -> str:
    """What an error says of itself."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the same boundary: an exception of others may fail to describe itself
        return "(the error has no readable text)"
