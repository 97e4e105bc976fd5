"""Keeps the system prompt in the log equal to the files and tools it is made of.

What a model was told stands; a change is an entry that holds only what changed. The first entry is the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread

from governors.messages import ToolSpec

from ..providers.base import ChosenModel
from ..sections import Sections, diff
from ..session.entries import SystemRecord
from ..session.sections import SystemState
from ..session.session import Session
from .equipment import Equipment


async def refresh_system(
    session: Session, equipment: Equipment, model: ChosenModel, state: SystemState | None
) -> tuple[str, ...]:
    """Record what changed since the last request; returns warnings about files that could not be used. `state` is what
    the log says; None: nothing yet."""
    specs = equipment.toolset.specs if model.info.abilities.tools else ()
    names = [spec.name for spec in specs]
    prompt = await anyio.to_thread.run_sync(equipment.prompt.build, equipment.channel, names, model.info.profile)
    records = changes(state, prompt.sections, specs)
    if records:
        await session.append(*records)
    return prompt.warnings


def changes(state: SystemState | None, sections: Sections, tools: Sequence[ToolSpec]) -> list[SystemRecord]:
    """The entry after which `state` (None: nothing yet) holds exactly `sections`, in order, and `tools`; none when it
    does so already."""
    shown = state or SystemState()
    known = {tool.name: tool for tool in shown.tools}
    added = tuple(tool for tool in tools if known.get(tool.name) != tool)
    removed = tuple(name for name in known if name not in {tool.name for tool in tools})
    changed = diff(shown.sections, sections)
    if state is not None and not changed and not added and not removed:
        return []
    return [SystemRecord(sections=changed, tools_added=added, tools_removed=removed)]
