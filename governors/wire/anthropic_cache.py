"""Caching on the Anthropic wire: where the marks go, and the prefix that the provider compares.

Laws:
- A body is never changed: `mark_cache` copies the lists and blocks it marks and shares the rest.
- Marks are no part of the prefix: `prefix_blocks` is the same with and without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .base import Payload
from .common import is_blank
from .encoded import canonical, last, message_blocks, roll, roll_messages

#: Marks a request may carry (A8).
MOST_MARKS = 4

#: The provider looks back 20 blocks from a mark, itself included, for an older one (A9); a step may add more than
#: that. So in what is new since the last reply, further marks stand so many blocks apart.
STRIDE = 15

#: Messages at the end that marks are looked for in. An encoder shows no more of them than that, and its last.
NEAREST = 60

#: The lifetime that a mark can ask for; one that names none lasts 5 minutes.
LONGEST = "1h"

#: Blocks that can carry a mark. Thinking never can (A5).
MARKABLE = frozenset({"text", "image", "tool_use", "tool_result", "document", "tool_addition", "tool_removal"})


def mark_cache(body: Payload, ttl: str | None = None, key: str | None = None) -> Payload:
    """`body` with cache marks: on the system prompt, the newest block, where the request before this one ended, and on
    the last tool, or within a long step each 15 blocks.

    Where the request before ended is where the newest reply begins: its end is found there whatever the step has
    added. The system prompt is rendered after the tools, so that its mark covers both; one on the tools keeps them warm
    when a new epoch writes another system prompt.

    `ttl` is `1h`, or anything else for 5 minutes. A body that has marks already comes back as it is: whoever set them
    knows why. `key` says nothing on this wire.
    """
    if has_marks(body):
        return body
    mark: dict[str, str] = {"type": "ephemeral"}
    if ttl == LONGEST:
        mark["ttl"] = ttl
    fronts = [(part, place) for part in ("system", "tools") if (place := _last_carrier(body, part)) is not None]
    messages = body.get("messages")
    places = _places(messages, MOST_MARKS - len(fronts[:1])) if isinstance(messages, list) else []
    marked = dict(body)
    for part, place in fronts[: MOST_MARKS - len(places)]:
        marked[part] = _with_mark(body[part], place, mark)
    if isinstance(messages, list):
        marked["messages"] = _mark_messages(messages, places, mark)
    return marked


def _last_carrier(body: Mapping[str, Any], part: str) -> int | None:
    """The index of the last block of `part` that can carry a mark."""
    blocks = body.get(part)
    if not isinstance(blocks, list):
        return None
    return next((index for index in reversed(range(len(blocks))) if _can_carry(blocks[index], part)), None)


def _can_carry(block: Any, part: str) -> bool:
    if not isinstance(block, dict):
        return False
    if part == "tools":
        return not block.get("defer_loading")
    if block.get("type") == "text":
        text = block.get("text")
        return isinstance(text, str) and not is_blank(text)
    return block.get("type") in MARKABLE


def _with_mark(blocks: list[Any], index: int, mark: dict[str, str]) -> list[Any]:
    return [*blocks[:index], {**blocks[index], "cache_control": mark}, *blocks[index + 1 :]]


def _mark_messages(messages: list[Any], places: Iterable[tuple[int, int]], mark: dict[str, str]) -> list[Any]:
    marked = list(messages)
    for position, index in places:
        marked[position] = {**marked[position], "content": _with_mark(marked[position]["content"], index, mark)}
    return marked


def _places(messages: Sequence[Any], room: int) -> list[tuple[int, int]]:
    """Where at most `room` marks go, from the newest block back: message and block."""
    places: list[tuple[int, int]] = []
    passed = STRIDE  # blocks since the mark before, so that the very last block that can takes one
    answered = False  # the newest reply was passed
    for position in range(len(messages) - 1, max(len(messages) - 1 - NEAREST, -1), -1):
        reply = isinstance(messages[position], dict) and messages[position].get("role") == "assistant"
        ends_here = answered and not reply
        answered = answered or reply
        for index, block in reversed(list(enumerate(_carriers(messages[position])))):
            if (ends_here or passed >= STRIDE) and _can_carry(block, "messages"):
                if ends_here:
                    return [*places[: room - 1], (position, index)]
                places.append((position, index))
                passed = 0
            passed += 1
    return places[:room]


def _carriers(message: Any) -> list[Any]:
    """The blocks of a message that the provider will not clear."""
    return [] if isinstance(message, dict) and message.get("clear_at") is not None else _content(message)


def _content(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def has_marks(body: Mapping[str, Any]) -> bool:
    """Whether a cache mark stands anywhere in `body`."""
    return any(True for _ in marks(body))


def marks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """The cache marks of a body in the provider's order (tools, system, messages): place, block, mark.

    A mark at the top of the body comes last, as the provider puts it on the last block that can carry one.
    """
    for part in ("tools", "system"):
        blocks = body.get(part)
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            yield from _marks_of(block, f"{part}[{index}]")
    messages = body.get("messages")
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        for index, block in enumerate(_content(message)):
            yield from block_marks(block, f"messages[{position}].content[{index}]")
    yield from _marks_of(body, "cache_control")


def block_marks(block: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """The marks on a block and on the blocks in it."""
    for inner, nested in enumerate(_content(block)):
        yield from _marks_of(nested, f"{where}.content[{inner}]")
    yield from _marks_of(block, where)


def _marks_of(block: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    if isinstance(block, Mapping) and block.get("cache_control") is not None:
        yield where, block, block["cache_control"]


def prefix_blocks(body: Mapping[str, Any]) -> list[bytes]:
    """The system prompt, the tools and every content block as canonical bytes, in order, without cache marks."""
    blocks = _leading_blocks(body)
    for message in body.get("messages") or []:
        blocks += message_blocks(message, split)
    return blocks


def prefix_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 in hex over `prefix_blocks`, rolled block by block."""
    lead = last(roll(b"", _leading_blocks(body)))
    return last(roll_messages(lead, body.get("messages") or [], split), lead).hex()


def _leading_blocks(body: Mapping[str, Any]) -> list[bytes]:
    blocks = [canonical(["system", unmarked(block)]) for block in _as_blocks(body.get("system") or [])]
    return blocks + [canonical(["tool", unmarked(tool)]) for tool in body.get("tools") or []]


def split(message: Any) -> Iterator[bytes]:
    """The canonical blocks of a message."""
    if not isinstance(message, dict):
        yield canonical(["?", message])
        return
    for block in _as_blocks(message.get("content")):
        yield canonical([message.get("role"), unmarked(block)])


def reasoning(message: Any) -> Iterator[tuple[bool, str | None]]:
    """Of each block of a message: whether it is of a reply, and the signature when it is thinking."""
    if not isinstance(message, dict):
        yield False, None
        return
    for block in _as_blocks(message.get("content")):
        kind = block.get("type") if isinstance(block, dict) else None
        key = {"thinking": "signature", "redacted_thinking": "data"}.get(kind) if isinstance(kind, str) else None
        signature = block.get(key) if key else None
        yield message.get("role") == "assistant", signature if isinstance(signature, str) else None


def _as_blocks(content: Any) -> list[Any]:
    """Content as a list of blocks: a string is short for one text block."""
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def unmarked(block: Any) -> Any:
    """`block` without cache marks, on itself or on the blocks in a result; itself when it has none."""
    if not isinstance(block, dict):
        return block
    if "cache_control" in block:
        block = {name: value for name, value in block.items() if name != "cache_control"}
    content = block.get("content")
    if isinstance(content, list) and any(isinstance(item, dict) and "cache_control" in item for item in content):
        block = {**block, "content": [unmarked(item) for item in content]}
    return block
