"""The tool exec: runs a shell command in the workspace.

In mode `sandbox` the kernel confines it (see `sandbox`); in mode `unconfined` it runs with the user's rights, and
only its environment is reduced. The text of a command is not scanned in either mode: variables, substitution and
programs that write programs make any such scan a false promise, so what is enforced is enforced outside the string.

When the command ends, is cancelled or runs out of time, whatever it started is ended with it: in the sandbox all
of it (the process namespace dies), unconfined all that stayed in its process group.
"""

from __future__ import annotations

import codecs
import os
import shutil
import signal
from pathlib import Path
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import Field

from ..errors import ToolError
from .base import Tool, ToolContext, ToolOutput, text_output
from .function import tool
from .process import Finished, run_process
from .sandbox import reduced_environment, sandbox_problem, sandboxed

__all__ = ["ExecMode", "make_exec", "sandbox_problem"]

ExecMode = Literal["sandbox", "unconfined"]

#: Bytes of output that are kept at each end; together below the limit of a tool's output.
KEPT = 18_000
LONGEST = 600.0  # seconds


def make_exec(mode: ExecMode, network: bool = False) -> Tool:
    """The exec tool. `network` counts in mode `sandbox` only; unconfined commands have whatever the user has."""
    reach = "with" if network or mode == "unconfined" else "without"
    description = (
        f"Run a bash command in the workspace, {reach} network. Gives its output (stdout and stderr) and exit code. "
        "Each call starts anew in the workspace folder; what it leaves running is ended."
    )

    def prepare(folder: Path, command: str) -> tuple[str, list[str]]:
        workspace = os.path.realpath(folder)
        argv = ["bash" if shutil.which("bash") else "sh", "-c", command]
        return workspace, sandboxed(argv, workspace, network=network) if mode == "sandbox" else argv

    @tool(name="exec", description=description, bulky=True, timeout=None)
    async def execute(
        command: Annotated[str, Field(description="What bash runs.")],
        context: ToolContext,
        timeout: Annotated[float, Field(gt=0, le=LONGEST, description="Seconds until it is ended.")] = 60,  # noqa: ASYNC109 - the model sets it
    ) -> ToolOutput:
        _check(command)
        workspace, argv = await anyio.to_thread.run_sync(prepare, context.workspace, command)
        try:
            finished = await run_process(
                argv,
                folder=workspace,
                environment=reduced_environment(os.environ, workspace),
                timeout=timeout,
                head=KEPT,
                tail=KEPT,
            )
        except OSError as error:
            raise ToolError(f"the command could not be started: {error}") from None
        return shown(finished, timeout)

    return execute


def _check(command: str) -> None:
    if "\0" in command:
        raise ToolError("the command holds a NUL character, which no command can; nothing was run")
    try:
        size = len(os.fsencode(command))
    except UnicodeEncodeError:
        raise ToolError("the command holds a lone surrogate, which is not a character; nothing was run") from None
    if size > 120_000:  # the kernel takes 128 KiB for one argument
        raise ToolError(f"the command is {size:,} bytes long, at most 120,000 can be run; write it to a file first")


def shown(finished: Finished, timeout: float) -> ToolOutput:
    """What the model reads of a finished command: its output and, last, how it ended."""
    parts = [text] if (text := output_text(finished)) else []
    if finished.timed_out:
        parts.append(f"[timed out after {timeout:g} s; the command was ended]")
    elif finished.code is None:
        parts.append("[the command was killed, but the kernel has not let it end yet]")
    else:
        parts.append(f"[exit code {finished.code}]" if finished.code >= 0 else f"[ended by {_signal(-finished.code)}]")
    if finished.held:
        parts.append("[a process it started is still running and holds its output]")
    return text_output("\n".join(parts), is_error=finished.timed_out or finished.code != 0)


def output_text(finished: Finished) -> str:
    """The output as text; a line says what is missing in the middle. Cuts fall between characters."""
    missing = finished.total - len(finished.head) - len(finished.tail)
    if missing <= 0:
        return (finished.head + finished.tail).decode("utf-8", "replace").removesuffix("\n")
    head = codecs.getincrementaldecoder("utf-8")("replace").decode(finished.head, final=False)
    tail = finished.tail
    # At most three bytes belong to a character that began in what was cut.
    start = next(
        (place for place in range(min(4, len(tail))) if tail[place] & 0xC0 != 0x80), len(tail) if len(tail) < 4 else 0
    )
    marker = f"\n[… {missing:,} of {finished.total:,} bytes cut here …]\n"
    return (head + marker + tail[start:].decode("utf-8", "replace")).removesuffix("\n")


def _signal(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
