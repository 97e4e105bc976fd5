"""Work as long as a log is: at once when it is short, in a worker thread when the event loop would feel it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

#: Entries that are read on the event loop: some hundred take a few milliseconds, a hop to a thread takes 0.1.
AT_ONCE = 300

Made = TypeVar("Made")


async def at_ease(entries: int, work: Callable[[], Made]) -> Made:
    """What `work` gives, which reads about so many entries. It may be called in a thread: nothing that it reads may
    change meanwhile, so callers hand it copies. A cancellation waits for its end."""
    if entries <= AT_ONCE:
        return work()
    return await anyio.to_thread.run_sync(work)
