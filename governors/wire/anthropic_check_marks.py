"""The rules of the Anthropic Messages protocol for cache marks (A8, A9), fed mark by mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .anthropic_cache import MOST_MARKS, block_marks
from .base import Violation
from .checking import SHAPE, duplicate, refused, text_of
from .common import is_blank

#: The provider looks back so many blocks from a mark for an older cache entry.
LOOK_BACK = 20

#: A mark with its place and the block that carries it.
Placed = tuple[str, Mapping[str, Any], Any]


class Marks:
    """The marks so far, in the provider's order: tools, system, messages, the one at the top of the body."""

    def __init__(self) -> None:
        self.count = 0
        self.first_over = ""
        self.five_minutes = ""
        self.since = 0  # blocks after the last mark in the messages

    def take(self, placed: Iterable[Placed]) -> Iterator[Violation]:
        for where, block, mark in placed:
            self.count += 1
            if self.count == MOST_MARKS + 1:
                self.first_over = where
            if (
                not isinstance(mark, dict)
                or mark.get("type") != "ephemeral"
                or mark.get("ttl") not in (None, "5m", "1h")
            ):
                yield refused(SHAPE, where, "the cache mark is not ephemeral for 5m or 1h")
                continue
            if block.get("type") == "text" and is_blank(text_of(block.get("text"))):
                yield refused("A8", where, "an empty text carries a cache mark")
            if mark.get("ttl") != "1h":
                self.five_minutes = self.five_minutes or where
            elif self.five_minutes:
                yield refused("A8", where, f"a 1h mark stands after the 5m mark at {self.five_minutes}")

    def take_block(self, where: str, block: Mapping[str, Any], *, cleared: bool) -> Iterator[Violation]:
        """The marks on a block of a message. `cleared`: the provider will clear that message."""
        placed = list(block_marks(block, where))
        self.since = 0 if placed else self.since + 1
        yield from self.take(placed)
        if cleared:
            for place, _, _ in placed:
                yield refused("A8", place, "a system message with clear_at is marked")

    def ending(self, top: Any, last: Mapping[str, Any]) -> Iterator[Violation]:
        """What is wrong when the request ends here; `top` is the mark on the body, `last` the last block."""
        count, first_over = self.count, self.first_over
        if top is not None:
            whole = duplicate(self)
            yield from whole.take([("cache_control", {}, top)])
            count, first_over = whole.count, whole.first_over
            above, below = _lifetime(top), _lifetime(last.get("cache_control"))
            if above and below and above != below:
                yield refused("A8", "cache_control", "its lifetime differs from the mark on the last block")
        elif self.count and self.since > LOOK_BACK:
            problem = f"{self.since} blocks after the last cache mark are paid in full each time"
            yield Violation("A9", "$", "messages", problem)
        if count > MOST_MARKS:
            yield refused("A8", first_over, f"is cache mark {MOST_MARKS + 1} of {count}; {MOST_MARKS} are allowed")


def _lifetime(mark: Any) -> str:
    return str(mark.get("ttl") or "5m") if isinstance(mark, dict) else ""
