"""The fixed wrappings of what a model reads in the user's role though no user said it. Pure.

Laws: a wrapping is constant text before the content, in a part of its own; nothing inside can pass for a wrapping, or
for one of the tags by which the runtime speaks: what would open one is written `\\[` or `&lt;`. Doing it again changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from governors.messages import Document, Image, Text, UserMessage

INTERRUPTED = "[The reply before this message was interrupted; the user saw only a part of it.]"
SUMMARY = "[A summary of what was said before, which is out of view:]"
OTHER_BRANCH = "[What happened on another branch of this conversation, which was left:]"
EXTENSION = "[From the extension {name}:]"
SHELL_COMMAND = "[The user ran this command in a shell:]\n{command}"

#: The extension entries that hold what a user ran in a shell (`data`: `command`, `seconds`).
SHELL: Final = "shell"

_OPENINGS = (
    "The reply before this message",
    "A summary of what was said before",
    "What happened on another branch",
    "From the extension",
    "The user ran this command",
    "late result of",
)
_TAGS = ("section", "system-update", "system", "runtime-context", "system-reminder", "context")
_OPENS = re.compile(rf"(?<!\\)\[(?=\s*(?:{'|'.join(map(re.escape, _OPENINGS))}))", re.IGNORECASE)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, _TAGS))})(?![A-Za-z0-9_-]))", re.IGNORECASE)
_NO_NAME = re.compile(r"[\[\]\s]+")


def inside(text: str) -> str:
    """`text` such that it opens no wrapping."""
    if "[" in text:
        text = _OPENS.sub(r"\\[", text)
    return _TAG.sub("&lt;", text) if "<" in text else text


def opening_of(name: str, data: Mapping[str, Any]) -> str:
    """What stands before the content of the extension entry called `name`."""
    command = data.get("command")
    if name == SHELL and isinstance(command, str):
        return SHELL_COMMAND.format(command=inside(command))
    return EXTENSION.format(name=_NO_NAME.sub(" ", name)[:64])


def wrapped(opening: str | None, content: Iterable[object], origin: int) -> UserMessage:
    """A message of the user's role that is no user's: texts, pictures and documents of `content` after `opening`."""
    shown = (part for part in content if isinstance(part, (Text, Image, Document)))
    tame = (Text(inside(part.text)) if isinstance(part, Text) else part for part in shown)
    return UserMessage((*(() if opening is None else (Text(opening),)), *tame), origin=origin)
