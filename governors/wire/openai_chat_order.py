"""The order of messages that hosts of Chat Completions demand: the roles in turn, a reply between results and a user's.

What is put in is constant, and appended with the message that needs it: nothing that was sent before changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Abilities
from .common import NO_REPLY, OPENING
from .encoded import Encoded

SYSTEM_ROLES = ("system", "developer")


def between(before: Mapping[str, Any], after: Mapping[str, Any], abilities: Abilities) -> Encoded | None:
    """What has to stand between two neighbours: a reply after results that a user's message follows, where the host
    wants one (Mistral's own, and templates that want the roles in turn)."""
    if before["role"] != "tool" or after["role"] != "user" or not wants_reply(abilities):
        return None
    return Encoded({"role": "assistant", "content": NO_REPLY})


def wants_reply(abilities: Abilities) -> bool:
    """Whether a reply must stand between results and a user's message."""
    return abilities.strict_alternation or not abilities.user_after_results


def apart(messages: list[Encoded], abilities: Abilities) -> list[Encoded]:
    """`messages` with all that has to stand between neighbours."""
    placed: list[Encoded] = []
    for message in messages:
        filler = between(placed[-1], message, abilities) if placed else None
        placed += [message] if filler is None else [filler, message]
    return placed


def opening(abilities: Abilities) -> Encoded | None:
    """The user's message that stands before a conversation which the assistant opens, on strict hosts."""
    return Encoded({"role": "user", "content": OPENING}) if abilities.strict_alternation else None


def alternate(messages: list[Encoded]) -> list[Encoded]:
    """User and assistant in turn, the user first: neighbours of one role become one message."""
    merged: list[Encoded] = []
    for message in messages:
        before = merged[-1] if merged else None
        role = message["role"]
        if role == "assistant" and all(one["role"] in SYSTEM_ROLES for one in merged):
            merged.append(Encoded({"role": "user", "content": OPENING}))
            merged.append(message)
        elif before is not None and before["role"] == role and role in ("user", "assistant"):
            merged[-1] = merge(before, message)
        else:
            merged.append(message)
    return merged


def merge(before: Encoded, after: Encoded) -> Encoded:
    """One message of two neighbours, for hosts that demand the roles in turn."""
    content: Any = [*as_parts(before["content"]), *as_parts(after["content"])]
    if len(content) == 1 and content[0]["type"] == "text":
        content = content[0]["text"]
    return Encoded({**before, **after, "content": content})


def as_parts(content: Any) -> list[Any]:
    """Content as a list of parts: a string is short for one text part."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
