"""The first layer: one template, a face for each channel, and a very short one for the tiny profile.

The template comes with the program and is not looked for in a workspace: who the assistant is there, SOUL.md says.
An embedder may bring a template of their own; it is rendered in a sandbox, with the variables `channel`, `profile` and
`workspace` and no others. Jinja is imported on first use. Blocks on the first call.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..workspace import TEMPLATES, shipped_path
from .fence import fence_line

if TYPE_CHECKING:
    from jinja2 import Template

Profile: TypeAlias = Literal["full", "tiny"]

#: Stands in when a template fails before it was ever shown.
PLAIN_IDENTITY = "You are Moonwake, an assistant that works with people and for them. Be warm, direct and exact."


class TemplateFailed(ValueError):
    """The template is wrong; the text says where, for a person."""


@cache
def shipped_template(name: str) -> str:
    """The text of a template as it comes with this version."""
    return (shipped_path(TEMPLATES) / name).read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def _compiled(source: str) -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined).from_string(source)


@lru_cache(maxsize=64)
def identity_text(source: str, channel: str, profile: Profile, workspace: str) -> str:
    """The template `source` as `channel` shows it; a channel it does not know gets the common part.

    Raises `TemplateFailed`.
    """
    from jinja2 import TemplateError, TemplateSyntaxError

    try:
        text = _compiled(source).render(channel=channel, profile=profile, workspace=fence_line(workspace, 1_000))
    except TemplateSyntaxError as error:
        raise TemplateFailed(f"line {error.lineno}: {error.message}") from error
    except (TemplateError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise TemplateFailed(f"{type(error).__name__}: {error}") from error  # what an expression in it may raise
    if not text.strip():
        raise TemplateFailed("it renders to nothing")
    return text.strip()


def shown_path(folder: Path) -> str:
    """The folder as a person would write it; the home folder, which mostly holds a user's name, is `~`."""
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except (ValueError, RuntimeError):  # not below it, or there is none
        return str(folder)
