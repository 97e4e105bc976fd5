"""What a cut keeps of the patches that it would take away: all of them, as one.

A patch says what holds from its place on. Nothing that is left after a cut says it again: without it the model goes
back to an older system prompt, and calls of a tool that it brought stand without a definition. So the patches before
a cut lead what is kept, as one patch. Laws: the words are all of the words, in their order; the tools that are
defined and that are on behind it are the same as behind its parts; carrying what was carried before, with more, gives
what carrying all at once gives.
"""

from __future__ import annotations

from collections.abc import Sequence

from .messages import SystemPatch, ToolChange, ToolSpec


def carried(patches: Sequence[SystemPatch]) -> SystemPatch | None:
    """One patch for all of `patches`; None for none. One alone is given back as it is."""
    if len(patches) <= 1:
        return patches[0] if patches else None
    text = "\n\n".join(patch.text for patch in patches if patch.text)
    change = _together([patch.tools for patch in patches if patch.tools])
    return SystemPatch(text, origin=patches[-1].origin, tools=change or None)


def _together(changes: Sequence[ToolChange]) -> ToolChange:
    """One change for all. A tool that came and went is defined and removed, as it may come back without definition."""
    added: dict[str, ToolSpec] = {}
    changed: dict[str, ToolSpec] = {}
    on: dict[str, bool] = {}  # of what was defined before all of them and not changed: whether it is offered
    gone: dict[str, None] = {}
    for change in changes:
        for tool in change.added:
            added[tool.name] = tool
        for tool in change.changed:
            (added if tool.name in added else changed)[tool.name] = tool
        for name in change.offered:
            gone.pop(name, None)
        for name in change.removed:
            gone[name] = None
        on.update(dict.fromkeys(change.back, True) | dict.fromkeys(change.removed, False))
    back = sorted(name for name, offered in on.items() if offered and name not in added and name not in changed)
    return ToolChange(tuple(added.values()), tuple(changed.values()), tuple(back), tuple(sorted(gone)))
