"""How the tests of tools run a call and read what came of it."""

import json
from collections.abc import Awaitable, Callable

from governors.messages import Text
from runtime.tools.base import Tool, ToolContext, ToolOutput
from runtime.tools.toolset import Toolset

Call = Callable[..., Awaitable[str]]


def text_of(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


async def run_call(tool: Tool, context: ToolContext, fails: bool, arguments: dict[str, object]) -> str:
    """The text of the output; `fails` says whether an error output is wanted."""
    output = await Toolset([tool]).run(tool.spec.name, json.dumps(arguments), context)
    assert output.is_error is fails, text_of(output)
    return text_of(output)
