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
    A10, A11       anthropic check, for system messages, the tools that come and go in them, and compaction blocks
    A12            every wire's check: counts and sizes, by abilities; on anthropic also requests for 0 tokens
    O1 O2 O4 O5 O6 openai_responses check (O6: $); O3 too, for tools that are added inside the conversation
    H1 to H4       openai_chat check
    G1             H3 with `strict_alternation`; G2 with `call_signatures`; G3 by `schema_references`, A12
    DEEPSEEK       `replay_reasoning` (openai_chat), `unsigned_thinking` (anthropic)
    KIMI           `forced_tool`, `empty_reasoning`; `efforts` and `thinking_field` shape the body
    GLM            `efforts`, `keeps_thinking`, `schema_references`
    MISTRAL        `user_after_results`
    MINIMAX        A1 with `strict_alternation`
    SHAPE          what is not the protocol's shape at all

Which host wants what is data (`Abilities`): vendors are named only in these codes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Abilities, CannotDecode, Decoded, Severity, Violation
    from .binding import check_binding
    from .encoder import Encoder, encode_bytes
    from .protocol import Wire
    from .registry import WIRES

#: Where each name lives: it is loaded when it is first used, so that importing the package costs next to nothing.
_HOMES = {
    "Abilities": ".base",
    "CannotDecode": ".base",
    "Decoded": ".base",
    "Encoder": ".encoder",
    "Severity": ".base",
    "Violation": ".base",
    "WIRES": ".registry",
    "Wire": ".protocol",
    "check_binding": ".binding",
    "encode_bytes": ".encoder",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
