"""The conversation in a terminal: what `moonwake chat` runs.

A person can type at any time. What is finished is printed and scrolls away as in a shell; what is still changing stands
just above the prompt. On asyncio only, because prompt_toolkit is; without a terminal (a pipe, TERM=dumb) the plain
conversation of `plain.py` takes its place, which runs on trio too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..agent.agent import Agent
from ..errors import MoonwakeError
from ..supervisor import NothingToContinue
from .base import Host
from .opening import TOOLS_OFF, tools_off
from .plain import PlainAudience, plain_chat
from .reducer import Line
from .resume import TakenUp, take_up
from .sanitize import clean
from .talk import Talk


async def chat(
    runtime: Host,
    *,
    agent: str,
    session: str | None,
    resume: bool,
    first: str | None = None,
    own_model: bool = False,
) -> int:
    """Talk with `agent` until the person leaves; returns the exit code.

    `session` is opened or begun; without one, `resume` goes on with the newest, and where there is none, or without
    `resume`, a new one is begun. `own_model`: the model that was chosen in the session answers where it can.
    `first` is said before anything is typed. Raises `SessionError`, `SessionLocked`, and `MoonwakeError` on trio.
    """
    on_terminal = is_terminal(sys.stdin, sys.stdout, os.environ)
    if on_terminal and not _on_asyncio():
        raise MoonwakeError(
            "a conversation in a terminal runs on asyncio only; start it with anyio.run(..., 'asyncio')"
        )
    try:
        taken = await take_up(runtime, agent, session=session, resume=resume, own_model=own_model)
    except NothingToContinue:
        begun = await take_up(runtime, agent)
        taken = TakenUp(begun.agent, ("There is nothing to continue yet: this is a new session.",))
    notes = (*taken.notes, *runtime.notes)
    with log_to(runtime.workspace.state / "terminal.log"):
        if not on_terminal:
            return await _plainly(runtime, taken.agent, notes, first)
        from .converse import converse
        from .render import Renderer
        from .screen import terminal_devices

        renderer = Renderer(unicode=speaks_unicode(sys.stdout), color=not os.environ.get("NO_COLOR"))
        devices = terminal_devices(sys.stdout)
        return await converse(runtime, taken.agent, devices, notes=notes, first=first, renderer=renderer)


def is_terminal(source: TextIO, out: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a person sits at both ends, on a terminal that can move its cursor."""
    return source.isatty() and out.isatty() and environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def speaks_unicode(out: TextIO) -> bool:
    """Whether our marks can be written to `out`."""
    try:
        "›✓✗●·…".encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _plainly(runtime: Host, agent: Agent, notes: Sequence[str], first: str | None) -> int:
    audience = PlainAudience(sys.stdout, sys.stderr, time.monotonic)
    audience.began(agent)
    told = (TOOLS_OFF, *notes) if tools_off(agent.model) else notes
    audience.show(*(Line("info", clean(note)) for note in told))
    prompt = "> " if sys.stdin.isatty() else ""
    return await plain_chat(Talk(runtime, agent, audience), audience, first, sys.stdin, prompt)


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Warnings and faults of the program go into the file `path` meanwhile: a traceback is nothing to talk with."""
    handler = logging.FileHandler(path, encoding="utf-8", errors="replace", delay=True)  # made at the first fault
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
