"""A conversation where there is no terminal to draw on: one message a line in, plain text out, no control codes.

The answers go to `out`, everything else (tools, notices, errors) to `err`. Runs on asyncio and trio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TextIO

import anyio
import anyio.to_thread

from ..agent.agent import Agent
from ..events import Event, ReplyRecorded, TextDelta, TurnFinished
from .blocks import Block
from .commands import parse_command, parse_shell
from .reducer import ChatState, Line, Shown, advance
from .resume import is_new
from .sanitize import clean, ready
from .talk import Talk

_LONGEST_INPUT = 10_000_000  # characters of one line


class PlainAudience:
    """Writes answers as they come. `failed` tells whether the last turn ended with an error."""

    def __init__(self, out: TextIO, err: TextIO, clock: Callable[[], float]) -> None:
        self.failed = False
        self._out = out
        self._err = err
        self._clock = clock
        self._state = ChatState("", 0)
        self._held = ""
        self._in_line = False

    def happened(self, event: Event) -> None:
        self._state, shown = advance(self._state, event, self._clock())
        match event:
            case TextDelta(text=text):
                text, self._held = ready(self._held + text)
                self._write(clean(text))
            case ReplyRecorded():
                self._write(clean(self._held))
                self._held = ""
                self._end_line()
            case TurnFinished(error=error, stop=stop):
                self._end_line()
                self.failed = error is not None or stop in ("error", "refused", "aborted")
            case _:
                pass
        self.show(*(each for each in shown if isinstance(each, Line)))

    def show(self, *shown: Shown) -> None:
        for each in shown:
            if isinstance(each, Block) or each.kind in ("user", "thought"):
                continue  # the text itself was written as it came
            self._end_line()
            write_text(self._err, f"{each.text}\n")

    def began(self, agent: Agent) -> None:
        session = f"{'New session' if is_new(agent) else 'Session'} {agent.session.id}"
        why = f" ({agent.model.why})" if agent.model.why else ""
        write_text(self._err, clean(f"{session}, model {agent.model.name}{why}") + "\n")

    def moved(self, agent: Agent) -> None:
        return  # nothing of it stays on the screen

    def offer(self, text: str, otherwise: str) -> None:
        self.show(Line("info", otherwise))

    def _write(self, text: str) -> None:
        if text:
            write_text(self._out, text)
            self._in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._in_line:
            write_text(self._out, "\n")
            self._in_line = False


def write_text(file: TextIO, text: str) -> None:
    """Write what `file` can take of `text`; the rest becomes question marks."""
    encoding = file.encoding or "utf-8"
    file.write(text.encode(encoding, "replace").decode(encoding))
    file.flush()


async def plain_chat(talk: Talk, audience: PlainAudience, first: str | None, source: TextIO, prompt: str = "") -> int:
    """Answer `first` and then each line of `source`; 0 when the last turn gave an answer, else 1."""
    async with anyio.create_task_group() as group:
        group.start_soon(talk.follow)
        text = first
        while not talk.over:
            if text is not None and text.strip():
                await _one(talk, audience, text)
            if prompt:
                write_text(sys.stderr, prompt)
            line = await anyio.to_thread.run_sync(partial(_read_line, source), abandon_on_cancel=True)
            if line is None:
                break
            text = line
        await talk.close()
        group.cancel_scope.cancel()
    return 1 if audience.failed else 0


async def _one(talk: Talk, audience: PlainAudience, text: str) -> None:
    command, shell = parse_command(text), parse_shell(text)
    if shell is not None:
        await talk.shell(shell)
    elif command is not None:
        await talk.run(command)
    elif not await talk.say(text):
        audience.failed = True
    await talk.settle()


def _read_line(source: TextIO) -> str | None:
    """The next line without its end; None at the end of the input. Bytes that are no text are replaced."""
    raw = getattr(source, "buffer", None)
    line = source.readline(_LONGEST_INPUT) if raw is None else raw.readline(_LONGEST_INPUT).decode("utf-8", "replace")
    return line.rstrip("\r\n") if line else None
