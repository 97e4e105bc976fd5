"""Encoded messages and their bytes: what goes over the line, and what two requests are compared by.

Laws:
- An encoded message is shared between requests. Nobody changes one; whoever needs a change copies it.
- Its bytes, its canonical blocks and the rolling hash after it are worked out once and kept with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

Split: TypeAlias = Callable[[Any], Iterator[bytes]]


class Encoded(dict[str, Any]):
    """An encoded message, as it goes into a payload, with what was computed from it."""

    __slots__ = ("_raw", "_rolled", "blocks")
    blocks: tuple[bytes, ...] | None

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.blocks = None
        self._raw: bytes | None = None
        self._rolled: tuple[bytes, tuple[bytes, ...]] | None = None

    @property
    def raw(self) -> bytes:
        """The message as JSON in UTF-8. Raises `ValueError` when it holds a lone surrogate."""
        if self._raw is None:
            self._raw = dump_bytes(self)
        return self._raw

    def raw_marked(self, marked: Mapping[str, Any]) -> bytes:
        """The bytes of `marked`: this message, with keys added at the end of some blocks of its content.

        Where only the last block is marked, as mostly, the mark is put into the bytes that are kept.
        """
        before, after = self["content"], marked["content"]
        shared = all(map(_same, before[:-1], after[:-1]))
        if not shared or next(reversed(self)) != "content":
            return dump_bytes(marked)
        added = {key: value for key, value in after[-1].items() if key not in before[-1]}
        return b"".join((self.raw[: -len(b"}]}")], b",", dump_bytes(added)[1:], b"]}"))

    def rolled(self, before: bytes, split: Split) -> tuple[bytes, ...]:
        """The rolling digest after each block of this message, `before` being the digest up to it."""
        if self._rolled is None or self._rolled[0] != before:
            self._rolled = (before, tuple(roll(before, message_blocks(self, split))))
        return self._rolled[1]


def _same(one: object, other: object) -> bool:
    return one is other


# Made once: making one for each call costs more than what it does for a short message.
_as_sent = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def dump_bytes(value: Any) -> bytes:
    """`value` as JSON in UTF-8, as it is sent: without spaces, keys as they stand, nothing escaped needlessly."""
    return _as_sent(value).encode()


def canonical(value: Any) -> bytes:
    """The bytes by which two blocks are compared: JSON with sorted keys."""
    return _sorted(value).encode("utf-8", "surrogatepass")


def message_blocks(message: Any, split: Split) -> tuple[bytes, ...]:
    """The canonical blocks of one message of a body, worked out once for a message that `encode` made."""
    if not isinstance(message, Encoded):
        return tuple(split(message))
    if message.blocks is None:
        message.blocks = tuple(split(message))
    return message.blocks


def roll(digest: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The SHA-256 digests that follow `digest`: each step hashes the digest so far and the next block."""
    for block in blocks:
        digest = hashlib.sha256(digest + block).digest()
        yield digest


def roll_messages(digest: bytes, messages: Iterable[Any], split: Split) -> Iterator[bytes]:
    """The digests after each block of `messages`; for messages hashed before, those kept with them."""
    for message in messages:
        rolled = message.rolled(digest, split) if isinstance(message, Encoded) else roll(digest, split(message))
        for digest in rolled:  # the digest goes on from the last one of each message
            yield digest


def last(digests: Iterable[bytes], start: bytes = b"") -> bytes:
    """The last of `digests`, or `start` when there is none."""
    newest = start
    for newest in digests:  # noqa: B007 # the last one is what is wanted
        pass
    return newest


def cache_key(blocks: Iterable[bytes]) -> str:
    """A `prompt_cache_key` for requests that begin with `blocks`: it tells nothing of what they hold."""
    return hashlib.sha256(b"\n".join(blocks)).hexdigest()[:32]


def rolling_hash(blocks: Iterable[bytes]) -> str:
    """SHA-256 in hex, rolled block by block: each step hashes the digest so far and the next block."""
    return last(roll(b"", blocks)).hex()
