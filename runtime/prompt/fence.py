"""Keeps text from files inside its section. Pure.

A file may be written by anybody: a project, a web page that an agent copied, a stranger in a chat. Its text must
not be able to close its section, open another, or pass for something the runtime says. So each `<` that opens one
of our tags is written `&lt;`; all other text stays as it is. Characters that a person cannot see but a model can
(the Unicode tag block) are taken out.
"""

from __future__ import annotations

import re

from governors.scrub import scrub

#: Every tag by which the runtime speaks to a model.
TAGS = ("section", "system-update", "system", "runtime-context", "system-reminder")

_HIDDEN = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"  # may stand between letters without being seen
_NAMES = "|".join(f"[{_HIDDEN}]*".join(re.escape(letter) for letter in tag) for tag in TAGS)
_TAG = re.compile(
    rf"[<＜‹](?=[\s{_HIDDEN}]*/?[\s{_HIDDEN}]*(?:{_NAMES})[{_HIDDEN}]*(?-i:(?![A-Za-z0-9_])))", re.IGNORECASE
)
_TAG_BLOCK = re.compile("[\U000e0000-\U000e007f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def fence(text: str) -> str:
    """`text` such that it stays within its section. Running it again changes nothing."""
    return _TAG.sub("&lt;", _CONTROL.sub("", _TAG_BLOCK.sub("", scrub(text)))).strip()


def fence_line(text: str, limit: int) -> str:
    """`text` as one line of at most `limit` characters."""
    line = " ".join(fence(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def fence_notes(text: str) -> str:
    """Notes for the prompt: headings become plain labels and rules vanish, so that no note looks like a heading of
    the prompt itself."""
    lines = []
    for line in fence(text).split("\n"):
        if heading := re.fullmatch(r"\s{0,3}(?:#+|[-=*_]{3,})(?:\s+(.*?))?[\s#]*", line):
            line = f"{heading[1].rstrip(':')}:" if heading[1] else ""
        lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
