"""What can be wrong with a skill, in one wording for those who load it and those who check it. Pure.

Loading adds what it does about a fault after a semicolon; checking names the line of each.
"""

from __future__ import annotations

MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500  # characters, by the standard

NO_FRONT_MATTER = (
    'no front matter: the file begins with a line "---", name and description, and a line "---" again; without it this '
    "is no skill"
)
NO_DESCRIPTION = "no description: say what the skill does and when to use it"


def no_name(usual: str) -> str:
    return f'no name: add "name: {usual}"'


def wrong_name(name: str) -> str:
    """A name with letters that it may not have."""
    return f'the name "{name[:80]}" may only have a-z, 0-9 and single hyphens between them'


def long_name(name: str) -> str:
    return f"the name has {len(name)} characters, {MAX_NAME} at most"


def other_name(name: str, usual: str) -> str:
    return f'the name "{name}" differs from its folder "{usual}"'


def long_description(description: str) -> str:
    return f"the description has {len(description):,} characters, {MAX_DESCRIPTION:,} at most"


def no_flag(name: str, value: object) -> str:
    return f'{name} should be true or false, not "{str(value)[:40]}"'


def unread(line: str) -> str:
    """A line of the front matter that belongs to no key."""
    return f"cannot be read: {line.strip()[:60]!r}"
