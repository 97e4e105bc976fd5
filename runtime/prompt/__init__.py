"""The system prompt: five layers to named sections, cached by fingerprint, changed by patches.

`PromptBuilder(workspace).build(channel, tools, profile)` gives the sections that should hold now; `diff(shown,
desired)` what to record and tell when they changed; `render` and `patch_text` the texts for a model.
"""

from .builder import Prompt, PromptBuilder
from .context import runtime_context
from .identity import Profile
from .sections import Changes, Section, Sections, apply, diff, patch_text, render, replay

__all__ = [
    "Changes",
    "Profile",
    "Prompt",
    "PromptBuilder",
    "Section",
    "Sections",
    "apply",
    "diff",
    "patch_text",
    "render",
    "replay",
    "runtime_context",
]
