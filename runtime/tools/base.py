"""What a tool is: a description for the model and a function that takes arguments and a context.

A tool returns text (or a `ToolOutput`); raising `ToolError` tells the model what went wrong. Any other exception
becomes an error result too (the agent's task boundary catches it), so a tool can never end a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from governors.messages import Text, ToolSpec, UserPart

#: What every provider takes as the name of a tool.
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

#: Seconds for a tool that names no limit of its own; the toolset may be given another (`tools.timeout`).
DEFAULT_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call runs: the workspace it is confined to, and whose call it is. `recall` reads back what is out of
    the model's view (see `runtime.session.view.recall`), `compact` asks for room before the next step, with what is to
    be kept above all."""

    workspace: Path
    agent: str
    session: str
    call: tuple[int, int]  # (entry of the reply, index of the call in it)
    recall: Callable[[str], Awaitable[str | None]] | None = None
    compact: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the model reads. An empty text is shown to the model as `(no output)`. `whole` is the whole text where
    `content` shows only its head and tail."""

    content: tuple[UserPart, ...]
    is_error: bool = False
    whole: str | None = None


RunTool: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the agent holds it. `timeout` is in seconds; None leaves it to the tool.

    `run` gets arguments that are a JSON object but not otherwise validated: it validates them itself and
    raises `ToolError` naming what is wrong (tools made by `@tool` do so from their type hints).
    """

    spec: ToolSpec
    run: RunTool
    timeout: float | None = DEFAULT_TIMEOUT


def text_output(text: str, *, is_error: bool = False) -> ToolOutput:
    """A `ToolOutput` of one text."""
    return ToolOutput((Text(text),), is_error)
