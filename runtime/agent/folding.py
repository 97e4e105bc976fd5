"""When a model is told the system prompt as it is now, at the front, instead of the old one and patches behind it.

Patches keep the prefix, but what they take away stays in front of them. On a model whose room the old front exceeds, or
that follows a short prompt only, that would leave nothing for the conversation, or no request at all. So from then on
the front is written as it is now, as for models that take no patches: a setting in the log says so for this model, on
this branch, until a head has folded everything anyway. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..prompt.pressure import takes
from ..providers.base import ModelInfo
from ..session.entries import SettingRecord
from ..session.view.sections import SystemState


def fold_setting(info: ModelInfo) -> str:
    """The name of the setting that says that the front is folded for this model."""
    return f"fold:{info.provider}/{info.id}"


def as_told(info: ModelInfo, settings: Mapping[str, Any]) -> ModelInfo:
    """`info` as requests are made for it under `settings`: pictures are left out, and
    documents are their text, where a person or the config says so (`images`)."""
    if settings.get("images") not in (None, "on"):
        info = replace(info, abilities=replace(info.abilities, images=False, documents=False))
    if info.abilities.folds_patches or settings.get(fold_setting(info)) is not True:
        return info
    return replace(info, abilities=replace(info.abilities, folds_patches=True))


def fold_change(
    info: ModelInfo,
    settings: Mapping[str, Any],
    room: int,
    front: SystemState,
    before: SystemState,
    after: SystemState,
) -> SettingRecord | None:
    """The setting that has to be recorded, if one has. `room` is what sections may take (tokens), `front` what leads
    the conversation, `before` what held, `after` what holds from now on."""
    held = settings.get(fold_setting(info)) is True
    needed = front.sections != after.sections and (info.profile == "tiny" or takes(front.sections) > room)
    if needed and not held and not info.abilities.folds_patches:
        return SettingRecord(name=fold_setting(info), value=True)
    same = front.sections == before.sections and front.tools == before.tools == before.offered
    if held and not needed and same:  # both ways give the same bytes, so the prefix stays
        return SettingRecord(name=fold_setting(info), value=None)
    return None
