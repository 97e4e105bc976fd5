"""One module a protocol: `encode` messages into a body, `check` a body by the protocol's rules.

`WIRES["anthropic"].encode(...)` is how callers reach a protocol by its name. `Encoder` does it message by message.

Rules, by the code that a violation names (E: refused, S: lost silently, $: costs money), and where they are kept:

    C1 C2 C3 C4    every wire's check: clean text, whole calls, one result a call (C4: S, a result without call)
    C5             the check, for replies of reasoning alone; replies that failed are the repairs' to drop
    C6 ($)         the check, for the order of tools; sorted schema keys by the encoders. A clock in the system prompt
                   cannot be told from a date that belongs there: not checked
    C7             the encoders: reasoning goes back to the model and wire that it came from
    A1 to A5, A7   anthropic check
    A6, O3         `check_binding`, which needs to know where reasoning was produced
    A8, A9 ($)     anthropic check, for cache marks; of A9 the blocks left behind the last mark. Least sizes and what
                   a changed tool_choice costs cannot be seen in one request
    A10, A11       anthropic check, for system messages and compaction blocks
    A12            every wire's check: counts and sizes, by abilities; on anthropic also requests for 0 tokens
    O1 O2 O4 O5 O6 openai_responses check (O6: $)
    H1 to H4       openai_chat check
    G1             H3 with `strict_alternation`; G2 with `call_signatures`; G3 by `schema_references`, A12
    DEEPSEEK       `replay_reasoning` (openai_chat), `unsigned_thinking` (anthropic)
    KIMI           `forced_tool`; `efforts` and `thinking_field` shape the body
    GLM            `efforts`, `keeps_thinking`, `schema_references`
    MINIMAX        A1 with `strict_alternation`
    SHAPE          what is not the protocol's shape at all

Which host wants what is data (`Abilities`): vendors are named only in these codes.
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
    openai_chat_prefix,
    openai_responses,
    openai_responses_check,
    openai_responses_decode,
    openai_responses_prefix,
)
from .base import Abilities, CannotDecode, Decoded, Severity, Violation
from .binding import check_binding
from .encoder import Encoder, encode_bytes
from .protocol import Stepwise, Wire

__all__ = [
    "WIRES",
    "Abilities",
    "CannotDecode",
    "Decoded",
    "Encoder",
    "Severity",
    "Violation",
    "Wire",
    "check_binding",
    "encode_bytes",
]

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
            stepwise=Stepwise(
                part="messages",
                encode_unit=anthropic.encode_unit,
                opening=anthropic.opening,
                merge=anthropic.merge,
                rules=anthropic_check.AnthropicRules,
                split=anthropic_cache.split,
                reasoning=anthropic_cache.reasoning,
            ),
        ),
        "openai_chat": Wire(
            name="openai_chat",
            encode=openai_chat.encode,
            body=openai_chat.body,
            mark_cache=openai_chat.mark_cache,
            check=openai_chat_check.check,
            decode=openai_chat_decode.decode,
            prefix_blocks=openai_chat_prefix.prefix_blocks,
            prefix_hash=openai_chat_prefix.prefix_hash,
            stepwise=Stepwise(
                part="messages",
                encode_unit=openai_chat.encode_unit,
                opening=openai_chat.opening,
                merge=openai_chat.merge,
                rules=openai_chat_check.ChatRules,
                split=openai_chat_prefix.split,
                reasoning=openai_chat_prefix.reasoning,
            ),
        ),
        "openai_responses": Wire(
            name="openai_responses",
            encode=openai_responses.encode,
            body=openai_responses.body,
            mark_cache=openai_responses_prefix.mark_cache,
            check=openai_responses_check.check,
            decode=openai_responses_decode.decode,
            prefix_blocks=openai_responses_prefix.prefix_blocks,
            prefix_hash=openai_responses_prefix.prefix_hash,
            stepwise=Stepwise(
                part="input",
                encode_unit=openai_responses.encode_unit,
                opening=openai_responses.opening,
                merge=None,
                rules=openai_responses_check.ResponsesRules,
                split=openai_responses_prefix.split,
                reasoning=openai_responses_prefix.reasoning,
                binding_rule="O3",
            ),
        ),
    }
)
