"""The first layer: one template, a face for each channel, and a very short one for the tiny profile.

The template comes with the program and is not looked for in a workspace: who the assistant is there, SOUL.md says.
Jinja is imported on first use. Blocks on the first call.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..workspace import IDENTITY_TEMPLATE, TEMPLATES, shipped_path
from .fence import fence_line

if TYPE_CHECKING:
    from jinja2 import Template

Profile: TypeAlias = Literal["full", "tiny"]


@cache
def shipped_template(name: str) -> str:
    """The text of a template as it comes with this version."""
    return (shipped_path(TEMPLATES) / name).read_text(encoding="utf-8")


@cache
def _identity() -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    return environment.from_string(shipped_template(IDENTITY_TEMPLATE))


def identity_text(channel: str, profile: Profile, workspace: str) -> str:
    """The identity as `channel` shows it; a channel the template does not know gets the common part."""
    text = _identity().render(channel=channel, profile=profile, workspace=fence_line(workspace, 1_000))
    return text.strip()


def shown_path(folder: Path) -> str:
    """The folder as a person would write it; the home folder, which mostly holds a user's name, is `~`."""
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except (ValueError, RuntimeError):  # not below it, or there is none
        return str(folder)
