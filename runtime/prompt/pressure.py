"""What of a prompt is shown when a model has little room, and what stays of a section that could not be made. Pure.

Laws:
- Sections fall away from the back, layer by layer: runtime, skills, memory, then the bootstrap files; of several
  AGENTS.md the nearest is the last to go, and the identity always stays. What is left out is named in a section of its
  own.
- What is shown follows from the sections, the model's window, the share and what was shown before. Shown again, it is
  the same: nothing flaps from turn to turn. A section that fell away comes back once the prompt with it would take
  at most `CALM` of the room, so that a file that grows and shrinks by a few bytes does not bring it and take it.
- Size is measured in bytes, never by a tokenizer: whether a vocabulary is loaded yet must not change a prompt.
- A section that could not be made keeps the text that was shown last, at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..sections import (
    AGENTS,
    IDENTITY,
    LEFT_OUT,
    PROJECT_MEMORY,
    SKILL_PREFIX,
    SKILLS,
    Section,
    Sections,
    levels_up,
    place,
    tagged,
)
from ..workspace import MEMORY_FILE

SHARE = 0.25  # of a window, for the prompt's sections; tools and conversation need the rest
LEAST = 2_500  # tokens, however small the share is: identity, guidance and a short AGENTS.md
MOST_OF_SMALL = 0.5  # of a window, for the least
CALM = 0.9
TOKEN_BYTES = 3  # UTF-8: English has about four bytes a token, code and other scripts three or fewer


@dataclass(frozen=True, slots=True)
class Told:
    """The sections that are shown; the names that fell away; how many bytes all would have taken."""

    sections: Sections
    left_out: tuple[str, ...] = ()
    size: int = 0


def room_of(window: int, share: float | None = None) -> int:
    """How many tokens the sections may take of a `window` (tokens); `share` is the user's setting, 0 to 1."""
    if share is not None:
        return int(window * share)
    return max(int(window * SHARE), min(LEAST, int(window * MOST_OF_SMALL)))


def keep_shown(desired: Sections, failed: Collection[str], shown: Sections) -> tuple[Sections, tuple[str, ...]]:
    """`desired` with what was shown last of the sections in `failed`, and their names. `SKILL_PREFIX` stands for all
    skills that are shown in full."""
    if not failed:
        return desired, ()
    kept = {section.name: section for section in shown if _names(failed, section.name)}
    if not kept:
        return desired, ()
    names = tuple(kept)
    merged = [kept.pop(section.name, section) for section in desired]
    for section in kept.values():
        after = (index for index, other in enumerate(merged) if place(other.name) > place(section.name))
        merged.insert(next(after, len(merged)), section)
    return tuple(merged), names


def _names(failed: Collection[str], name: str) -> bool:
    return name in failed or (SKILL_PREFIX in failed and name.startswith(SKILL_PREFIX))


def shed(desired: Sections, room: int, shown: Sections, tools: Collection[str]) -> Told:
    """`desired` such that it takes at most `room` tokens if it can. `shown` is what was shown before, `tools` are the
    names of those that are on."""
    size = _size(desired)
    calm = int(CALM * room * TOKEN_BYTES)
    if size <= calm:
        return Told(desired, size=size)
    falling = sorted((section.name for section in desired if section.name != IDENTITY), key=_last_to_go, reverse=True)
    before = {section.name for section in shown}
    earlier = set(falling) - before if LEFT_OUT in before else set()

    def cut(count: int) -> Sections:
        return _without(desired, falling[:count], tools)

    must = _fewest(cut, len(falling), room * TOKEN_BYTES)
    restful = _fewest(cut, len(falling), calm)
    stay = (index + 1 for index in range(restful - 1, must - 1, -1) if falling[index] in earlier)
    count = next(stay, must)
    gone = set(falling[:count])
    return Told(cut(count), tuple(section.name for section in desired if section.name in gone), size)


def _fewest(cut: Callable[[int], Sections], most: int, limit: int) -> int:
    """How many sections have to go so that the rest takes at most `limit` bytes; all of `most` if it never does."""
    return next((count for count in range(most) if _size(cut(count)) <= limit), most)


def _last_to_go(name: str) -> tuple[int, int, str]:
    """Ranks sections by how long they stay: the smallest stays longest."""
    rank, detail = place(name)
    if name == AGENTS or levels_up(name):
        return rank, levels_up(name), ""
    return rank, 0, detail


def _without(desired: Sections, gone: Collection[str], tools: Collection[str]) -> Sections:
    if not gone:
        return desired
    left = [section.name for section in desired if section.name in gone]
    rest = tuple(section for section in desired if section.name not in gone)
    return (*rest, tagged(Section(LEFT_OUT, _note(left, tools))))


def _note(left: list[str], tools: Collection[str]) -> str:
    lines = [f"For lack of room in this model's window these sections of the prompt are left out: {', '.join(left)}."]
    files = [MEMORY_FILE if name == PROJECT_MEMORY else name for name in left if _is_file_here(name)]
    if files and "read_file" in tools:
        lines.append(f"If you need one of them: read_file opens {', '.join(files)}.")
    if "skill" in tools and any(name == SKILLS or name.startswith(SKILL_PREFIX) for name in left):
        lines.append("The skill tool still reads a skill by its name.")
    return "\n".join(lines)


def _is_file_here(name: str) -> bool:
    return name == PROJECT_MEMORY or (name.endswith(".md") and not levels_up(name))


def takes(sections: Sections) -> int:
    """About how many tokens the sections take, by the measure that sheds them."""
    return -(-_size(sections) // TOKEN_BYTES)


def _size(sections: Sections) -> int:
    return sum(len(section.text.encode()) + 2 for section in sections)
