"""The rules of the Anthropic Messages protocol for the order of messages (A1, A2, A3, A7, A10, A11; C3, C4).

`check` takes the parts that `encode` gives or a whole body, of any shape, and never raises. What a payload cannot
show (whether thinking is as it was signed, how a reply ended) is the encoder's and the repairs' to keep; whether
thinking stands where it was produced (A6) is `check_binding`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from .anthropic_cache import marks
from .anthropic_check_blocks import Block, Turn, check_names, check_turn, read_turn
from .anthropic_check_fields import check_fields
from .anthropic_check_marks import Marks
from .anthropic_check_tools import check_change, defined_names, tool_names
from .anthropic_tools import CHANGES
from .base import Abilities, Violation
from .checking import MessageRules, check_whole, duplicate, refused, text_of
from .common import is_blank


class AnthropicRules(MessageRules):
    """The check of one request, fed message by message."""

    def __init__(self, head: Mapping[str, Any], abilities: Abilities) -> None:
        super().__init__(head, abilities)
        self.top += check_fields(self.head, abilities)
        self.identity = re.compile(abilities.id_pattern)
        self.tools = tool_names(self.head.get("tools"))
        self.marks = Marks()
        self.top += self.marks.take(marks(self.head | {"cache_control": None}))
        self.before: Turn | None = None
        self.summarised = False  # a compaction block has been

    def fork(self) -> Self:
        forked = super().fork()
        forked.marks = duplicate(self.marks)
        return forked

    def take(self, message: Any, where: str) -> Iterator[Violation]:
        turn = None
        for each in read_turn(message, where):
            if isinstance(each, Turn):
                turn = each
            else:
                yield each
        if turn is None:
            return
        yield from self._check_order(turn)
        yield from check_turn(turn, self.abilities)
        for place, block in turn.blocks:
            yield from check_names(place, block, self.identity, self.tools)
            yield from self._check_media(place, block)
            if block["type"] == "compaction":
                yield from self._check_compaction(turn, place, block)
            yield from self.marks.take_block(place, block, cleared=turn.role == "system" and turn.clears)
        yield from self._check_pairing(turn)
        self.before = turn

    def _check_order(self, turn: Turn) -> Iterator[Violation]:
        before = self.before
        if before is None:
            if turn.role != "user" and not turn.summary_first:
                yield refused("A1", turn.where, f"the first message has role {turn.role}; it must be user")
        elif turn.role == "system" and self.abilities.system_after_user and before.role not in ("user", "system"):
            yield refused("A10", turn.where, f"a system message follows role {before.role}; it must follow user")
        elif before.role == turn.role != "system" and self.abilities.strict_alternation:
            yield refused("A1", turn.where, f"has role {turn.role}, as the one before; this host wants them in turn")
        if before is not None and before.role == "system" and turn.role == "user":
            yield refused("A10", before.where, "a system message must be last or followed by the assistant's")
        if turn.role == "system" and before is not None:
            if not self.abilities.system_after_user:
                yield refused("A10", turn.where, "has role system; this model takes none inside messages")
            yield from self._check_system(turn)

    def _check_system(self, turn: Turn) -> Iterator[Violation]:
        """The blocks of a system message: text, and tools that come and go from here on."""
        for where, block in turn.blocks:
            if block["type"] not in CHANGES:
                if block["type"] != "text":
                    yield refused("A10", where, f"a system message holds a {block['type']} block; only text may stand")
                continue
            if not self.abilities.inline_tools:
                yield refused("A10", where, "changes tools inside the conversation; this host takes it only in tools")
            if turn.clears:
                yield refused("A10", where, "a system message with clear_at changes tools; it may only hold text")
            yield from check_change(where, block, self.tools, self.abilities)
            self.tools = self.tools | defined_names(block)  # not in place: forks share it

    def _check_media(self, where: str, block: Block) -> Iterator[Violation]:
        content = block.get("content")
        inner = content if isinstance(content, list) and block["type"] == "tool_result" else []
        for part in (block, *inner):
            source = part.get("source") if isinstance(part, dict) else None
            data = source.get("data") if isinstance(source, dict) else None
            if isinstance(part, dict) and part.get("type") == "image":
                yield from self.image_too_large(where, data)
            elif isinstance(part, dict) and part.get("type") == "document":
                yield from self.document_refused(where, data)

    def _check_compaction(self, turn: Turn, where: str, block: Block) -> Iterator[Violation]:
        content = block.get("content")
        if content is None:  # a compaction that failed: the provider passes over it
            return
        if not isinstance(content, str) or is_blank(content):
            yield refused("A11", f"{where}.content", "the summary is empty")
        if self.summarised:
            yield refused("A11", where, "a second compaction block has content; one may")
        elif self.before is not None or turn.blocks[0][1] is not block:
            yield refused("A11", where, "a compaction block is not the first block of the conversation")
        self.summarised = True

    def _check_pairing(self, turn: Turn) -> Iterator[Violation]:
        yield from self._check_answers(turn)
        self.unanswered += self.waiting.items()
        self.waiting = {}
        for where, block in turn.of_type("tool_use"):
            call = text_of(block.get("id"))
            if call in self.calls:
                yield refused("A3", f"{where}.id", f"the id {call!r} was used by an earlier call of this request")
            elif call:
                self.calls.add(call)
                self.waiting[call] = where

    def _check_answers(self, turn: Turn) -> Iterator[Violation]:
        """Take what `turn` answers out of `waiting`; yield the results that stand where they must not."""
        other: str | None = None
        for where, block in turn.blocks:
            if block["type"] != "tool_result":
                other = other or where
                continue
            call = text_of(block.get("tool_use_id"))
            if not call:
                continue
            self.results.add(call)
            if call in self.answered:
                yield refused("C3", where, f"the call {call!r} has a result already")
            elif call in self.waiting and turn.role == "user":
                del self.waiting[call]
                self.answered.add(call)
                if other is not None:
                    yield refused("A2", where, f"stands after {other}, which is no result; results come first")
            elif call in self.calls:
                self.answered.add(call)
                yield _elsewhere(where, call)
            else:
                self.unasked.append((call, where))

    def ending(self) -> Iterator[Violation]:
        if not self.position:
            yield refused("A1", "messages", "is empty; the first message must be the user's")
        compacts = self.head.get("compaction") is not None  # it may end anywhere but in an open call
        if self.before is not None and self.before.role == "assistant" and not (compacts or self.abilities.prefill):
            yield refused("A7", self.before.where, "the last message is the assistant's; this model takes no prefill")
        for call, where in self.unasked:
            if call in self.calls:
                yield _elsewhere(where, call)
            else:
                yield Violation("C4", "S", where, f"answers {call!r}, which no call has")
        for call, where in (*self.unanswered, *self.waiting.items()):
            if call in self.results:
                yield refused("A2", where, f"the result of {call!r} is not in the next message")
            else:
                yield refused("C3", where, f"the call {call!r} has no result")
        if self.waiting and compacts:
            yield refused("A11", "compaction", "the request to compact ends in an open tool call")
        last = self.before.blocks[-1][1] if self.before is not None and self.before.blocks else {}
        yield from self.marks.ending(self.head.get("cache_control"), last)


def _elsewhere(where: str, call: str) -> Violation:
    return refused("A2", where, f"answers {call!r}, which is not a call of the message just before")


def check(payload: Any, abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that `payload` breaks; none when it can be sent."""
    return check_whole(payload, AnthropicRules, abilities)
