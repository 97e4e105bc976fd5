"""The shape of a wire: the functions that every protocol brings, whole and step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..messages import ToolSpec
from .base import Abilities, Decoded, Payload, Violation
from .checking import MessageRules
from .compaction_items import Compacting
from .encoded import Encoded


class Encode(Protocol):
    def __call__(
        self,
        messages: Sequence[Any],
        *,
        system: str,
        tools: Sequence[ToolSpec],
        abilities: Abilities,
        model: str | None = None,
    ) -> Payload: ...


class Body(Protocol):
    def __call__(
        self,
        parts: Mapping[str, Any],
        *,
        model: str,
        max_output: int,
        abilities: Abilities,
        thinking: str | None = None,
    ) -> Payload: ...


class MarkCache(Protocol):
    """`ttl` asks for a lifetime that the provider names (`5m` and `1h` on anthropic, `30m` and `12h` on
    openai_responses); None is its shortest. `key` is a `prompt_cache_key` where the protocol has one: requests that
    begin alike should have the same."""

    def __call__(self, body: Payload, ttl: str | None = None, key: str | None = None) -> Payload: ...


class Decode(Protocol):
    def __call__(self, payload: Mapping[str, Any] | Sequence[Any], *, model: str | None = None) -> Decoded: ...


@dataclass(frozen=True, slots=True)
class Stepwise:
    """What an `Encoder` needs to do one message at a time what the wire does for a whole list.

    `part` is the part of the body that holds the messages. `encode_unit` encodes a message, or all results of a
    step. `opening` stands before a conversation that the assistant opens, where the user must. `merge` makes one
    message of two neighbours, for hosts that want the roles in turn (None: this wire has no such hosts). `rules`
    begins a check with the body's other parts. `split` gives a message's blocks; `reasoning` says of each block
    whether it is of a reply, and what its reasoning is signed with. `binding_rule` is the code of the rule on that.
    `between` gives what has to stand between two neighbours (None: nothing ever has to). `opens` tells of a message
    of the assistant's that it may come first. `compacts` says how the provider's own compaction is asked for, with
    what is wanted of it (None: this wire has none).
    """

    part: str
    encode_unit: Callable[[Any, Abilities, str | None], Sequence[Encoded]]
    opening: Callable[[Abilities], Encoded | None]
    merge: Callable[[Encoded, Encoded], Encoded] | None
    rules: Callable[[Mapping[str, Any], Abilities], MessageRules]
    split: Callable[[Any], Iterator[bytes]]
    reasoning: Callable[[Any], Iterator[tuple[bool, str | None]]]
    binding_rule: Literal["A6", "O3"] = "A6"
    between: Callable[[Mapping[str, Any], Mapping[str, Any], Abilities], Encoded | None] | None = None
    opens: Callable[[Mapping[str, Any]], bool] = lambda message: False
    compacts: Callable[[str | None], Compacting] | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol: what turns messages into its request bodies and back, and knows its rules.

    `encode` gives the parts that hold the conversation, `body` puts a request around them, `mark_cache` adds the
    marks that ask for caching (on a copy), `check` lists the broken rules of parts or of a body, `decode` reads
    either back. `prefix_blocks` is the body as canonical bytes, block by block: one request extends another when
    its blocks start with the other's. `prefix_hash` is one hash over them. `stepwise` is for `Encoder`.
    """

    name: str
    encode: Encode
    body: Body
    mark_cache: MarkCache
    check: Callable[[Any, Abilities], tuple[Violation, ...]]
    decode: Decode
    prefix_blocks: Callable[[Mapping[str, Any]], list[bytes]]
    prefix_hash: Callable[[Mapping[str, Any]], str]
    inline_tools: Callable[[Abilities], bool]
    stepwise: Stepwise
