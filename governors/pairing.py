"""Which result answers which call, in any list of messages.

Ids alone cannot tell: relays restart them at `call_0` in every reply. So pairing goes by occurrence and position:

- A result answers a call of its own turn before one of an older turn.
- In a stretch between two replies, as many results as there are open calls with that id are taken in order;
  fewer go to the newest reply that still has such calls open, in call order.
- Of several results for one call the first wins. A surplus result that repeats one which already answered this
  id answers nothing; one that says something else may answer an older turn's open call.
- A result that stands before its call answers it if nothing else does, within one turn, and only for an id that
  the turn had not used before.

Everything is a function of the list; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .messages import AssistantMessage, Message, ToolResult, UserMessage

#: The place of a call: (index of the reply in the list, index among the reply's calls).
CallPlace: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _Open:
    place: CallPlace
    turn: int


@dataclass(slots=True)
class _State:
    turn: int = 0
    open: dict[str, list[_Open]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)  # id -> the last turn that called it
    early: dict[str, list[int]] = field(default_factory=dict)  # results of this turn without a call yet
    last: dict[str, int] = field(default_factory=dict)  # id -> the newest result that answered it
    pairs: dict[int, CallPlace] = field(default_factory=dict)


def pair(messages: Sequence[Message]) -> dict[int, CallPlace]:
    """For each result that answers a call: its index in the list -> the place of its call."""
    state = _State()
    stretch: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        match message:
            case ToolResult():
                stretch.setdefault(message.call_id.strip(), []).append(index)
            case AssistantMessage():
                if message.calls:
                    _settle(state, stretch, messages)
                    _settle_early(state)
                    stretch = {}
                    _open_calls(state, message, index)
            case UserMessage():
                if stretch:
                    _settle(state, stretch, messages)
                    stretch = {}
                _settle_early(state)
                state.early.clear()
                state.turn += 1
    _settle(state, stretch, messages)
    _settle_early(state)
    return state.pairs


def _open_calls(state: _State, reply: AssistantMessage, index: int) -> None:
    for number, call in enumerate(reply.calls):
        key = call.id.strip()
        state.open.setdefault(key, []).append(_Open((index, number), state.turn))
        state.used[key] = state.turn


def _settle(state: _State, stretch: dict[str, list[int]], messages: Sequence[Message]) -> None:
    for key, results in stretch.items():
        if not key:
            continue
        waiting = state.open.get(key, [])
        current = [each for each in waiting if each.turn == state.turn]
        chosen = current if len(results) >= len(current) else _newest(current, len(results))
        for result, call in zip(results, chosen, strict=False):
            _answer(state, key, result, call)
        surplus = _news(state, key, results[len(chosen) :], messages)
        older = [each for each in reversed(waiting) if each.turn != state.turn]
        for result, call in zip(surplus, older, strict=False):
            _answer(state, key, result, call)
        if state.used.get(key) != state.turn:
            state.early.setdefault(key, []).extend(surplus[len(older) :])


def _settle_early(state: _State) -> None:
    """Let results that came before their call answer what is still open of this turn."""
    for key, results in state.early.items():
        for call in [each for each in state.open.get(key, []) if each.turn == state.turn]:
            if not results:
                break
            _answer(state, key, results.pop(0), call)


def _answer(state: _State, key: str, result: int, call: _Open) -> None:
    state.pairs[result] = call.place
    state.open[key].remove(call)
    state.last[key] = result


def _news(state: _State, key: str, results: Sequence[int], messages: Sequence[Message]) -> list[int]:
    """The results that say something other than the newest answer to this id."""
    last = state.last.get(key)
    return [index for index in results if last is None or not _same_output(messages[index], messages[last])]


def _same_output(one: Message, other: Message) -> bool:
    assert isinstance(one, ToolResult) and isinstance(other, ToolResult)
    return one.content == other.content and one.is_error == other.is_error


def _newest(waiting: Sequence[_Open], count: int) -> list[_Open]:
    """`count` of the open calls: those of the newest replies, each reply's in call order."""
    by_reply: dict[int, list[_Open]] = {}
    for each in waiting:
        by_reply.setdefault(each.place[0], []).append(each)
    chosen: list[_Open] = []
    for reply in sorted(by_reply, reverse=True):
        chosen.extend(by_reply[reply][: count - len(chosen)])
    return chosen
