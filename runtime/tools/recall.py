"""The `recall` tool: reads back what is out of view. Nothing that was said or read is ever gone."""

from __future__ import annotations

from ..errors import ToolError
from .base import ToolContext
from .function import tool

_PAGE = 12_000  # characters


@tool(read_only=True)
async def recall(what: str, offset: int = 0, *, context: ToolContext) -> str:
    """Read back what is no longer in view: an old tool result, an earlier message.

    Args:
        what: The code that a shortened result names (such as 3f0a9c21be44), an entry number (such as #12), or words to
            look for in the whole conversation.
        offset: Where to go on in a long text, in characters.
    """
    if context.recall is None:
        raise ToolError("there is no log to recall from here")
    text = await context.recall(what)
    if text is None:
        raise ToolError(f"nothing here answers to {what[:80]!r}. Give a code, an entry number, or words")
    page = text[offset : offset + _PAGE]
    left = len(text) - offset - len(page)
    return page + (f"\n[{left:,} more characters; go on with offset={offset + len(page)}]" if left > 0 else "")
