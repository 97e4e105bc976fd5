"""The rules of the Anthropic Messages protocol for one message and its blocks (C2, C5, A2 to A5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .base import Abilities, Violation
from .checking import misshapen, refused, text_of
from .common import is_blank

THINKING = ("thinking", "redacted_thinking")
CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the payload, content as blocks with their places. `clears`: it says when it is cleared."""

    where: str
    role: str
    blocks: tuple[tuple[str, Block], ...]
    clears: bool = False

    def of_type(self, kind: str) -> list[tuple[str, Block]]:
        return [(where, block) for where, block in self.blocks if block["type"] == kind]

    @property
    def summary_first(self) -> bool:
        return bool(self.blocks) and self.blocks[0][1]["type"] == "compaction"


def read_turn(message: Any, where: str) -> Iterator[Violation | Turn]:
    """What is wrong with a message's shape, then what of it can be read, if anything."""
    if not isinstance(message, dict):
        yield misshapen(where, "an object", message)
        return
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        yield refused("SHAPE", f"{where}.role", f"is {role!r}; it can be user or assistant")
        return
    if isinstance(content, str):
        blocks: list[tuple[str, Any]] = [(f"{where}.content", {"type": "text", "text": content})]
    elif isinstance(content, list):
        blocks = [(f"{where}.content[{index}]", block) for index, block in enumerate(content)]
    else:
        yield misshapen(f"{where}.content", "text or a list of blocks", content)
        return
    if not blocks:
        yield refused("A4", f"{where}.content", "is empty")
    kept = []
    for place, block in blocks:
        if isinstance(block, dict) and isinstance(block.get("type"), str):
            kept.append((place, block))
        else:
            yield misshapen(place, "a block with a type", block)
    yield Turn(where, role, tuple(kept), message.get("clear_at") is not None)


def check_names(where: str, block: Block, identity: re.Pattern[str], tools: Collection[str]) -> Iterator[Violation]:
    """The ids and names in a block and in those inside it (A3). `tools` are the names of the request's tools."""
    kind = block["type"]
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind)
    given = text_of(block.get(key)) if key else ""
    if given and not (CALL_ID.fullmatch(given) and identity.fullmatch(given)):
        yield refused("A3", f"{where}.{key}", f"the id {given!r} has a form that this provider refuses")
    if kind == "tool_use" and text_of(block.get("name")) and not TOOL_NAME.fullmatch(block["name"]):
        yield refused("A3", f"{where}.name", f"{block['name']!r} is not 1 to 128 letters, digits, _ and -")
    inner = block.get("content")
    places = (
        [(f"{where}.content[{index}]", part) for index, part in enumerate(inner)] if isinstance(inner, list) else []
    )
    for place, part in ((where, block), *places):
        if (
            isinstance(part, dict)
            and part.get("type") == "tool_reference"
            and text_of(part.get("tool_name")) not in tools
        ):
            yield refused("A3", place, f"refers to a tool {part.get('tool_name')!r} that is not in tools")


def check_turn(turn: Turn, abilities: Abilities) -> Iterator[Violation]:
    """The rules broken by a message that is looked at alone."""
    for where, block in turn.blocks:
        kind = block["type"]
        if kind == "text":
            yield from _check_text(where, block)
        elif kind in THINKING:
            yield from _check_thinking(turn, where, block, abilities)
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


def _check_thinking(turn: Turn, where: str, block: Block, abilities: Abilities) -> Iterator[Violation]:
    if turn.role != "assistant":
        yield refused("A5", where, f"thinking stands in a message with role {turn.role}")
    if block.get("cache_control") is not None:
        yield refused("A5", where, "thinking carries a cache mark")
    if block["type"] == "redacted_thinking":
        if not text_of(block.get("data")):
            yield refused("A5", f"{where}.data", "redacted thinking has no data")
        return
    if abilities.unsigned_thinking:
        if block.get("signature"):
            yield refused("DEEPSEEK", f"{where}.signature", "this host takes thinking only without signature")
    elif not text_of(block.get("signature")):
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
