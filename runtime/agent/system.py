"""Keeps the system prompt in the log equal to the files and tools it is made of.

What a model was told stands; a change is an entry that holds only what changed. The first entry is the baseline. What
stays of a section that cannot be made any more, and what falls away when the model has little room, is decided here
from what the log shows (`prompt.pressure`), so that a resumed session decides the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import anyio.to_thread

from governors.messages import ToolSpec

from ..prompt.pressure import TOKEN_BYTES, Told, keep_shown, room_of, shed
from ..providers.base import ChosenModel
from ..sections import LEFT_OUT, Sections, diff
from ..session.entries import SettingRecord, SystemRecord
from ..session.session import Session
from ..session.view.projection import Projection
from ..session.view.sections import SystemState
from .equipment import Equipment
from .folding import fold_change

Shape: TypeAlias = Callable[[Sections], Awaitable[tuple[Sections, str | None]]]


async def refresh_system(
    session: Session, equipment: Equipment, model: ChosenModel, seen: Projection, window: int, shape: Shape
) -> tuple[str, ...]:
    """Record what changed since the last request; returns warnings about files that could not be used. `seen` is what
    the log says. `window` is the model's, as far as this session knows it (tokens). `shape` gives the sections
    as hooks want them, and who those are."""
    state = seen.state if seen.told else None
    specs = equipment.toolset.specs if model.info.abilities.tools else ()
    names = [spec.name for spec in specs]
    prompt = await anyio.to_thread.run_sync(equipment.prompt.build, equipment.channel, names, model.info.profile)
    shown = () if state is None else state.sections
    sections, warnings = prompt.sections, prompt.warnings
    room = room_of(window, equipment.prompt_share)
    if model.info.profile != "tiny":
        sections, kept = keep_shown(sections, prompt.failed, shown)
        warnings += tuple(f"What was last shown of {name} stays in the prompt." for name in kept)
        told = shed(sections, room, shown, names)
        sections = told.sections
        warnings += shedding(told, shown, model.name, window, room)
    sections, cause = await shape(sections)
    records: list[SystemRecord | SettingRecord] = [
        replace(record, cause=cause) for record in changes(state, sections, specs)
    ]
    if state is not None:
        after = state.patched(records[0]) if records and isinstance(records[0], SystemRecord) else state
        fold = fold_change(model.info, seen.settings, room, seen.baseline, state, after)
        records += [fold] if fold is not None else []
    if records:
        await session.append(*records)
    return warnings


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


def shedding(told: Told, shown: Sections, model: str, window: int, room: int) -> tuple[str, ...]:
    """What a person is told when other sections fall away than those that had fallen away in `shown`."""
    note = {section.name: section.text for section in told.sections}.get(LEFT_OUT)
    if note is None or note == {section.name: section.text for section in shown}.get(LEFT_OUT):
        return ()
    return (
        f"The prompt would take about {told.size // TOKEN_BYTES:,} tokens, and of the window of {model} ({window:,}) "
        f"it may take {room:,}. Left out: {', '.join(told.left_out)}. Shorten the files that it is "
        "made of, choose a model with a larger window, or raise prompt.share in moonwake.toml.",
    )


async def keep_images(session: Session, settings: Mapping[str, object], *, shown: bool) -> None:
    """Record what the config says of pictures where no person has said otherwise in this session: a request follows
    from the log alone."""
    held = settings.get("images")
    if held is None and not shown:
        await session.append(SettingRecord(name="images", value="config"))
    elif held == "config" and shown:
        await session.append(SettingRecord(name="images", value=None))
