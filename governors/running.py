"""Repairs that run along with a growing conversation: each message is repaired once.

The same repairs as `repair`, and the same laws, but what was handed out once stands: the places of messages are their
indices in one list that only grows. A call that had no result when its request left keeps its stand-in (it is
`missed`); a real result that comes later becomes a late result at its own place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from .content import legal_patch, legal_reply, legal_result, legal_user
from .identifiers import DEFAULT_ID_PATTERN, RunningIds
from .messages import AssistantMessage, Message, Messages, ToolResult, UserMessage
from .pairing import pair
from .repair import keep_late, pair_up


class RunningRepair:
    """Repairs message by message. `missed` are the places of stand-ins that a request carried in an earlier life."""

    def __init__(self, id_pattern: str = DEFAULT_ID_PATTERN, missed: Collection[int] = ()) -> None:
        self._ids = RunningIds(re.compile(id_pattern))
        self._foretold = sorted(missed)
        self._open: dict[str, str] = {}  # id of a missed call, as the conversation knows it -> its tool
        self._length = 0

    def take(self, messages: Iterable[Message]) -> list[Message]:
        """The repaired form of what follows; its first message has the place that the last call left off at."""
        raw = tuple(messages)
        if len(raw) == 1 and isinstance(raw[0], UserMessage):
            self._length += 1
            return [legal_user(raw[0])]
        raw = self._with_late(raw)
        staged = pair_up(raw)
        for place in self._foretold:
            index = place - self._length
            if 0 <= index < len(staged):
                staged = _made_late(raw, staged, index)
        self._note_missed(staged)
        self._length += len(staged)
        return self._ids.apply([_legal(message) for message in staged])

    def _with_late(self, raw: Messages) -> Messages:
        """Results of calls that were missed, as the user messages that they become."""
        if not self._open:
            return raw
        answers = pair(raw)
        changed: list[Message] = []
        for index, message in enumerate(raw):
            key = message.call_id.strip() if isinstance(message, ToolResult) else ""
            if isinstance(message, ToolResult) and index not in answers and key in self._open:
                if not message.stand_in:
                    changed.append(keep_late(message, key))
                    del self._open[key]
            else:
                changed.append(message)
        return tuple(changed)

    def _note_missed(self, staged: Messages) -> None:
        for message in staged:
            if isinstance(message, AssistantMessage):
                for call in message.calls:
                    self._open.pop(call.id.strip(), None)
            elif isinstance(message, ToolResult) and message.stand_in:
                self._open[message.call_id.strip()] = message.tool


def _made_late(raw: Messages, staged: Messages, index: int) -> Messages:
    """`staged` anew, with a stand-in at `index` and the real result that stood there at its own place."""
    result = staged[index]
    if not isinstance(result, ToolResult) or result.stand_in:
        return staged
    own = next((place for place, message in enumerate(raw) if message is result), None)
    if own is None:
        return staged
    late = keep_late(result, result.call_id.strip())
    return pair_up((*raw[:own], late, *raw[own + 1 :]))


def _legal(message: Message) -> Message:
    match message:
        case UserMessage():
            return legal_user(message)
        case AssistantMessage():
            return legal_reply(message)
        case ToolResult():
            return legal_result(message)
        case _:
            return legal_patch(message)
