"""A summary has parts, and counts only with all of them. Pure.

The model is asked for them at the end of the conversation that it knows, so that the request extends the warm prefix.
Laws: a summary is taken as the model wrote it, part by part, in a fixed order; one that lacks a part, that is cut off,
or that saves nothing is refused with the reason; the user's last words are put in by us, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from governors.messages import AssistantMessage, StopReason


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a summary: its heading, and what the model is told of it."""

    heading: str
    asks: str


PARTS = (
    Part("Goal", "what the user wants in the end, and the task at hand with the user's last instruction word for word"),
    Part("Instructions", "standing instructions and preferences of the user, word for word"),
    Part("Decisions", "what was decided, each with its reason"),
    Part("State", "what is done, what is in progress, which calls or answers are still awaited"),
    Part("Files", "files and other artefacts that were read, made or changed, with their paths and what is in them"),
    Part("Facts", "names, numbers, identifiers, addresses, dates: exact, one a line"),
    Part("Questions", "what is still open or was asked and not answered"),
)

_ASK = """\
The conversation is about to be shortened: what stands above goes out of your view, and your summary takes its place. \
Do not go on with the task, and call no tool. Write the summary now, for yourself, so that you can go on without a \
break. Copy names, numbers, paths and quoted words exactly; leave out what is finished and matters no more. Write \
these parts, each under its heading, and "none" where there is nothing to say:
"""
_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*|\*\*)?(?:\d+[.)][ \t]*)?([A-Za-z][A-Za-z ]*?)(?:\*\*)?[ \t]*:?[ \t]*(?:\*\*)?[ \t]*$"
)
_BARE = re.compile(r"^[ \t]*#{1,6}[ \t]*$")
_UNFINISHED: dict[StopReason, str] = {
    "length": "it reached the model's output limit before its end",
    "tool_use": "the model called a tool instead of writing it",
    "refused": "the model refused to write it",
    "error": "it ended in an error",
    "aborted": "it broke off",
    "deferred": "the provider put it off",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that counts; `text` is what takes the place of what was folded."""

    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a summary does not count, for a person."""

    why: str


def ask(focus: str | None = None, rules: Sequence[str] = (), words: int | None = None) -> str:
    """What the model is asked. `focus` is what the user wants to be kept above all; `rules` name what is told anew in
    any case (the sections of the system prompt), so that it need not be in the summary; it may have `words` words."""
    lines = [_ASK]
    lines += [f"## {part.heading}\n({part.asks})" for part in PARTS]
    if words is not None:
        lines.append(f"\nUse at most {words} words in all.")
    if rules:
        lines.append(f"\nThese are told anew, leave them out: {', '.join(rules)}.")
    if focus:
        lines.append(f"\nThe user asks you to keep above all: {focus.strip()}")
    return "\n".join(lines)


def take(reply: AssistantMessage, *, replaced: int, size: int, last_words: str = "") -> Summary | Refused:
    """The summary in `reply`. `replaced` are the tokens that it would replace, `size` those that it has; `last_words`
    are what the user said last of what goes out of view (empty: they stay in view)."""
    if reply.stop != "stop":
        return Refused(_UNFINISHED[reply.stop])
    if reply.calls:
        return Refused(_UNFINISHED["tool_use"])
    text = reply.text.strip()
    if not text:
        return Refused("the model wrote nothing")
    found = parts_of(text)
    lacking = [part.heading for part in PARTS if not found.get(part.heading)]
    if lacking:
        return Refused(f"it lacks {_listed(lacking)}")
    if size >= replaced:
        return Refused(f"it saves nothing: {size:,} tokens for the {replaced:,} that it would replace")
    parts = [f"## {part.heading}\n{found[part.heading]}" for part in PARTS]
    if last_words and last_words.strip() not in text:
        parts.insert(1, f"The user's last words there: {last_words.strip()}")
    return Summary("\n\n".join(parts))


def parts_of(text: str) -> dict[str, str]:
    """The parts of a summary by their heading, as far as they are there."""
    names = {part.heading.casefold(): part.heading for part in PARTS}
    found: dict[str, list[str]] = {}
    here: list[str] | None = None
    for line in text.splitlines():
        heading = _HEADING.match(line)
        name = names.get(heading.group(1).strip().casefold()) if heading else None
        if name is not None:
            here = found.setdefault(name, [])
        elif here is not None and not _BARE.match(line):
            here.append(line.rstrip())
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


def _listed(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
