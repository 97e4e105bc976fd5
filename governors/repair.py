"""Repairs: whatever a history went through, the list that comes out is one that every wire accepts.

Each repair is `Messages -> Messages`, stateless, with constant texts. Laws:
- A repair that changes nothing returns the same object; running one on its own output changes nothing.
- Real data is never thrown away when it can be put in its place; a result that nobody asked for goes.
- What was sent once stays as it was: an id is rewritten by what precedes it alone.

`repair` runs them in the order that works: unfinished replies first (a call that is not sent must not be
answered), then orphans, order, missing results, and content and ids last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .content import legal_reply, legal_result, legal_user
from .identifiers import DEFAULT_ID_PATTERN, legal_ids
from .messages import (
    UNFINISHED,
    AssistantMessage,
    Message,
    Messages,
    SystemPatch,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from .pairing import CallPlace, pair

_UNKNOWN_OUTCOME = "No result was recorded for this call to {tool}. Its outcome is unknown: it may have taken effect."


def stand_in(call: ToolCall) -> ToolResult:
    """What answers a call that has no result: an error result whose text is a function of the call alone.

    It says that the outcome is unknown and never that the call failed: it may have taken effect.
    """
    return ToolResult(
        call.id, call.name, (Text(_UNKNOWN_OUTCOME.format(tool=call.name)),), is_error=True, stand_in=True
    )


def late_result(result: ToolResult, call: str) -> UserMessage:
    """A real result whose place is taken (by a stand-in that was sent) or gone, shown as a user message.

    `call` names the call for the reader: an entry id, or the call's own id.
    """
    head = Text(f"[late result of {result.tool or 'a tool'}, call {call}]")
    return UserMessage((head, *result.content), origin=result.origin)


def drop_orphans(messages: Messages) -> Messages:
    """Without the results that answer no call; a second result of a call is one of them."""
    pairs = pair(messages)
    kept = tuple(
        message for index, message in enumerate(messages) if not isinstance(message, ToolResult) or index in pairs
    )
    return messages if len(kept) == len(messages) else kept


def order_results(messages: Messages) -> Messages:
    """Every paired result straight after its reply, in call order; all else keeps its order."""
    pairs = pair(messages)
    by_call = {place: messages[index] for index, place in pairs.items()}
    ordered: list[Message] = []
    for index, message in enumerate(messages):
        if index in pairs:
            continue
        ordered.append(message)
        if isinstance(message, AssistantMessage):
            places = ((index, number) for number in range(len(message.calls)))
            ordered.extend(by_call[place] for place in places if place in by_call)
    return _same_or(messages, ordered)


def backfill(messages: Messages) -> Messages:
    """With a stand-in for every call that has no result, at its place in call order."""
    by_call: dict[CallPlace, int] = {place: index for index, place in pair(messages).items()}
    filled: list[Message] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        filled.append(message)
        index += 1
        if isinstance(message, AssistantMessage):
            reply = index - 1
            for number, call in enumerate(message.calls):
                place = (reply, number)
                if place not in by_call:
                    filled.append(stand_in(call))
                elif by_call[place] == index:
                    filled.append(messages[index])
                    index += 1
    return _same_or(messages, filled)


def drop_unfinished(messages: Messages) -> Messages:
    """Without replies that ended aborted, errored, refused or deferred, without calls that cannot be sent
    (no name, arguments cut off, made twice), and without the results of either.

    A real result of a call whose arguments were cut off was produced by something: it stays, as a late result.
    """
    if not any(isinstance(message, AssistantMessage) and _is_faulty(message) for message in messages):
        return messages
    answers = pair(messages)
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            kept.extend(_finished(message))
        elif isinstance(message, ToolResult) and index in answers:
            reply_index, number = answers[index]
            reply = messages[reply_index]
            assert isinstance(reply, AssistantMessage)
            if number in _sendable(reply):
                kept.append(message)
            elif reply.stop == "length" and not reply.calls[number].complete and not message.stand_in:
                kept.append(late_result(message, reply.calls[number].id))
        else:
            kept.append(message)
    return tuple(kept)


def normalise(messages: Messages, *, id_pattern: str = DEFAULT_ID_PATTERN) -> Messages:
    """Legal content and legal, unrepeated ids (the same for a call and its result).

    `id_pattern` is a regular expression that a whole id must match (it differs by provider).
    """
    return legal_ids(_map(messages, _legal_content), id_pattern)


def repair(messages: Messages, *, id_pattern: str = DEFAULT_ID_PATTERN) -> Messages:
    """All repairs, in order; the same object when nothing was wrong."""
    finished = drop_unfinished(messages)
    paired = backfill(order_results(drop_orphans(finished)))
    return normalise(paired, id_pattern=id_pattern)


def _same_or(messages: Messages, changed: list[Message]) -> Messages:
    if len(messages) == len(changed) and all(a is b for a, b in zip(messages, changed, strict=True)):
        return messages
    return tuple(changed)


def _map(messages: Messages, change: Callable[[Message], Message]) -> Messages:
    return _same_or(messages, [change(message) for message in messages])


def _legal_content(message: Message) -> Message:
    match message:
        case UserMessage():
            return legal_user(message)
        case AssistantMessage():
            return legal_reply(message)
        case ToolResult():
            return legal_result(message)
        case SystemPatch():
            return message


def _sendable(reply: AssistantMessage) -> tuple[int, ...]:
    """The indices of the calls that can be sent back: complete, named, and not made twice."""
    if reply.stop in UNFINISHED:
        return ()
    seen: set[ToolCall] = set()
    numbers = []
    for number, call in enumerate(reply.calls):
        if call.complete and call.name.strip() and call not in seen:
            seen.add(call)
            numbers.append(number)
    return tuple(numbers)


def _is_faulty(reply: AssistantMessage) -> bool:
    return len(_sendable(reply)) != len(reply.calls) or not _finished(reply)


def _finished(reply: AssistantMessage) -> tuple[AssistantMessage, ...]:
    """The reply without the calls that cannot be sent, or nothing when nothing of it can be."""
    if reply.stop in UNFINISHED:
        return ()
    sendable = _sendable(reply)
    if len(sendable) == len(reply.calls):
        whole = reply
    else:
        wanted = {id(reply.calls[number]) for number in sendable}
        parts = tuple(part for part in reply.content if not isinstance(part, ToolCall) or id(part) in wanted)
        whole = replace(reply, content=parts)
    cut_before_text = whole.stop == "length" and not whole.calls and not whole.text.strip()
    return () if cut_before_text else (whole,)
