"""Whether a list needs no repair: one look at each message, so that a list of thousands is passed in milliseconds.

What concerns a message alone is worked out once and kept with it. `is_sound` is exact: it says yes exactly where
`repair` would give back the same object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .content import legal_patch, legal_reply, legal_result, legal_user
from .messages import UNFINISHED, AssistantMessage, Message, ToolResult, UserMessage


def is_sound(messages: Sequence[Message], id_pattern: str) -> bool:
    """Whether every call has its one result straight after it, in order, with legal, unrepeated ids and content."""
    key = f"sound/{id_pattern}"
    matcher = re.compile(id_pattern)
    found: tuple[str, ...] | None
    seen: set[str] = set()
    expected: tuple[str, ...] = ()
    answered = 0
    for message in messages:
        if key not in message.memo:
            message.memo[key] = _identities(message, matcher)
        found = message.memo[key]
        if found is None:
            return False
        if isinstance(message, ToolResult):
            if answered >= len(expected) or expected[answered] != message.call_id:
                return False
            answered += 1
            continue
        if answered != len(expected):
            return False
        expected, answered = found, 0
        if found:
            if not seen.isdisjoint(found):
                return False
            seen.update(found)
    return answered == len(expected)


def _identities(message: Message, matcher: re.Pattern[str]) -> tuple[str, ...] | None:
    """The ids of a message's calls; None when the message by itself needs a repair."""
    match message:
        case UserMessage():
            return () if legal_user(message) is message else None
        case ToolResult():
            return () if legal_result(message) is message else None
        case AssistantMessage():
            return _calls_of(message, matcher)
        case _:
            return () if legal_patch(message) is message else None


def _calls_of(reply: AssistantMessage, matcher: re.Pattern[str]) -> tuple[str, ...] | None:
    identities = tuple(call.id for call in reply.calls)
    if reply.stop in UNFINISHED or not all(call.complete for call in reply.calls):
        return None
    if reply.stop == "length" and not identities and not reply.text.strip():
        return None
    if legal_reply(reply) is not reply or not all(matcher.fullmatch(identity) for identity in identities):
        return None
    return identities if len(set(identities)) == len(identities) else None
