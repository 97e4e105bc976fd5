"""The `compact` tool: the model asks for room in its context before it begins something long."""

from __future__ import annotations

from ..errors import ToolError
from .base import ToolContext
from .function import tool


@tool(read_only=True)
async def compact(keep: str = "", *, context: ToolContext) -> str:
    """Ask for a new window: what was said so far is summed up and goes out of view, and you go on from the summary.

    Use it when one task is finished and a long one begins. Do not use it to end a task.

    Args:
        keep: What the summary must keep above all.
    """
    if context.compact is None:
        raise ToolError("there is no conversation here that could be summed up")
    context.compact(keep)
    return "The conversation is summed up before your next step."
