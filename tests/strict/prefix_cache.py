"""Prompt caches as providers keep them, so that usage is told as it would be.

Tokens are counted as a quarter of the canonical bytes. Time is the number of the request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

LOOK_BACK = 20  # blocks before a mark in which an older entry is found (Anthropic)
CHUNK = 128  # tokens by which an automatic cache grows (OpenAI)


def tokens_of(block: bytes) -> int:
    return max(1, len(block) // 4)


def rolled(blocks: Sequence[bytes]) -> list[str]:
    """The digest of every prefix of `blocks`."""
    digest, found = hashlib.sha256(), []
    for block in blocks:
        digest.update(len(block).to_bytes(8, "big") + block)
        found.append(digest.copy().hexdigest())
    return found


@dataclass(frozen=True, slots=True)
class Told:
    """Tokens of one prompt."""

    plain: int
    read: int
    written: int = 0
    written_long: int = 0

    @property
    def prompt(self) -> int:
        return self.plain + self.read + self.written + self.written_long


@dataclass(slots=True)
class MarkedCache:
    """Anthropic's: what stands before a mark is kept; a mark finds an entry at most 20 blocks before itself."""

    least: int = 1024
    kept: set[str] = field(default_factory=set)

    def ask(self, blocks: Sequence[bytes], marks: Sequence[tuple[int, bool]]) -> Told:
        """`marks`: the blocks that carry one, and whether it asks for the long lifetime."""
        digests, sizes = rolled(blocks), [tokens_of(block) for block in blocks]
        total, read = sum(sizes), 0
        for place, _ in marks:
            for at in range(place, max(-1, place - LOOK_BACK), -1):
                if digests[at] in self.kept:
                    read = max(read, sum(sizes[: at + 1]))
                    break
        upto, short, long = read, 0, 0
        for place, lasting in marks:
            size = sum(sizes[: place + 1])
            if size < self.least:
                continue
            self.kept.add(digests[place])
            if size > upto:
                short, long = (short, long + size - upto) if lasting else (short + size - upto, long)
                upto = size
        return Told(total - upto, read, short, long)


@dataclass(slots=True)
class AutomaticCache:
    """OpenAI's and most others': the longest prefix that was seen, in steps of 128 tokens from 1,024 on."""

    least: int = 1024
    kept: set[str] = field(default_factory=set)

    def ask(self, blocks: Sequence[bytes]) -> Told:
        digests, sizes = rolled(blocks), [tokens_of(block) for block in blocks]
        total, seen = sum(sizes), 0
        for digest, size in zip(digests, sizes, strict=True):
            if digest not in self.kept:
                break
            seen += size
        self.kept.update(digests)
        read = seen // CHUNK * CHUNK
        read = read if read >= self.least else 0
        return Told(total - read, read)
