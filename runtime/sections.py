"""Sections: the named parts of a system prompt, the difference between two states of it, and both as text.

Laws:
- `apply(shown, diff(shown, desired)) == desired`, for any two lists with distinct names, and the changes are
  empty when nothing changed.
- Changes hold only what changed: text for a new or changed section, None for a removed one. When the order
  changed they hold every section, the removed ones as None first and then all anew; a set of changes that names
  all that was shown therefore sets the order too.
- A new section that the order below knows is put at its place, so that memory which comes to life in
  mid-session costs its own size and not that of all that follows it.
- Text is a function of the sections alone: no clock, no id.

A stored order is never worked out anew: a baseline is written whole. So `_ORDER` may change between versions; the
worst outcome is one patch that names all sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Changes: TypeAlias = Mapping[str, str | None]

IDENTITY = "identity"
AGENTS = "AGENTS.md"
GLOBAL_MEMORY = "memory/global"
PROJECT_MEMORY = "memory/project"
SKILL_PREFIX = "skill/"
SKILLS = "skills"
RUNTIME = "runtime"
LEFT_OUT = "left-out"  # says which sections fell away for lack of room

#: Places in the five layers: identity, bootstrap files, memory, skills, runtime; then what was left out of them.
_ORDER = {
    name: place
    for place, name in enumerate(
        (
            IDENTITY,
            AGENTS,
            "SOUL.md",
            "USER.md",
            "TOOLS.md",
            GLOBAL_MEMORY,
            PROJECT_MEMORY,
            SKILL_PREFIX,
            SKILLS,
            RUNTIME,
            LEFT_OUT,
        )
    )
}


@dataclass(frozen=True, slots=True)
class Section:
    """One part. `text` is final, as a model reads it: with its tag (see `tagged`) where there are several parts, and
    such that nothing that came from a file can close it or open another."""

    name: str
    text: str


Sections: TypeAlias = tuple[Section, ...]


def place(name: str) -> tuple[int, str]:
    """Where a section stands among others; names that the order does not know come last, as they arrived.

    Of several AGENTS.md the one in the workspace is the last, and `../../AGENTS.md` comes before `../AGENTS.md`.
    """
    if name.startswith(SKILL_PREFIX):
        return _ORDER[SKILL_PREFIX], name
    if levels := levels_up(name):
        return _ORDER[AGENTS], f"{9_999 - levels:04}"
    if name == AGENTS:
        return _ORDER[AGENTS], "own"
    return _ORDER.get(name, len(_ORDER)), ""


def parent_agents(levels: int) -> str:
    """The name of the section for the AGENTS.md that lies `levels` folders above the workspace."""
    return "../" * levels + AGENTS


def levels_up(name: str) -> int:
    """How many folders above the workspace the AGENTS.md of that name lies; 0 for any other section."""
    levels = name.count("../")
    return levels if levels and name == parent_agents(levels) else 0


def diff(shown: Sections, desired: Sections) -> dict[str, str | None]:
    """What must be told to whoever saw `shown` so that they know `desired`."""
    before = {section.name: section.text for section in shown}
    after = {section.name: section.text for section in desired}
    changes: dict[str, str | None] = {name: None for name in before if name not in after}
    whole = {**changes, **after}
    changes.update({name: text for name, text in after.items() if before.get(name) != text})
    return changes if apply(shown, changes) == desired else whole


def apply(shown: Sections, changes: Changes) -> Sections:
    """`shown` after `changes`, as the laws above say."""
    if changes and all(section.name in changes for section in shown):
        return tuple(Section(name, text) for name, text in changes.items() if text is not None)
    known = {section.name for section in shown}
    result = [
        Section(section.name, text)
        for section in shown
        if (text := changes.get(section.name, section.text)) is not None
    ]
    for name, text in changes.items():
        if name not in known and text is not None:
            after = (index for index, section in enumerate(result) if place(section.name) > place(name))
            result.insert(next(after, len(result)), Section(name, text))
    return tuple(result)


def replay(patches: Iterable[Changes]) -> Sections:
    """The sections after all `patches`, the oldest first; the first one is the snapshot."""
    shown: Sections = ()
    for changes in patches:
        shown = apply(shown, changes)
    return shown


def tagged(section: Section) -> Section:
    """The section with the tag that tells it from its neighbours; `text` must be fenced."""
    return Section(section.name, f'<section name="{section.name}">\n{section.text}\n</section>')


def render(sections: Sections) -> str:
    """The system prompt."""
    return "\n\n".join(section.text for section in sections)


def patch_text(changes: Changes) -> str:
    """What a model is told of `changes`. It describes a state and asks for nothing; empty for no change.

    The wire puts its own tag around it where it has to go into a user's message.
    """
    parts = [text for text in changes.values() if text is not None]
    gone = ", ".join(name for name, text in changes.items() if text is None)
    if parts:
        parts.insert(0, "The system prompt has changed. These sections now read as follows, in place of earlier ones.")
    if gone:
        parts.append(f"These sections are no longer part of the system prompt: {gone}.")
    return "\n\n".join(parts)
