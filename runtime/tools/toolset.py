"""The tools an agent has, and the one place where a tool is run.

Laws: `run` returns an output for whatever a tool does (raises, hangs, exits, returns nonsense, cancels itself);
only a cancellation of the caller leaves it as an exception. What it returns is scrubbed and bounded (`output`).
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import anyio

from governors.messages import ToolSpec

from ..errors import ToolError
from .apart import run_apart, words_of
from .arguments import parse_arguments
from .base import DEFAULT_TIMEOUT, TOOL_NAME, Tool, ToolContext, ToolOutput, text_output
from .output import LEAST_LIMIT, OUTPUT_LIMIT, finish

logger = logging.getLogger(__name__)

_MOST_NAMES = 20


class Toolset:
    """Tools by name, in the order of their names. Raises `ValueError` for a name twice or one no provider takes."""

    def __init__(
        self, tools: Iterable[Tool] = (), *, output_limit: int = OUTPUT_LIMIT, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        if output_limit < LEAST_LIMIT:
            raise ValueError(f"output_limit is {output_limit} characters; it must be at least {LEAST_LIMIT}")
        by_name: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if not TOOL_NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot name a tool: use 1 to 64 letters, digits, _ or -")
            if name in by_name:
                raise ValueError(f"two tools are called {name!r}; give one of them another name (`@tool(name=...)`)")
            by_name[name] = tool
        self._tools = dict(sorted(by_name.items()))
        self._output_limit = output_limit
        self._timeout = timeout

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in the order of the names."""
        return tuple(tool.spec for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    async def run(self, name: str, arguments_text: str, context: ToolContext) -> ToolOutput:
        """Run one call whose arguments are JSON text. Raises nothing but the caller's own cancellation."""
        tool = self.get(name)
        if tool is None:
            output = text_output(self._unknown(name), is_error=True)
        else:
            try:
                arguments = parse_arguments(arguments_text)
            except ToolError as error:
                output = text_output(str(error), is_error=True)
            else:
                limit = self._timeout if tool.timeout == DEFAULT_TIMEOUT else tool.timeout
                output = await _outcome(tool, arguments, context, limit)
        return self.finished(output)

    def finished(self, output: ToolOutput) -> ToolOutput:
        """`output` as it may be recorded: scrubbed, bounded, not empty."""
        return finish(output, self._output_limit)

    def _unknown(self, name: str) -> str:
        shown = repr(name[:64])
        if not self._tools:
            return f"there is no tool {shown}: no tools are on"
        near = difflib.get_close_matches(name[:64], self._tools, n=3, cutoff=0.5)
        if near:
            return f"there is no tool {shown}. Did you mean {' or '.join(near)}?"
        names = list(self._tools)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"there is no tool {shown}. The tools are: {', '.join(names[:_MOST_NAMES])}{more}"


async def _outcome(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, limit: float | None) -> ToolOutput:
    """What came of one run of a tool, in words where it is no output."""

    async def run() -> ToolOutput:
        output: object = await tool.run(arguments, context)
        if not isinstance(output, ToolOutput):
            raise TypeError(f"its run() returned {type(output).__name__} instead of a ToolOutput")
        return output

    apart = await run_apart(run, limit)
    if apart.error is None and apart.values:
        return apart.values[0]
    if apart.timed_out:
        return text_output(_timed_out(tool, limit), is_error=True)
    return text_output(_failed(tool.spec.name, apart.error), is_error=True)


def _timed_out(tool: Tool, limit: float | None) -> str:
    return (
        f"{tool.spec.name} was stopped: it had not finished after {limit:g} seconds, its time limit. "
        "Whether it had an effect by then is unknown; check before you repeat it, or ask for less at once"
    )


def _failed(name: str, error: BaseException | None) -> str:
    if isinstance(error, ToolError):
        return words_of(error)
    if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
        return f"{name} failed: it was cancelled from within, not by the user; its outcome is unknown"
    logger.info("tool %s failed", name, exc_info=error)
    if isinstance(error, SystemExit):
        return f"{name} failed: it tried to end the program (exit status {error.code!r})"
    words = words_of(error)
    return f"{name} failed with {type(error).__name__}" + (f": {words}" if words else "")
