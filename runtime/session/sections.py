"""The system prompt and the tools as the log knows them: a state that `system` entries patch.

A patch that is sent at its place in the conversation is worded by what it holds alone; it describes the state that
changed and gives no orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from governors.messages import ToolSpec

from .entries import SystemRecord


@dataclass(frozen=True, slots=True)
class SystemState:
    """Named sections in order, and the tools that are on.

    `offered` is the array that requests carry: it only grows until the next head, so that removing a tool does
    not move the prefix (a patch tells the model instead).
    """

    sections: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    offered: tuple[ToolSpec, ...] = ()

    def __post_init__(self) -> None:
        if not self.offered and self.tools:
            object.__setattr__(self, "offered", _sorted(self.tools))

    @property
    def text(self) -> str:
        """The system prompt."""
        return "\n\n".join(text for text in self.sections.values() if text)

    def patched(self, record: SystemRecord) -> SystemState:
        """The state after `record`. What changes keeps its place in the text and in `offered`, new things come last."""
        sections = dict(self.sections)
        for name, text in record.sections.items():
            if text is None:
                sections.pop(name, None)
            else:
                sections[name] = text
        added = {tool.name: tool for tool in record.tools_added}
        kept = (tool for tool in self.tools if tool.name not in record.tools_removed and tool.name not in added)
        offered = tuple(added.get(tool.name, tool) for tool in self.offered)
        known = {tool.name for tool in self.offered}
        new = _sorted(tool for tool in added.values() if tool.name not in known)
        return SystemState(sections, (*kept, *added.values()), (*offered, *new))


def _sorted(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(sorted(tools, key=lambda tool: tool.name))


def patch_text(record: SystemRecord) -> str:
    """What a `system` entry says to a model when it stands inside the conversation."""
    lines = ["The system prompt has changed since the conversation began."]
    for name, text in record.sections.items():
        if text is None:
            lines.append(f"Section {name} is no longer part of it.")
        else:
            lines.append(f"Section {name} now reads:\n{text}")
    if record.tools_added:
        lines.append("Tools that are now available: " + ", ".join(tool.name for tool in record.tools_added) + ".")
    if record.tools_removed:
        lines.append("Tools that are no longer available: " + ", ".join(record.tools_removed) + ".")
    return "\n\n".join(lines)
