"""What the tests of tools share: a workspace, a context in it, and a way to run one call."""

from pathlib import Path

import pytest

from runtime.tools.base import Tool, ToolContext

from .tool_calls import Call, run_call


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return ToolContext(workspace, "assistant", "s1", (1, 0))


@pytest.fixture
def call(context: ToolContext) -> Call:
    """Run a tool with arguments in the workspace; `fails=True` wants an error output."""

    async def run(tool: Tool, fails: bool = False, **arguments: object) -> str:
        return await run_call(tool, context, fails, arguments)

    return run
