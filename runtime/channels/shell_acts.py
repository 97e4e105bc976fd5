"""Commands that a person runs in the conversation: `!COMMAND`, and `!!COMMAND`, of which no model is told.

They run as the tool exec runs a model's: in the workspace, in the same sandbox or none, as the settings say. Laws: what
was run is in the log, with its output, also when it was stopped; the model sees it before the next message, cut to what
its window can take, and `recall` gives it the whole.
"""

from __future__ import annotations

import json

import anyio

from governors.messages import Text

from ..agent.agent import Agent
from ..errors import ToolError
from ..session.entries import ExtensionRecord, NoteRecord
from ..session.view.wrapping import SHELL
from ..tools.base import ToolContext, ToolOutput, text_output
from ..tools.output import LEAST_LIMIT, OUTPUT_LIMIT, finish
from ..tools.shell import LONGEST
from .commands import ShellLine
from .reducer import Line
from .sanitize import clean
from .seat import Seat, tell

STOPPED = "[stopped by the user before it ended]"
OFF = (
    "Commands are off here, as they are for the model: see tools.exec and tools.disabled in moonwake.toml, and "
    "`moonwake doctor` for what the sandbox needs."
)


async def run_shell(seat: Seat, line: ShellLine) -> None:
    """Run a command, show its output, record both. Raises `SessionError`, and `ToolError` where commands are off."""
    agent = seat.agent
    if agent.equipment.toolset.get("exec") is None:
        raise ToolError(OFF)
    tell(seat, f"$ {line.command}")
    began, output = anyio.current_time(), text_output(STOPPED, is_error=True)
    try:
        output = await _run(agent, line.command)
    finally:
        with anyio.CancelScope(shield=True):
            seat.audience.show(Line("plain", clean(_words(output))))
            await _record(seat, agent, line, output, anyio.current_time() - began)


async def _run(agent: Agent, command: str) -> ToolOutput:
    arguments = json.dumps({"command": command, "timeout": LONGEST})
    context = ToolContext(agent.equipment.workspace, agent.name, agent.session.id, (0, 0))
    return await agent.equipment.toolset.run("exec", arguments, context)


async def _record(seat: Seat, agent: Agent, line: ShellLine, output: ToolOutput, seconds: float) -> None:
    data = {"command": line.command, "seconds": round(seconds, 3)}
    if line.private:
        await agent.session.append(NoteRecord(text=f"$ {line.command}\n{_words(output)}", data={SHELL: data}))
        return
    seen = finish(output, shown_limit(agent.model.info.window))
    entry = await agent.beside.record(ExtensionRecord(name=SHELL, data=data, content=seen.content, whole=seen.whole))
    if entry is None:
        tell(seat, "A turn is running: the model sees this when it is over, with the next message.")


def shown_limit(window: int) -> int:
    """Characters of an output that a model with this window (tokens) sees: an eighth of it, or so."""
    return max(LEAST_LIMIT, min(OUTPUT_LIMIT, window // 2))


def _words(output: ToolOutput) -> str:
    return "\n\n".join(part.text for part in output.content if isinstance(part, Text))
