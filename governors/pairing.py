"""Which result answers which call, in any list of messages.

Ids alone cannot tell: relays restart them at `call_0` in every reply. So pairing goes by occurrence and position:

- A result answers a call of its own turn before one of an older turn, the newest turn first.
- In a stretch between two replies with calls, as many results as the turn has open calls with that id are taken in
  order; fewer go to the newest reply that still has such calls open, in call order.
- The first result of a call wins. One that repeats what has answered the id since the call was made is a double of
  that answer, and answers nothing.
- A result that stands before its call answers it if nothing else does, within one turn, and only if it is no double
  and the turn had not used the id before.
- Without an id a result answers nothing, unless it is a stand-in: those are made for their call, whatever its id.

`pair` is a function of the list; nothing is changed here. `RunningPairs` does the same for a conversation that grows,
where a request leaves now and then: what has answered then stands, and a call that had no result stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from .messages import UNFINISHED, AssistantMessage, Message, ToolResult, UserMessage, UserPart

#: The place of a call: (index of the reply in the list, index among the reply's calls).
CallPlace: TypeAlias = tuple[int, int]

_NEVER = -1

_Output: TypeAlias = tuple[str, tuple[UserPart, ...], bool]


@dataclass(slots=True)
class _State:
    messages: Sequence[Message]
    turn: int = 0
    called: set[str] = field(default_factory=set)  # the ids that this turn has used
    open: dict[str, dict[int, list[CallPlace]]] = field(default_factory=dict)  # id -> turn -> unanswered, in order
    said: dict[_Output, int] = field(default_factory=dict)  # id and output -> where it answered last
    early: dict[str, list[int]] = field(default_factory=dict)  # this turn's results that stand before any call
    stretch: dict[str, list[int]] = field(default_factory=dict)  # results since the last reply with calls
    pairs: dict[int, CallPlace] = field(default_factory=dict)


def pair(messages: Sequence[Message]) -> dict[int, CallPlace]:
    """For each result that answers a call: its index in the list -> the place of its call."""
    state = _State(messages)
    for index, message in enumerate(messages):
        _take(state, message, index)
    _end_turn(state)
    return state.pairs


class RunningPairs:
    """Pairs of a conversation that grows. `messages` are all that were taken."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._state = _State(self.messages)

    def take(self, message: Message) -> None:
        self.messages.append(message)
        _take(self._state, message, len(self.messages) - 1)

    def take_step(self, reply: AssistantMessage, results: Sequence[ToolResult]) -> bool:
        """Take a reply with its results at once, when they are just that: each call answered in its order, by ids
        that nothing else waits for. Otherwise nothing is taken."""
        state, calls = self._state, reply.calls
        identities = {call.id for call in calls}
        if len(results) != len(calls) or len(identities) != len(calls) or state.stretch:
            return False
        for call, result in zip(calls, results, strict=True):
            key = call.id
            if key != result.call_id or key != key.strip() or not key or result.stand_in:
                return False
            if state.open.get(key) or key in state.early:
                return False
        index = len(self.messages)
        self.messages.append(reply)
        for result in results:
            index += 1
            self.messages.append(result)
            state.said[result.call_id, result.content, result.is_error] = index
        state.called |= identities
        return True

    def leave(self, shown: AbstractSet[CallPlace]) -> tuple[dict[int, CallPlace], bool]:
        """A request leaves: the pairs that are new since the last one, and whether they might have been others had
        it left later. `shown` are the calls that it is the first to carry; those without a result are answered by
        what comes later only if it answers nothing newer."""
        state = self._state
        keys = tuple(state.stretch)
        _settle(state)
        unsure = any(any(state.open.get(key, {}).values()) for key in keys)
        for key, results in state.early.items():
            waiting = state.open.get(key, {}).get(state.turn, [])
            eligible = [place for place in waiting if place in shown]
            answered = _answer(state, results, eligible)
            if answered:
                unsure = True
                waiting[:] = [place for place in waiting if place not in shown or place in eligible]
                state.early[key] = [result for result in results if result not in answered]
        pairs, state.pairs = state.pairs, {}
        if unsure or not shown <= set(pairs.values()):
            state.turn += 1
        return pairs, unsure

    def reopen(self, place: CallPlace) -> None:
        """What has answered this call was a stand-in: a real result may still come."""
        reply = self.messages[place[0]]
        assert isinstance(reply, AssistantMessage)
        key = reply.calls[place[1]].id.strip()
        self._state.open.setdefault(key, {}).setdefault(self._state.turn, []).append(place)
        self._state.turn += 1  # what comes later answers newer calls first


def _take(state: _State, message: Message, index: int) -> None:
    if isinstance(message, ToolResult):
        key = message.call_id.strip()
        if key or message.stand_in:
            state.stretch.setdefault(key, []).append(index)
    elif isinstance(message, AssistantMessage) and message.calls:
        _settle(state)
        _open_calls(state, message, index)
    elif isinstance(message, UserMessage):
        _end_turn(state)


def _open_calls(state: _State, reply: AssistantMessage, index: int) -> None:
    for number, call in enumerate(reply.calls):
        key = call.id.strip()
        state.open.setdefault(key, {}).setdefault(state.turn, []).append((index, number))
        state.called.add(key)


def _end_turn(state: _State) -> None:
    _settle(state)
    for key, results in state.early.items():
        waiting = state.open.get(key, {}).get(state.turn, [])
        whole = [place for place in waiting if _is_whole(state, place)]
        answered = _answer(state, results, whole)  # a call that is never sent leaves its result to one that is
        broken = [place for place in waiting if not _is_whole(state, place)]
        _answer(state, [result for result in results if result not in answered], broken)
        waiting[:] = [place for place in waiting if place in whole or place in broken]
    state.early.clear()
    state.called.clear()
    state.turn += 1


def _settle(state: _State) -> None:
    """Let the results of the stretch that ends here answer open calls."""
    for key, results in state.stretch.items():
        by_turn = state.open.get(key, {})
        for turn in reversed(tuple(by_turn)):
            waiting = by_turn[turn]
            made = waiting[-1][0] if waiting else _NEVER
            news = [result for result in results if _said_at(state, result) < made]
            answered = _answer(state, news, waiting)
            results = [result for result in results if result not in answered]
            if not waiting:
                del by_turn[turn]
            if not results:
                break
        if key not in state.called:
            fresh = [result for result in results if _said_at(state, result) == _NEVER]
            state.early.setdefault(key, []).extend(fresh)
    state.stretch.clear()


def _answer(state: _State, results: Sequence[int], waiting: list[CallPlace]) -> frozenset[int]:
    """Pair results with open calls of one id and turn, take those off `waiting`, and say which results it were."""
    chosen = waiting[:] if len(results) >= len(waiting) else _newest(waiting, len(results))
    answering = results[: len(chosen)]
    for result, place in zip(answering, chosen, strict=True):
        state.pairs[result] = place
        state.said[_output(state, result)] = result
        waiting.remove(place)
    return frozenset(answering)


def _is_whole(state: _State, place: CallPlace) -> bool:
    """Whether a request carries the call: its reply came to its end, and so did the call itself."""
    reply = state.messages[place[0]]
    assert isinstance(reply, AssistantMessage)
    return reply.stop not in UNFINISHED and reply.calls[place[1]].complete


def _output(state: _State, index: int) -> _Output:
    result = state.messages[index]
    assert isinstance(result, ToolResult)
    return result.call_id.strip(), result.content, result.is_error


def _said_at(state: _State, result: int) -> int:
    """Where the same output last answered the same id."""
    return state.said.get(_output(state, result), _NEVER)


def _newest(waiting: Sequence[CallPlace], count: int) -> list[CallPlace]:
    """`count` of the open calls: those of the newest replies, each reply's in call order."""
    return sorted(waiting, key=lambda place: (-place[0], place[1]))[:count]
