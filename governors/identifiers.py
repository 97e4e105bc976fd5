"""Ids of calls: legal for the provider, and no two alike in a request.

The first use of a legal id keeps it. Any other gets a new one that is a function of the id, of its reply's place in
the conversation, of its occurrence there and of the ids before it, so what was sent once never changes. Results
follow their call. A message with a new id is made once and kept with the original, so its counts and encoded forms
are kept too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from .messages import AssistantMessage, AssistantPart, Message, Messages, ToolCall, ToolResult, remember, same_or
from .pairing import CallPlace, pair

DEFAULT_ID_PATTERN = r"[A-Za-z0-9_-]{1,64}"

_SALTS = 100  # hashes to try before giving up; nine hex digits of them collide once in 10^10


class RunningIds:
    """Legal, unrepeated ids for messages that follow each other, results straight after their reply in call order."""

    def __init__(self, matcher: re.Pattern[str]) -> None:
        self._matcher = matcher
        self._taken: set[str] = set()
        self._replies = 0

    def apply(self, messages: list[Message]) -> list[Message]:
        """`messages` with their ids. Raises `ValueError` when no id that is made here matches the pattern."""
        changed: list[Message] = []
        expected: Iterator[str] = iter(())
        for message in messages:
            if isinstance(message, AssistantMessage):
                self._replies += 1
                identities = tuple(self._next(call.id.strip(), number) for number, call in enumerate(message.calls))
                changed.append(_with_call_ids(message, identities))
                expected = iter(identities)
            elif isinstance(message, ToolResult):
                changed.append(answering(message, next(expected)))
            else:
                changed.append(message)
        return changed

    def _next(self, identity: str, number: int) -> str:
        chosen = _free_identity(identity, (self._replies, number), self._taken, self._matcher)
        self._taken.add(chosen)
        return chosen


def legal_ids(messages: Messages, pattern: str) -> Messages:
    """`messages` with legal, unrepeated ids; the same object when they were so already.

    Raises `ValueError` when no id of letters, digits, `_` and `-` that is made here matches `pattern`.
    """
    matcher = re.compile(pattern)
    if _all_legal(messages, matcher):
        return messages
    renamed = _renaming(messages, matcher)
    answers = pair(messages)
    changed: list[Message] = []
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.calls:
            identities = tuple(renamed[index, number] for number in range(len(message.calls)))
            changed.append(_with_call_ids(message, identities))
        elif isinstance(message, ToolResult) and index in answers:
            changed.append(answering(message, renamed[answers[index]]))
        else:
            changed.append(message)
    return same_or(messages, changed)


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
            identity = _free_identity(call.id.strip(), (replies, number), taken, matcher)
            taken.add(identity)
            renamed[index, number] = identity
    return renamed


def _free_identity(identity: str, place: CallPlace, taken: set[str], matcher: re.Pattern[str]) -> str:
    for candidate in _candidates(identity, *place):
        if candidate not in taken and matcher.fullmatch(candidate):
            return candidate
    raise ValueError(f"no id for a call can be made that matches the pattern {matcher.pattern!r}")


def _candidates(identity: str, reply: int, number: int) -> Iterator[str]:
    """Ids to try in turn: as it is, with its place as a suffix, then hashes in the lengths providers ask for."""
    yield identity
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", identity) or "call"
    yield f"{plain}-{reply}-{number}"
    for salt in range(_SALTS):
        digest = hashlib.sha256(f"{salt}/{reply}/{number}/{identity}".encode("utf-8", "replace")).hexdigest()
        yield f"call_{digest[:24]}"
        yield digest[:9]


def _with_call_ids(reply: AssistantMessage, identities: tuple[str, ...]) -> AssistantMessage:
    if identities == tuple(call.id for call in reply.calls):
        return reply

    def renamed() -> AssistantMessage:
        left = iter(identities)
        parts: tuple[AssistantPart, ...] = tuple(
            replace(part, id=next(left)) if isinstance(part, ToolCall) else part for part in reply.content
        )
        return replace(reply, content=parts)

    return remember(reply, f"ids/{identities!r}", renamed)


def answering(result: ToolResult, identity: str) -> ToolResult:
    """`result` as the answer to the call with that id, made once."""
    if identity == result.call_id:
        return result
    return remember(result, f"id/{identity}", lambda: replace(result, call_id=identity))
