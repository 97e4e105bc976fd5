"""The signals that tell a program to end: work is cancelled, so that all of it is recorded as after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


async def until_told_to_end(work: Callable[[], Awaitable[int]]) -> int:
    """The exit code of `work`, or 128 and the number of the signal that cancelled it. For the main thread.

    A second signal ends the program at once, and one that is ignored (as under nohup) stays ignored.
    """
    told: list[signal.Signals] = []
    code = 0
    heard = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    try:
        async with anyio.create_task_group() as group:

            async def listen(*, task_status: TaskStatus[None]) -> None:
                with anyio.open_signal_receiver(*heard) as signals:
                    task_status.started()
                    told.append(await anext(signals))
                group.cancel_scope.cancel()

            if heard:
                await group.start(listen)
            code = await work()
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) > 1:
            raise
        error = errors.exceptions[0]  # of `work` itself: callers need not know that a task group is around it
        raise error from error.__cause__
    return 128 + told[0] if told else code
