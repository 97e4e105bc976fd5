"""Repairs: whatever a history went through, the list that comes out is one that every wire accepts.

Each repair is `Messages -> Messages`, stateless, with constant texts. Laws:
- A repair that changes nothing returns the same object; running one on its own output changes nothing.
- Real data is never thrown away when it can be put in its place; a result that nobody asked for goes.
- What was sent once stays as it was: an id is rewritten by what precedes it alone.
- A message that is made here is made once: it is kept with the one it was made from, and so are its counts.

`repair` runs them in the order that works: what is double or surplus first, while everything that it doubles is still
there; then unfinished replies (a call that is not sent must not be answered), order, missing results, and content and
ids last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .content import legal_patch, legal_reply, legal_result, legal_user
from .identifiers import DEFAULT_ID_PATTERN, legal_ids
from .messages import (
    UNFINISHED,
    AssistantMessage,
    AssistantPart,
    Message,
    Messages,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    remember,
    same_or,
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


def keep_late(result: ToolResult, call: str) -> UserMessage:
    """`late_result`, made once."""
    return remember(result, f"late/{call}", lambda: late_result(result, call))


def collapse_calls(messages: Messages) -> Messages:
    """Every call once: a call that repeats id, name and arguments of an earlier one of its reply goes."""
    return _map(
        messages, lambda message: collapsed_reply(message) if isinstance(message, AssistantMessage) else message
    )


def drop_orphans(messages: Messages) -> Messages:
    """Without the results that answer no call; a second result of a call is one of them."""
    pairs = pair(messages)
    return same_or(
        messages,
        [message for index, message in enumerate(messages) if not isinstance(message, ToolResult) or index in pairs],
    )


def drop_unfinished(messages: Messages) -> Messages:
    """Without replies that ended aborted, errored, refused or deferred, without calls whose arguments were cut off,
    and without the results of either. Nor is a reply left that was cut off before it said anything.

    A real result of a call that was cut off was produced by something: it stays, as a late result. One that stands
    before such a call goes: it is the answer to nothing that is known.
    """
    if all(finished_reply(message) is message for message in messages):
        return messages
    pairs = pair(messages)
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if index in pairs:
            reply_index, number = pairs[index]
            if reply_index < index or _is_sent(messages[reply_index], number):
                kept.extend(_result_to_send(message, messages[reply_index], number))
        else:
            finished = finished_reply(message)
            kept.extend([finished] if finished is not None else [])
    return tuple(kept)


def order_results(messages: Messages) -> Messages:
    """Every paired result straight after its reply, in call order; all else keeps its order."""
    pairs = pair(messages)
    by_call = {place: messages[index] for index, place in pairs.items()}
    ordered: list[Message] = []
    for index, message in enumerate(messages):
        if index in pairs:
            continue
        ordered.append(message)
        ordered.extend(by_call[place] for place in _places(message, index) if place in by_call)
    return same_or(messages, ordered)


def backfill(messages: Messages) -> Messages:
    """With a stand-in for every call that has no result, at its place in call order."""
    by_call: dict[CallPlace, int] = {place: index for index, place in pair(messages).items()}
    filled: list[Message] = []
    next_index = 0
    for index, message in enumerate(messages):
        if index < next_index:
            continue  # a result that was put after its reply already
        filled.append(message)
        next_index = index + 1
        for place in _places(message, index):
            if place not in by_call:
                filled.append(kept_stand_in(message, place[1]))
            elif by_call[place] == next_index:
                filled.append(messages[next_index])
                next_index += 1
    return same_or(messages, filled)


def normalise(messages: Messages, *, id_pattern: str = DEFAULT_ID_PATTERN) -> Messages:
    """Legal content and legal, unrepeated ids (the same for a call and its result).

    `id_pattern` is a regular expression that a whole id must match (it differs by provider). Raises `ValueError`
    for a pattern that no id made here matches.
    """
    return legal_ids(_map(messages, legal_content), id_pattern)


def repair(messages: Messages, *, id_pattern: str = DEFAULT_ID_PATTERN) -> Messages:
    """All repairs, in order; the same object when nothing was wrong."""
    return normalise(pair_up(messages), id_pattern=id_pattern)


def pair_up(messages: Messages) -> Messages:
    """The repairs that concern calls and results: one result for each call that is sent, straight after its reply."""
    return backfill(order_results(drop_unfinished(drop_orphans(collapse_calls(messages)))))


def _map(messages: Messages, change: Callable[[Message], Message]) -> Messages:
    return same_or(messages, [change(message) for message in messages])


def _places(message: Message, index: int) -> list[CallPlace]:
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    return [(index, number) for number in range(len(calls))]


def legal_content(message: Message) -> Message:
    """`message` with content that can be sent; made once."""
    match message:
        case UserMessage():
            return legal_user(message)
        case AssistantMessage():
            return legal_reply(message)
        case ToolResult():
            return legal_result(message)
        case _:
            return legal_patch(message)


def collapsed_reply(reply: AssistantMessage) -> AssistantMessage:
    """`reply` with every call once; made once."""
    calls = reply.calls
    if len(calls) < 2 or len(set(calls)) == len(calls):
        return reply
    seen: set[ToolCall] = set()
    parts: list[AssistantPart] = []
    for part in reply.content:
        if isinstance(part, ToolCall):
            if part in seen:
                continue
            seen.add(part)
        parts.append(part)
    return remember(reply, "collapsed", lambda: replace(reply, content=tuple(parts)))


def finished_reply(message: Message) -> Message | None:
    """What of a message can be sent: itself, a reply without the calls that were cut off, or nothing."""
    if not isinstance(message, AssistantMessage):
        return message
    if message.stop in UNFINISHED:
        return None
    if all(call.complete for call in message.calls):
        whole = message
    else:
        parts = tuple(part for part in message.content if not isinstance(part, ToolCall) or part.complete)
        whole = remember(message, "finished", lambda: replace(message, content=parts))
    return None if whole.stop == "length" and not whole.calls and not whole.text.strip() else whole


def _is_sent(reply: Message, number: int) -> bool:
    assert isinstance(reply, AssistantMessage)
    return reply.stop not in UNFINISHED and reply.calls[number].complete


def _result_to_send(result: Message, reply: Message, number: int) -> list[Message]:
    """`result` itself when its call is sent; the late result that it becomes, or nothing, when it is not."""
    assert isinstance(result, ToolResult) and isinstance(reply, AssistantMessage)
    if reply.stop in UNFINISHED:
        return []
    call = reply.calls[number]
    if call.complete:
        return [result]
    return [] if result.stand_in else [keep_late(result, call.id)]


def kept_stand_in(reply: Message, number: int) -> ToolResult:
    """The stand-in for the call of that number in a reply, made once."""
    assert isinstance(reply, AssistantMessage)
    return remember(reply, f"stand_in/{number}", lambda: stand_in(reply.calls[number]))
