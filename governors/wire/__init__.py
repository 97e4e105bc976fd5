"""One module a protocol: `encode` messages into a body, `check` a body by the protocol's rules.

`WIRES["anthropic"].encode(...)` is how callers reach a protocol by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import (
    anthropic,
    anthropic_cache,
    anthropic_check,
    anthropic_decode,
    openai_chat,
    openai_chat_check,
    openai_chat_decode,
)
from .base import Abilities, CannotDecode, Decoded, Severity, Violation, Wire

__all__ = ["WIRES", "Abilities", "CannotDecode", "Decoded", "Severity", "Violation", "Wire"]

WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "anthropic": Wire(
            name="anthropic",
            encode=anthropic.encode,
            body=anthropic.body,
            mark_cache=anthropic_cache.mark_cache,
            check=anthropic_check.check,
            decode=anthropic_decode.decode,
            prefix_blocks=anthropic_cache.prefix_blocks,
            prefix_hash=anthropic_cache.prefix_hash,
        ),
        "openai_chat": Wire(
            name="openai_chat",
            encode=openai_chat.encode,
            body=openai_chat.body,
            mark_cache=openai_chat.mark_cache,
            check=openai_chat_check.check,
            decode=openai_chat_decode.decode,
            prefix_blocks=openai_chat.prefix_blocks,
            prefix_hash=openai_chat.prefix_hash,
        ),
    }
)
