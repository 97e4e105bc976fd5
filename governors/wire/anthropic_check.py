"""The rules of the Anthropic Messages protocol for the messages of a request (C1 to C5, A1, A2, A4, A5, A10).

`check` takes the parts that `encode` gives or a whole body, of any shape, and never raises. What a payload cannot
show (whether thinking is as it was signed, how a reply ended) is the encoder's and the repairs' to keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .anthropic_check_fields import check_fields
from .base import Abilities, Violation
from .checking import misshapen, refused, text_of, unsendable
from .common import is_blank

THINKING = ("thinking", "redacted_thinking")

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the payload, content as blocks with their places."""

    where: str
    role: str
    blocks: tuple[tuple[str, Block], ...]

    def of_type(self, kind: str) -> list[tuple[str, Block]]:
        return [(where, block) for where, block in self.blocks if block.get("type") == kind]


def check(payload: Any, abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that `payload` breaks; none when it can be sent."""
    if not isinstance(payload, dict):
        return (misshapen("payload", "an object", payload),)
    found = [*unsendable(payload), *check_fields(payload, abilities)]
    turns: list[Turn] = []
    found += _read(payload.get("messages"), turns)
    found += _check_order(turns, abilities)
    for turn in turns:
        found += _check_turn(turn)
    found += _check_pairing(turns)
    return tuple(found)


def _read(messages: Any, turns: list[Turn]) -> Iterator[Violation]:
    """Append the turns that can be read to `turns`; yield what is wrong with the others' shape."""
    if not isinstance(messages, list):
        yield misshapen("messages", "a list", messages)
        return
    if not messages:
        yield refused("A1", "messages", "is empty; the first message must be the user's")
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        if not isinstance(message, dict):
            yield misshapen(where, "an object", message)
            continue
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            yield refused("SHAPE", f"{where}.role", f"is {role!r}; it can be user or assistant")
            continue
        if isinstance(content, str):
            blocks: list[tuple[str, Any]] = [(f"{where}.content", {"type": "text", "text": content})]
        elif isinstance(content, list):
            blocks = [(f"{where}.content[{index}]", block) for index, block in enumerate(content)]
        else:
            yield misshapen(f"{where}.content", "text or a list of blocks", content)
            continue
        if not blocks:
            yield refused("A4", f"{where}.content", "is empty")
        for place, block in blocks:
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                yield misshapen(place, "a block with a type", block)
        kept = tuple(
            (place, block) for place, block in blocks if isinstance(block, dict) and isinstance(block.get("type"), str)
        )
        turns.append(Turn(where, role, kept))


def _check_order(turns: list[Turn], abilities: Abilities) -> Iterator[Violation]:
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index else None
        if before is None and turn.role != "user":
            yield refused("A1", turn.where, f"the first message has role {turn.role}; it must be user")
        elif turn.role == "system":
            yield from _check_system(turns, index, abilities)
        elif before is not None and before.role == turn.role and abilities.strict_alternation:
            yield refused("A1", turn.where, f"has role {turn.role}, as the one before; this host wants them in turn")
    if turns and turns[-1].role == "assistant" and not abilities.prefill:
        yield refused("A7", turns[-1].where, "the last message is the assistant's; this model takes no prefill")


def _check_system(turns: list[Turn], index: int, abilities: Abilities) -> Iterator[Violation]:
    turn = turns[index]
    if not abilities.system_after_user:
        yield refused("A10", turn.where, "has role system; this model takes none inside messages")
        return
    if turns[index - 1].role != "user":
        yield refused("A10", turn.where, f"a system message follows role {turns[index - 1].role}; it must follow user")
    if index + 1 < len(turns) and turns[index + 1].role != "assistant":
        yield refused("A10", turn.where, "a system message must be last or followed by the assistant's")
    for where, block in turn.blocks:
        if block["type"] != "text":
            yield refused("A10", where, f"a system message holds a {block['type']} block; it may hold only text")


def _check_turn(turn: Turn) -> Iterator[Violation]:
    for where, block in turn.blocks:
        kind = block["type"]
        if kind == "text":
            yield from _check_text(where, block)
        elif kind in THINKING:
            yield from _check_thinking(turn, where, block)
        elif kind == "tool_use":
            yield from _check_call(turn, where, block)
        elif kind == "tool_result":
            yield from _check_result(turn, where, block)
    kinds = [block["type"] for _, block in turn.blocks]
    if turn.role == "assistant" and kinds and kinds[-1] in THINKING:
        if all(kind in THINKING for kind in kinds):
            yield refused("C5", turn.where, "the reply is only thinking: leave it out")
        else:
            yield refused("A5", turn.blocks[-1][0], "a reply must not end in thinking")


def _check_text(where: str, block: Block) -> Iterator[Violation]:
    text = block.get("text")
    if not isinstance(text, str):
        yield misshapen(f"{where}.text", "text", text)
    elif is_blank(text):
        yield refused("A4", where, "the text is empty (white space counts as empty)")


def _check_thinking(turn: Turn, where: str, block: Block) -> Iterator[Violation]:
    if turn.role != "assistant":
        yield refused("A5", where, f"thinking stands in a message with role {turn.role}")
    if block.get("cache_control") is not None:
        yield refused("A5", where, "thinking carries a cache mark")
    if block["type"] == "redacted_thinking":
        if not text_of(block.get("data")):
            yield refused("A5", f"{where}.data", "redacted thinking has no data")
        return
    if not text_of(block.get("signature")):
        yield refused("A5", f"{where}.signature", "the signature is empty, which is never valid")
    if not isinstance(block.get("thinking"), str):
        yield misshapen(f"{where}.thinking", "text (it may be empty)", block.get("thinking"))


def _check_call(turn: Turn, where: str, block: Block) -> Iterator[Violation]:
    if turn.role != "assistant":
        yield refused("C2", where, f"a tool call stands in a message with role {turn.role}")
    if not text_of(block.get("name")):
        yield refused("C2", f"{where}.name", "the call names no tool")
    if not text_of(block.get("id")):
        yield refused("C2", f"{where}.id", "the call has no id")
    if not isinstance(block.get("input"), dict):
        yield refused("C2", f"{where}.input", "the arguments are not a JSON object")


def _check_result(turn: Turn, where: str, block: Block) -> Iterator[Violation]:
    if turn.role != "user":
        yield refused("A2", where, f"a tool result stands in a message with role {turn.role}")
    if not text_of(block.get("tool_use_id")):
        yield refused("C3", f"{where}.tool_use_id", "the result does not say which call it answers")
    content = block.get("content")
    if content is None:
        return
    if isinstance(content, str):
        if is_blank(content):
            yield refused("A4", f"{where}.content", "the result's text is empty")
        return
    if not isinstance(content, list):
        yield misshapen(f"{where}.content", "text or a list of blocks", content)
        return
    if not content:
        yield refused("A4", f"{where}.content", "the result's content is an empty list")
    for index, part in enumerate(content):
        place = f"{where}.content[{index}]"
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield misshapen(place, "a block with a type", part)
        elif part["type"] == "text":
            yield from _check_text(place, part)
        elif block.get("is_error"):
            yield refused("A4", place, f"an error result holds a {part['type']} block; it may hold only text")


def _check_pairing(turns: list[Turn]) -> Iterator[Violation]:
    calls = {text_of(block.get("id")) for turn in turns for _, block in turn.of_type("tool_use")} - {""}
    results = {text_of(block.get("tool_use_id")) for turn in turns for _, block in turn.of_type("tool_result")}
    answered: set[str] = set()
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    for turn in turns:
        yield from _check_answers(turn, waiting, answered, calls)
        yield from _unanswered(waiting, results)
        waiting = {}
        for where, block in turn.of_type("tool_use"):
            call = text_of(block.get("id"))
            if call in seen:
                yield refused("A3", f"{where}.id", f"the id {call!r} was used by an earlier call of this request")
            elif call:
                seen.add(call)
                waiting[call] = where
    yield from _unanswered(waiting, results)


def _check_answers(turn: Turn, waiting: dict[str, str], answered: set[str], calls: set[str]) -> Iterator[Violation]:
    """Take what `turn` answers out of `waiting`; yield the results that stand where they must not."""
    other: str | None = None
    for where, block in turn.blocks:
        if block["type"] != "tool_result":
            other = other or where
            continue
        call = text_of(block.get("tool_use_id"))
        if not call:
            continue
        if call in answered:
            yield refused("C3", where, f"the call {call!r} has a result already")
        elif call in waiting and turn.role == "user":
            del waiting[call]
            answered.add(call)
            if other is not None:
                yield refused("A2", where, f"stands after {other}, which is no result; results come first")
        elif call in calls:
            answered.add(call)
            yield refused("A2", where, f"answers {call!r}, which is not a call of the message just before")
        else:
            yield Violation("C4", "S", where, f"answers {call!r}, which no call has")


def _unanswered(waiting: dict[str, str], results: set[str]) -> Iterator[Violation]:
    for call, where in waiting.items():
        if call in results:
            yield refused("A2", where, f"the result of {call!r} is not in the next message")
        else:
            yield refused("C3", where, f"the call {call!r} has no result")
