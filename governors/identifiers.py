"""Ids of calls: legal for the provider, and no two alike in a request.

The first use of a legal id keeps it. Any other gets a new one that is a function of the id, of its reply's place in
the conversation and of its occurrence there, so what was sent once never changes. Results follow their call.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from .messages import AssistantMessage, AssistantPart, Message, Messages, ToolCall, ToolResult
from .pairing import CallPlace, pair

DEFAULT_ID_PATTERN = r"[A-Za-z0-9_-]{1,64}"


def legal_ids(messages: Messages, pattern: str) -> Messages:
    """`messages` with legal, unrepeated ids; the same object when they were so already."""
    matcher = re.compile(pattern)
    if _all_legal(messages, matcher):
        return messages
    renamed = _renaming(messages, matcher)
    answers = pair(messages)
    changed: list[Message] = []
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.calls:
            changed.append(_rename_calls(message, index, renamed))
        elif isinstance(message, ToolResult) and index in answers:
            identity = renamed[answers[index]]
            changed.append(message if identity == message.call_id else replace(message, call_id=identity))
        else:
            changed.append(message)
    return tuple(changed)


def _all_legal(messages: Messages, matcher: re.Pattern[str]) -> bool:
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            for call in message.calls:
                if call.id in seen or not matcher.fullmatch(call.id):
                    return False
                seen.add(call.id)
        elif isinstance(message, ToolResult) and message.call_id not in seen:
            return False
    return True


def _renaming(messages: Messages, matcher: re.Pattern[str]) -> dict[CallPlace, str]:
    taken: set[str] = set()
    renamed: dict[CallPlace, str] = {}
    replies = 0
    for index, message in enumerate(messages):
        if not isinstance(message, AssistantMessage):
            continue
        replies += 1
        for number, call in enumerate(message.calls):
            identity = next(
                each
                for each in _candidates(call.id.strip(), replies, number)
                if each not in taken and matcher.fullmatch(each)
            )
            taken.add(identity)
            renamed[index, number] = identity
    return renamed


def _candidates(identity: str, reply: int, number: int) -> Iterator[str]:
    """Ids to try in turn: as it is, with its place as a suffix, then hashes in the lengths providers ask for."""
    yield identity
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", identity) or "call"
    yield f"{plain}-{reply}-{number}"
    for salt in count():
        digest = hashlib.sha256(f"{salt}/{reply}/{number}/{identity}".encode("utf-8", "replace")).hexdigest()
        yield f"call_{digest[:24]}"
        yield digest[:9]


def _rename_calls(reply: AssistantMessage, index: int, renamed: dict[CallPlace, str]) -> AssistantMessage:
    identities = (renamed[index, number] for number in range(len(reply.calls)))
    parts: list[AssistantPart] = []
    for part in reply.content:
        if isinstance(part, ToolCall):
            identity = next(identities)
            parts.append(part if part.id == identity else replace(part, id=identity))
        else:
            parts.append(part)
    if all(a is b for a, b in zip(parts, reply.content, strict=True)):
        return reply
    return replace(reply, content=tuple(parts))
