"""The tools that every agent has unless its user turns them off."""

from __future__ import annotations

from typing import Literal

from .base import Tool
from .files import edit_file, list_dir, read_file, write_file
from .grep import make_grep
from .recall import recall
from .shell import make_exec


def standard_tools(
    exec_mode: Literal["sandbox", "unconfined", "off"] = "sandbox", network: bool = False
) -> tuple[Tool, ...]:
    """File tools, recall and, unless `off`, exec. Ask `shell.sandbox_problem()` first whether
    mode `sandbox` can work."""
    tools: tuple[Tool, ...] = (edit_file, make_grep(), list_dir, read_file, recall, write_file)
    return tools if exec_mode == "off" else (*tools, make_exec(exec_mode, network))
