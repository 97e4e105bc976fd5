"""Moonwake's runtime: agents that hold long conversations, with a log that is the truth.

    async with Runtime.open("workspace") as runtime:
        async for event in runtime.agent("assistant").send("hello"):
            print(event)

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .agent.compacting import Receipt
    from .app import Runtime
    from .conversation import Conversation
    from .errors import MoonwakeError
    from .hooks.contract import Hook, HookContext, Refused
    from .providers.base import ChosenModel
    from .providers.chaos import Chaos
    from .providers.scripted import Call, Reply, Scripted
    from .tools.base import Tool, ToolContext, ToolOutput
    from .tools.function import tool

_HOMES = {
    "Call": ".providers.scripted",
    "Chaos": ".providers.chaos",
    "ChosenModel": ".providers.base",
    "Conversation": ".conversation",
    "Hook": ".hooks.contract",
    "HookContext": ".hooks.contract",
    "MoonwakeError": ".errors",
    "Receipt": ".agent.compacting",
    "Refused": ".hooks.contract",
    "Reply": ".providers.scripted",
    "Runtime": ".app",
    "Scripted": ".providers.scripted",
    "Tool": ".tools.base",
    "ToolContext": ".tools.base",
    "ToolOutput": ".tools.base",
    "tool": ".tools.function",
}

__all__ = [
    "Call",
    "Chaos",
    "ChosenModel",
    "Conversation",
    "Hook",
    "HookContext",
    "MoonwakeError",
    "Receipt",
    "Refused",
    "Reply",
    "Runtime",
    "Scripted",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "__version__",
    "tool",
]


logging.getLogger(__name__).addHandler(logging.NullHandler())  # who embeds us decides where our log goes


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
