"""Repairs that run along with a growing conversation: each message is repaired once.

The same repairs as `repair`, and the same laws, but what was handed out once stands: the places of messages are their
indices in one list that only grows. A call that had no result when its request left keeps its stand-in (it is
`Missed`); a real result that comes later becomes a late result at its own place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from .decisions import Missed
from .identifiers import DEFAULT_ID_PATTERN, RunningIds
from .messages import UNFINISHED, AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from .pairing import CallPlace, RunningPairs
from .repair import collapsed_reply, finished_reply, keep_late, kept_stand_in, legal_content

_WHOLE = ("stop", "tool_use")


@dataclass(frozen=True, slots=True)
class Repaired:
    """What follows, and of that what later messages will change nothing about."""

    messages: list[Message]
    missed: tuple[Missed, ...] = ()


class RunningRepair:
    """Repairs message by message. `sent` says after how many messages requests left in an earlier life, as far as it
    matters (`Missed.taken`)."""

    def __init__(self, id_pattern: str = DEFAULT_ID_PATTERN, sent: Collection[int] = ()) -> None:
        self._ids = RunningIds(re.compile(id_pattern))
        self._pairs = RunningPairs()
        self._sent = sorted({count for count in sent if count > 0})
        self._length = 0

    def take(self, messages: Iterable[Message]) -> Repaired:
        """The repaired form of what follows; its first message has the place that the last call left off at. A
        request leaves with it."""
        raw = tuple(messages)
        if len(raw) == 1 and isinstance(raw[0], UserMessage):
            self._pairs.take(raw[0])
            self._pairs.leave(frozenset())
            self._length += 1
            return Repaired([legal_content(raw[0])])
        parts = [self._take(part) for part in self._parts(raw)] if self._sent else [self._take(raw)]
        if len(parts) == 1:
            return parts[0]
        return Repaired(
            [message for part in parts for message in part.messages],
            tuple(missed for part in parts for missed in part.missed),
        )

    def _parts(self, raw: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """`raw` in the pieces in which it was sent."""
        before, start = len(self._pairs.messages), 0
        while self._sent and (end := self._sent[0] - before) <= len(raw):
            del self._sent[0]
            if end > start:
                yield raw[start:end]
                start = end
        if start < len(raw) or not start:
            yield raw[start:]

    def _take(self, raw: Sequence[Message]) -> Repaired:
        if self._take_step(raw):
            return self._done(raw, {}, unsure=False)
        pairs, first = self._pairs, len(self._pairs.messages)
        for message in raw:
            pairs.take(collapsed_reply(message) if isinstance(message, AssistantMessage) else message)
        replies = {
            index: whole
            for index in range(first, len(pairs.messages))
            if isinstance(reply := pairs.messages[index], AssistantMessage)
            and isinstance(whole := finished_reply(reply), AssistantMessage)
        }
        shown = {
            (index, number) for index in replies for number, call in enumerate(self._calls(index)) if call.complete
        }
        answers, unsure = pairs.leave(shown)
        by_call = {place: index for index, place in answers.items()}
        staged: list[Message] = []
        for index in range(first, len(pairs.messages)):
            message = pairs.messages[index]
            if isinstance(message, AssistantMessage):
                if index in replies:
                    staged.append(replies[index])
                    staged += self._results(index, replies[index], by_call)
            elif not isinstance(message, ToolResult):
                staged.append(message)
            elif index in answers and answers[index] not in shown:
                staged += self._late(message, answers[index], index)
        return self._done(staged, answers, unsure)

    def _take_step(self, raw: Sequence[Message]) -> bool:
        """Whether this was a reply and its results, with nothing wrong about them: so it mostly is."""
        reply = raw[0] if raw else None
        if not isinstance(reply, AssistantMessage) or reply.stop not in _WHOLE:
            return False
        results = raw[1:]
        if not all(isinstance(each, ToolResult) for each in results) or not all(call.complete for call in reply.calls):
            return False
        return self._pairs.take_step(reply, cast(Sequence[ToolResult], results))

    def _done(self, staged: Sequence[Message], answers: dict[int, CallPlace], unsure: bool) -> Repaired:
        taken, start = len(self._pairs.messages), self._length
        self._length += len(staged)
        for index, place in answers.items():
            result = self._pairs.messages[index]
            if isinstance(result, ToolResult) and result.stand_in and self._is_sent(place):
                self._pairs.reopen(place)
                unsure = True
        missed = [
            start + offset for offset, each in enumerate(staged) if isinstance(each, ToolResult) and each.stand_in
        ]
        if unsure and not missed:
            missed.append(max(0, self._length - 1))
        legal = self._ids.apply([legal_content(message) for message in staged])
        return Repaired(legal, tuple(Missed(place, taken) for place in missed))

    def _is_sent(self, place: CallPlace) -> bool:
        reply = self._pairs.messages[place[0]]
        return isinstance(reply, AssistantMessage) and reply.stop not in UNFINISHED and reply.calls[place[1]].complete

    def _calls(self, index: int) -> tuple[ToolCall, ...]:
        reply = self._pairs.messages[index]
        assert isinstance(reply, AssistantMessage)
        return reply.calls

    def _results(self, index: int, whole: AssistantMessage, by_call: dict[CallPlace, int]) -> Iterator[Message]:
        """What stands after a reply: for each call that is sent its result, or a stand-in."""
        sent = 0
        for number, call in enumerate(self._calls(index)):
            if call.complete:
                answer = by_call.get((index, number))
                yield kept_stand_in(whole, sent) if answer is None else self._pairs.messages[answer]
                sent += 1

    def _late(self, result: ToolResult, place: CallPlace, index: int) -> Iterator[Message]:
        """A result of a call that was sent without it, or was cut off, as the user message that it becomes. The results
        of replies that failed go with them."""
        reply = self._pairs.messages[place[0]]
        assert isinstance(reply, AssistantMessage)
        if not result.stand_in and reply.stop not in UNFINISHED and place[0] < index:
            yield keep_late(result, reply.calls[place[1]].id)
