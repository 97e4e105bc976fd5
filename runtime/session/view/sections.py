"""The system prompt and the tools as the log knows them: a state that `system` entries patch.

How tools reach a model hangs on the wire (`Wire.inline_tools`). Where they can be defined inside the conversation, the
array stays that of the baseline, and each patch brings what is new. Elsewhere the array grows at its end, which moves
the prefix, as does a definition that changed: it takes the place of the old one. A removal is told at its place and
moves nothing on either; the array is cleaned at the next head.

A patch that is sent at its place in the conversation is worded by what it holds alone; it describes the state that
changed and gives no orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from governors.messages import SystemPatch, ToolChange, ToolSpec

from ...sections import Section, Sections, apply, patch_text, render
from ..entries import Baseline, SystemRecord


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


def front(baseline: SystemState, state: SystemState, *, inline: bool, folds: bool) -> tuple[str, tuple[ToolSpec, ...]]:
    """The system prompt and the array of tools that lead a request, `state` being what holds at its end.

    `inline`: patches bring their tools where they stand. `folds`: no patch can stand in the conversation, so that what
    holds now is told at the front, and each change moves all that follows.
    """
    if folds:
        return state.text, _sorted(state.tools)
    return baseline.text, baseline.offered if inline else state.offered


def state_of(baseline: Baseline) -> SystemState:
    return SystemState(sections_of(baseline.sections), baseline.tools)


def sections_of(texts: Mapping[str, str]) -> Sections:
    return tuple(Section(name, text) for name, text in texts.items())


def tool_change(state: SystemState, record: SystemRecord) -> ToolChange:
    """What `record` changes of the tools for a model that knows `state`, in the order of the names.

    A tool that comes back as it was defined before needs no definition, whatever was told of it in between.
    """
    defined = {tool.name: tool for tool in state.offered}
    on = {tool.name: tool for tool in state.tools}
    given = _sorted({tool.name: tool for tool in record.tools_added}.values())
    return ToolChange(
        added=tuple(tool for tool in given if tool.name not in defined),
        changed=tuple(tool for tool in given if tool.name in defined and not _reads_alike(defined[tool.name], tool)),
        back=tuple(
            tool.name
            for tool in given
            if tool.name not in on and tool.name in defined and _reads_alike(defined[tool.name], tool)
        ),
        removed=tuple(sorted(name for name in {*record.tools_removed} if name in on)),
    )


def _reads_alike(one: ToolSpec, other: ToolSpec) -> bool:
    """Whether a model is told the same of both; what else a tool says of itself is for the runtime."""
    return (one.name, one.description, one.parameters) == (other.name, other.description, other.parameters)


def news(record: SystemRecord) -> str:
    """What a `system` entry says to a model when it stands inside the conversation: in words that hang on nothing
    else."""
    lines = [patch_text(record.sections)] if record.sections else []
    names = ToolChange(back=tuple(tool.name for tool in record.tools_added), removed=record.tools_removed)
    return "\n\n".join([*lines, names.text] if names else lines)


def patch_of(state: SystemState, record: SystemRecord, origin: int) -> SystemPatch:
    """The `system` entry `origin` as it stands inside the conversation, for a model that knows `state`."""
    return SystemPatch(news(record), origin=origin, tools=tool_change(state, record) or None)
