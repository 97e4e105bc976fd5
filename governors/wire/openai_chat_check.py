"""The rules of the OpenAI Chat Completions protocol (C1 to C5, H1 to H4) and of hosts that differ (G2, DEEPSEEK ...).

`check` takes the parts that `encode` gives or a whole body, of any shape, and never raises. What a payload cannot
show (how a reply ended, which result is an error) is the encoder's and the repairs' to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from .base import Abilities, Violation
from .checking import MessageRules, check_whole, misshapen, refused, text_of
from .openai_chat_check_parts import check_content, check_fields, check_reply, check_result
from .openai_chat_order import SYSTEM_ROLES

ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool")


class ChatRules(MessageRules):
    """The check of one request, fed message by message."""

    def __init__(self, head: Mapping[str, Any], abilities: Abilities) -> None:
        super().__init__(head, abilities)
        self.top += check_fields(self.head, abilities)
        self.identity = re.compile(abilities.id_pattern)
        self.placed = 0  # messages that could be read
        self.spoken: str | None = None  # the role before, system messages aside
        self.without_reasoning: list[str] = []  # this turn's replies with calls that lack their reasoning

    def fork(self) -> Self:
        forked = super().fork()
        forked.without_reasoning = list(self.without_reasoning)
        return forked

    def take(self, message: Any, where: str) -> Iterator[Violation]:
        if not isinstance(message, dict):
            yield misshapen(where, "an object", message)
            return
        role = message.get("role")
        if role not in ROLES:
            yield refused("SHAPE", f"{where}.role", f"is {role!r}; it can be {', '.join(ROLES)}")
            return
        if role in SYSTEM_ROLES:
            yield from self._check_system(where, role)
        else:
            yield from self._check_alternation(where, role)
        if role == "assistant":
            yield from check_reply(where, message, self.abilities)
            self._note_reasoning(where, message)
        elif role == "tool":
            yield from check_result(where, message, self.abilities)
        else:
            yield from check_content(where, message)
            yield from self._check_media(where, message)
            if role == "user":
                self.without_reasoning = []
        yield from self._check_pairing(where, message)
        self.placed += 1

    def _check_system(self, where: str, role: str) -> Iterator[Violation]:
        if role == "developer" and not self.abilities.developer_role:
            yield refused("H3", where, "has role developer, which this host does not know; system is the word here")
        if self.placed and not self.abilities.system_anywhere:
            yield refused("H3", where, f"has role {role}; this host takes one such message, at the front")

    def _check_alternation(self, where: str, role: str) -> Iterator[Violation]:
        before, self.spoken = self.spoken, role
        if role == "user" and before == "tool" and not self.abilities.user_after_results:
            yield refused("MISTRAL", where, "has role user straight after a result; this host wants a reply between")
        if not self.abilities.strict_alternation:
            return
        if before is None and role == "assistant":
            yield refused("H3", where, "the assistant speaks first; this host wants the user to")
        if before == role and role in ("user", "assistant"):
            yield refused("H3", where, f"has role {role}, as the one before; this host wants them in turn")

    def _note_reasoning(self, where: str, message: dict[str, Any]) -> None:
        wanted = self.abilities.replay_reasoning and message.get("tool_calls")
        given = message.get("reasoning_content")
        if wanted and (not isinstance(given, str) or (not given and self.abilities.empty_reasoning)):
            self.without_reasoning.append(where)

    def _check_media(self, where: str, message: dict[str, Any]) -> Iterator[Violation]:
        content = message.get("content")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            shown = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(shown, dict):
                data = text_of(shown.get("url")).partition(";base64,")[2]
                yield from self.image_too_large(f"{where}.content[{index}]", data)
            if isinstance(part, dict) and part.get("type") == "file":
                file = part.get("file")
                given = text_of(file.get("file_data")) if isinstance(file, dict) else ""
                yield from self.document_refused(f"{where}.content[{index}]", given.partition(";base64,")[2])

    def _check_pairing(self, where: str, message: dict[str, Any]) -> Iterator[Violation]:
        if message["role"] == "tool":
            yield from self._check_answer(where, message)
            return
        self.unanswered += self.waiting.items()
        self.waiting = {}
        for place, call in _calls(where, message):
            if call in self.calls:
                yield refused("C3", place, f"the id {call!r} was used by an earlier call of this request")
                continue
            self.calls.add(call)
            self.waiting[call] = place
            if not self.identity.fullmatch(call):
                yield refused("H2", place, f"the id {call!r} has a form that this host refuses")

    def _check_answer(self, where: str, message: dict[str, Any]) -> Iterator[Violation]:
        call = text_of(message.get("tool_call_id"))
        self.results.add(call)
        if not call:
            yield refused("C3", f"{where}.tool_call_id", "the result does not say which call it answers")
        elif call in self.answered:
            yield refused("C3", where, f"the call {call!r} has a result already")
        elif call in self.waiting:
            del self.waiting[call]
            self.answered.add(call)
        elif call in self.calls:
            self.answered.add(call)
            yield _elsewhere(where, call)
        else:
            self.unasked.append((call, where))

    def ending(self) -> Iterator[Violation]:
        if not self.position:
            yield refused("SHAPE", "messages", "is empty; at least one message is needed")
        for call, where in self.unasked:
            if call in self.calls:
                yield _elsewhere(where, call)
            else:
                yield Violation("C4", "S", where, f"answers {call!r}, which no call has")
        for call, where in (*self.unanswered, *self.waiting.items()):
            if call in self.results:
                yield refused("H1", where, f"the result of {call!r} does not stand straight after the reply")
            else:
                yield refused("C3", where, f"the call {call!r} has no result")
        for where in self.without_reasoning:
            problem = "this host wants it, if only empty, on every reply with calls since the user spoke"
            yield refused("DEEPSEEK", f"{where}.reasoning_content", problem)


def check(payload: Any, abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that `payload` breaks; none when it can be sent."""
    return check_whole(payload, ChatRules, abilities)


def _elsewhere(where: str, call: str) -> Violation:
    return refused("H1", where, f"answers {call!r}, which is not a call of the reply just before")


def _calls(where: str, message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The ids of a reply's calls, with their places."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        identity = text_of(call.get("id")) if isinstance(call, dict) else ""
        if identity:
            yield f"{where}.tool_calls[{index}].id", identity
