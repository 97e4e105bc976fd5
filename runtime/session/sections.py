"""The system prompt and the tools as the log knows them: a state that `system` entries patch.

A patch that is sent at its place in the conversation is worded by what it holds alone; it describes the state that
changed and gives no orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from governors.messages import ToolSpec

from ..sections import Section, Sections, apply, patch_text, render
from .entries import Baseline, SystemRecord


@dataclass(frozen=True, slots=True)
class SystemState:
    """Named sections in order, and the tools that are on.

    `offered` is the array that requests carry: it only grows until the next head, so that removing a tool does
    not move the prefix (a patch tells the model instead).
    """

    sections: Sections = ()
    tools: tuple[ToolSpec, ...] = ()
    offered: tuple[ToolSpec, ...] = ()

    def __post_init__(self) -> None:
        if not self.offered and self.tools:
            object.__setattr__(self, "offered", _sorted(self.tools))

    @property
    def text(self) -> str:
        """The system prompt."""
        return render(self.sections)

    @property
    def baseline(self) -> Baseline:
        """The whole state, as a head keeps it."""
        return Baseline(sections={section.name: section.text for section in self.sections}, tools=self.tools)

    def patched(self, record: SystemRecord) -> SystemState:
        """The state after `record`. What changes keeps its place; new tools come last in `offered`."""
        added = {tool.name: tool for tool in record.tools_added}
        kept = (tool for tool in self.tools if tool.name not in record.tools_removed and tool.name not in added)
        offered = tuple(added.get(tool.name, tool) for tool in self.offered)
        known = {tool.name for tool in self.offered}
        new = _sorted(tool for tool in added.values() if tool.name not in known)
        return SystemState(apply(self.sections, record.sections), (*kept, *added.values()), (*offered, *new))


def _sorted(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(sorted(tools, key=lambda tool: tool.name))


def state_of(baseline: Baseline) -> SystemState:
    return SystemState(sections_of(baseline.sections), baseline.tools)


def sections_of(texts: Mapping[str, str]) -> Sections:
    return tuple(Section(name, text) for name, text in texts.items())


def news(record: SystemRecord) -> str:
    """What a `system` entry says to a model when it stands inside the conversation."""
    lines = [patch_text(record.sections)] if record.sections else []
    if record.tools_added:
        lines.append("Tools that are now available: " + ", ".join(tool.name for tool in record.tools_added) + ".")
    if record.tools_removed:
        lines.append("Tools that are no longer available: " + ", ".join(record.tools_removed) + ".")
    return "\n\n".join(lines)
