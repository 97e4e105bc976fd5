"""The rules of the OpenAI Responses protocol (O1, O2, O4 to O6; C1 to C3).

`check` takes the parts that `encode` gives or a whole body, of any shape, and never raises. What a payload cannot
show (how a reply ended, which result is an error) is the encoder's and the repairs' to keep; whether reasoning
stands where it was produced (O3) is `check_binding`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .base import Abilities, Violation
from .checking import MessageRules, check_whole, misshapen, refused, text_of
from .openai_responses_check_parts import (
    check_call,
    check_content,
    check_fields,
    check_identity,
    check_reasoning,
    check_tools,
    tool_names,
)

ROLES = ("user", "assistant", "system", "developer")

#: Kinds of calls that the caller answers, and the kinds of their answers.
CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")

#: Fields that bring items from the provider's side: what calls those hold cannot be seen here.
ELSEWHERE = ("previous_response_id", "conversation")

MOST_BREAKPOINTS = 4


class ResponsesRules(MessageRules):
    """The check of one request, fed item by item."""

    part = "input"

    def __init__(self, head: Mapping[str, Any], abilities: Abilities) -> None:
        super().__init__(head, abilities)
        self.top += check_fields(self.head, abilities)
        self.identity = re.compile(abilities.id_pattern)
        self.stored = self.head.get("store") is not False
        self.reasoning = ""  # the place of a reasoning item whose following item has not come
        self.trigger = ""  # the place of a compaction trigger
        self.breakpoints = 0
        self.tools = tool_names(self.head.get("tools"))

    def take(self, message: Any, where: str) -> Iterator[Violation]:
        if self.trigger:
            yield refused("O4", self.trigger, "a compaction trigger must be the last item")
            self.trigger = ""
        if not isinstance(message, dict):
            yield misshapen(where, "an object", message)
            return
        kind = message.get("type", "message")
        yield from self._check_following(message, kind)
        yield from check_identity(where, message, self.stored)
        if kind == "message":
            yield from self._check_message(where, message)
        elif kind == "reasoning":
            yield from check_reasoning(where, message, self.stored)
            self.reasoning = where
        elif kind in CALLS:
            yield from check_call(where, message, self.identity)
            yield from self._check_pairing(where, message)
        elif kind in OUTPUTS:
            yield from self._check_output(where, message)
        elif kind == "additional_tools":
            yield from self._check_tools(where, message)
        elif kind == "compaction":
            if not text_of(message.get("encrypted_content")):
                yield refused(
                    "O4", f"{where}.encrypted_content", "the compaction has no content; it goes back as it was"
                )
        elif kind == "compaction_trigger":
            self.trigger = where
        elif not isinstance(kind, str):
            yield misshapen(f"{where}.type", "text", kind)

    def _check_following(self, item: dict[str, Any], kind: Any) -> Iterator[Violation]:
        of_reply = kind == "reasoning" or item.get("role") == "assistant"
        if self.reasoning and not of_reply and not (isinstance(kind, str) and kind.endswith("_call")):
            yield _alone(self.reasoning)
        self.reasoning = ""

    def _check_message(self, where: str, message: dict[str, Any]) -> Iterator[Violation]:
        role = message.get("role")
        if role not in ROLES:
            yield refused("SHAPE", f"{where}.role", f"is {role!r}; it can be {', '.join(ROLES)}")
            return
        content = message.get("content")
        yield from check_content(f"{where}.content", content)
        yield from self._check_parts(f"{where}.content", content)

    def _check_tools(self, where: str, item: dict[str, Any]) -> Iterator[Violation]:
        """Tools that come inside the conversation."""
        if not self.abilities.inline_tools:
            yield refused("O3", where, "defines tools inside the conversation; this model takes none there")
        if item.get("role") != "developer":
            yield refused("O3", f"{where}.role", f"is {item.get('role')!r}; tools are added by developer alone")
        if not item.get("tools"):
            yield misshapen(f"{where}.tools", "a list of at least one tool", item.get("tools"))
        yield from check_tools(item.get("tools"), self.abilities, f"{where}.tools")
        new = tool_names(item.get("tools"))
        for name in sorted(new & self.tools):
            problem = f"{name!r} is defined already; which of two definitions holds is not documented"
            yield Violation("O3", "S", where, problem)
        self.tools = self.tools | new  # not in place: forks share it

    def _check_parts(self, where: str, content: Any) -> Iterator[Violation]:
        """Count breakpoints and images; look at documents."""
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                self.breakpoints += part.get("prompt_cache_breakpoint") is not None
                if part.get("type") == "input_image":
                    data = text_of(part.get("image_url")).partition(";base64,")[2]
                    yield from self.image_too_large(f"{where}[{index}]", data)
                elif part.get("type") == "input_file":
                    data = text_of(part.get("file_data")).partition(";base64,")[2]
                    yield from self.document_refused(f"{where}[{index}]", data)

    def _check_pairing(self, where: str, item: dict[str, Any]) -> Iterator[Violation]:
        call = text_of(item.get("call_id"))
        if call in self.calls:
            yield refused("C3", f"{where}.call_id", f"the id {call!r} was used by an earlier call of this request")
        elif call:
            self.calls.add(call)
            self.waiting[call] = where

    def _check_output(self, where: str, item: dict[str, Any]) -> Iterator[Violation]:
        yield from check_content(f"{where}.output", item.get("output"))
        yield from self._check_parts(f"{where}.output", item.get("output"))
        call = text_of(item.get("call_id"))
        if not call:
            yield refused("C3", f"{where}.call_id", "the output does not say which call it answers")
        elif call in self.answered:
            yield refused("C3", where, f"the call {call!r} has an output already")
        elif call in self.waiting:
            del self.waiting[call]
            self.answered.add(call)
        else:
            self.unasked.append((call, where))
            self.results.add(call)

    def ending(self) -> Iterator[Violation]:
        if not self.position:
            yield refused("O4", "input", "is empty; at least one item is needed")
        if self.reasoning:
            yield _alone(self.reasoning)
        remote = any(self.head.get(field) is not None for field in ELSEWHERE)
        for call, where in self.unasked:
            if call in self.calls:
                yield refused("O1", where, f"answers {call!r}, which is called only after it")
            elif not remote:
                yield refused("O1", where, f"answers {call!r}, which no call has")
        for call, where in self.waiting.items():
            if call not in self.results:
                yield refused("O1", where, f"the call {call!r} has no output")
        if self.breakpoints > self._written():
            problem = f"{self.breakpoints} breakpoints; only the latest {self._written()} are written"
            yield Violation("O6", "$", "input", problem)

    def _written(self) -> int:
        """How many explicit breakpoints the provider writes: one fewer where it sets one itself."""
        options = self.head.get("prompt_cache_options")
        explicit = isinstance(options, dict) and options.get("mode") == "explicit"
        return MOST_BREAKPOINTS if explicit else MOST_BREAKPOINTS - 1


def _alone(where: str) -> Violation:
    return refused("O2", where, "the reasoning stands without the item that followed it")


def check(payload: Any, abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that `payload` breaks; none when it can be sent."""
    if isinstance(payload, dict) and isinstance(payload.get("input"), str):
        text = payload["input"]
        payload = {**payload, "input": [{"role": "user", "content": text}] if text else []}
    return check_whole(payload, ResponsesRules, abilities)
